// Whether this process should be sent calls, and if not, why.
//
//   Readiness readiness({"limits not loaded"});
//   readiness.Clear("limits not loaded");   // ready
//   readiness.Block("draining");            // not ready again
//
// It is ready while no reason stands against it. /readyz, the health service and the drain all look here, so they
// agree.
//
// Thread-safety: everything may be called from any thread; Ready and Version are one atomic load each. Bounded: reasons
// are names written in the code, never input.
#ifndef EBBGATE_SERVER_SERVICE_READINESS_H_
#define EBBGATE_SERVER_SERVICE_READINESS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace ebbgate {

class Readiness {
 public:
  // Called after each change of the reasons, on the thread that made it, one call at a time and in the order of the
  // changes. It may call Ready and Version, must not call anything else here, and must not block.
  using Listener = std::function<void()>;
  using ListenerId = std::uint64_t;

  // The reasons that stand from the start.
  explicit Readiness(std::vector<std::string> reasons = {});
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;

  // Adds or withdraws a reason. Doing so twice is doing so once.
  void Block(absl::string_view reason);
  void Clear(absl::string_view reason);

  bool Ready() const { return ready_.load(std::memory_order_acquire); }
  // In alphabetical order.
  std::vector<std::string> Reasons() const;
  // Rises with each change of the reasons.
  std::uint64_t Version() const { return version_.load(std::memory_order_acquire); }

  ListenerId AddListener(Listener listener);
  // Once this returns, the listener is not running and will not run again.
  void RemoveListener(ListenerId id);

 private:
  void Changed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::set<std::string, std::less<>> reasons_ ABSL_GUARDED_BY(mutex_);
  std::map<ListenerId, Listener> listeners_ ABSL_GUARDED_BY(mutex_);
  ListenerId next_listener_ ABSL_GUARDED_BY(mutex_) = 1;
  // Written under the mutex, read without it.
  std::atomic<bool> ready_;
  std::atomic<std::uint64_t> version_{0};
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_SERVICE_READINESS_H_

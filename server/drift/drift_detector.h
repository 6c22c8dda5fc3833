// Compares, limit by limit, what was admitted with what others say they have received: the check of a limiter whose own
// numbers look right.
//
//   DriftDetector drift;
//   drift.Watch(limits, time.WallNs());
//   const absl::Status status = drift.Report(report, time.MonotonicNs());
//   if (drift.HasNews()) {
//     for (const DriftChange& change : drift.Evaluate(admitted, time.MonotonicNs())) ...  // log it
//   }
//
// Reports of all reporters of a limit add up (see observed_totals.h): each token is to be reported by one of them.
// States are those of drift_window.h. What was admitted comes in as an argument, cumulative since the process began;
// where it includes what a limit in shadow let pass, so does what is received.
//
// Thread-safety: everything from any thread; one lock, held for some 50 ns a total or a limit, and never together with
// another; whoever reads many limits lets others in between. Bounded: by the bounds of drift in bounds.h.
#ifndef EBBGATE_SERVER_DRIFT_DRIFT_DETECTOR_H_
#define EBBGATE_SERVER_DRIFT_DRIFT_DETECTOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/drift/drift_window.h"
#include "server/drift/observed_totals.h"
#include "server/limiter/parameters.h"
#include "server/store/mutex.h"

namespace ebbgate {

// Views only. See ReportObserved of the API for what the fields mean.
struct ObservedReport {
  struct Total {
    absl::string_view limit;
    std::int64_t total = 0;
  };
  absl::string_view reporter;
  absl::string_view instance;
  std::int64_t start_wall_ns = 0;
  absl::Span<const Total> totals;
};

// Tokens of a limit that were let through since the process began, and how many of them were given back.
struct AdmittedCost {
  absl::string_view limit;
  std::uint64_t cost = 0;
  std::uint64_t given_back = 0;
};

// What is known of one limit.
struct LimitDrift {
  std::string limit;
  DriftSettings settings;
  DriftReading reading;
  std::optional<std::int64_t> last_report_ns;
  // Since the limit is watched, by reporter; `received` has also what forgotten reporters counted.
  std::uint64_t received = 0;
  std::vector<std::pair<std::string, std::uint64_t>> reporters;
};

// A limit's state is another than when it was last told.
struct DriftChange {
  LimitDrift now;
  DriftState before = DriftState::kOk;
};

struct DriftCounts {
  std::size_t reporters = 0;
  std::size_t instances = 0;
};

class DriftDetector {
 public:
  // The limits in force. Those that were watched before go on; those that are gone are forgotten.
  void Watch(const std::vector<Limit>& limits, std::int64_t wall_ns);

  // Takes a report whole or not at all. Errors begin with the field: "totals[3].limit: ...". INVALID_ARGUMENT for a bad
  // field, NOT_FOUND for a limit that is not watched, RESOURCE_EXHAUSTED where no room is left.
  absl::Status Report(const ObservedReport& report, std::int64_t now_ns);

  // Whether a report came in since the last Evaluate.
  bool HasNews() const { return news_.load(std::memory_order_acquire); }

  // Judges the limits of which there are news, and lets old reports age. Returns the limits whose state has changed.
  std::vector<DriftChange> Evaluate(absl::Span<const AdmittedCost> admitted, std::int64_t now_ns);

  // All limits, in the order of Watch; some hundred under a lock, so not all of one moment.
  std::vector<LimitDrift> Read() const;
  // Only those that are suspect or drifting.
  std::vector<LimitDrift> OutOfBounds() const;
  // One limit, if it is watched.
  std::optional<LimitDrift> Read(absl::string_view limit) const;
  DriftCounts Counts() const;

 private:
  struct Watched {
    std::string limit;  // empty: the number is free
    DriftWindow window{DriftSettings()};
    DriftState told = DriftState::kOk;
    bool news = false;
    std::optional<std::int64_t> last_report_ns;
  };

  // The totals by number, checked.
  absl::Status Resolve(const ObservedReport& report, std::vector<ObservedTotal>& totals) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  WatchedNumber Add(const Limit& limit, std::int64_t wall_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  LimitDrift Describe(WatchedNumber number) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<LimitDrift> ReadIf(const std::function<bool(const Watched&)>& wanted) const;

  mutable Mutex mutex_;
  std::vector<Watched> watched_ ABSL_GUARDED_BY(mutex_);  // by number
  std::vector<WatchedNumber> order_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t watches_ ABSL_GUARDED_BY(mutex_) = 0;  // rises when the order changes
  std::vector<WatchedNumber> free_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, WatchedNumber> numbers_ ABSL_GUARDED_BY(mutex_);
  ObservedTotals totals_ ABSL_GUARDED_BY(mutex_);
  // Written under the lock, read without it.
  std::atomic<bool> news_{false};
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_DRIFT_DRIFT_DETECTOR_H_

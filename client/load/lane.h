// One connection of the load generator, and the calls in flight on it.
//
// A lane is driven from two sides: completions, by the thread of its queue, and in the open loop a pacer that says when
// the next call is due. Its mutex guards what both touch; the closed loop never contends for it.
#ifndef EBBGATE_CLIENT_LOAD_LANE_H_
#define EBBGATE_CLIENT_LOAD_LANE_H_

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "client/load/histogram.h"
#include "client/load/options.h"
#include "client/load/wire.h"

namespace ebbgate::client {

std::int64_t SteadyNowNs();

// What a completion queue hands back.
class Completion {
 public:
  virtual ~Completion() = default;
  virtual void Done(bool ok) = 0;
};

// When calls may be sent. Shared by all lanes; thread-safe.
class Budget {
 public:
  explicit Budget(std::int64_t calls) : limited_(calls > 0), left_(calls) {}

  // Takes one call; false when there are no more, or the run is over.
  bool Claim();
  void End() { ended_.store(true, std::memory_order_relaxed); }
  bool ended() const { return ended_.load(std::memory_order_relaxed); }
  // All calls there were have been taken.
  bool spent() const { return limited_ && left_.load(std::memory_order_relaxed) <= 0; }

 private:
  const bool limited_;
  std::atomic<std::int64_t> left_;
  std::atomic<bool> ended_{false};
};

// What the answers were. Written by the one thread of a queue, read by others while it runs; `latency` and
// `first_error` only after it has ended.
struct Tally {
  std::atomic<std::int64_t> calls{0};
  std::atomic<std::int64_t> failed_calls{0};
  std::atomic<std::int64_t> allowed{0};
  std::atomic<std::int64_t> denied{0};
  std::atomic<std::int64_t> errors{0};  // decisions that came back as errors, and all those of failed calls
  Histogram latency;
  std::string first_error;
  std::int64_t last_answer_ns = 0;
};

class Lane {
 public:
  Lane(const LoadOptions& options, std::shared_ptr<grpc::Channel> channel, grpc::CompletionQueue& queue,
       int outstanding, Budget& budget, Tally& tally);
  virtual ~Lane() = default;
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Open loop: call number i of this lane is due at first_ns + i * interval_ns. Before Start.
  void Schedule(std::int64_t first_ns, double interval_ns);
  void Start() { SendDue(0); }
  // Open loop: `calls` more are due.
  void Due(int calls) { SendDue(calls); }

  // No more calls: lets those in flight end.
  virtual void Finish() {}
  // Ends those in flight now.
  virtual void Cancel() = 0;
  // Nothing is in flight, and nothing will be once the budget has ended.
  bool idle() const;

 protected:
  virtual bool CanSend() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  virtual void Send(std::int64_t intended_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  virtual bool Quiet() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;

  void SendWhatIsDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  grpc::ByteBuffer NextRequest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // By the queue's thread only.
  void CountAnswer(std::int64_t intended_ns, grpc::ByteBuffer& answer);
  void CountFailure(const grpc::Status& status);

  const LoadOptions& options_;
  const int outstanding_;
  const std::string method_;
  const std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  grpc::CompletionQueue& queue_;
  mutable absl::Mutex mutex_;

 private:
  void SendDue(int more);

  Budget& budget_;
  Tally& tally_;
  std::string scratch_;  // of CountAnswer
  RequestWriter writer_ ABSL_GUARDED_BY(mutex_);
  bool scheduled_ = false;
  std::int64_t first_ns_ = 0;
  double interval_ns_ = 0;
  std::int64_t due_ ABSL_GUARDED_BY(mutex_) = 0;
  std::int64_t sent_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Unary calls, of one decision or of a batch; `outstanding` at a time.
std::unique_ptr<Lane> MakeUnaryLane(const LoadOptions& options, std::shared_ptr<grpc::Channel> channel,
                                    grpc::CompletionQueue& queue, int outstanding, Budget& budget, Tally& tally);
// Messages on one stream; `outstanding` unanswered at a time.
std::unique_ptr<Lane> MakeStreamLane(const LoadOptions& options, std::shared_ptr<grpc::Channel> channel,
                                     grpc::CompletionQueue& queue, int outstanding, Budget& budget, Tally& tally);

}  // namespace ebbgate::client

#endif  // EBBGATE_CLIENT_LOAD_LANE_H_

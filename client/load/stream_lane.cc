#include <deque>
#include <utility>

#include "client/load/lane.h"

namespace ebbgate::client {
namespace {

// gRPC takes one write and one read at a time on a stream; answers come in the order of the messages. A stream that
// breaks is not opened again: the run tells why it broke.
class StreamLane final : public Lane {
 public:
  StreamLane(const LoadOptions& options, std::shared_ptr<grpc::Channel> channel, grpc::CompletionQueue& queue,
             int outstanding, Budget& budget, Tally& tally)
      : Lane(options, std::move(channel), queue, outstanding, budget, tally) {
    absl::MutexLock lock(&mutex_);
    stream_ = stub_.PrepareCall(&context_, method_, &queue_);
    stream_->StartCall(&started_);
  }

  void Finish() override {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    CloseIfDrained();
  }

  void Cancel() override { context_.TryCancel(); }

 private:
  enum class State { kOpening, kOpen, kEnding, kEnded };

  // Names the member to call when an operation is done.
  struct Step final : public Completion {
    using Member = void (StreamLane::*)(bool);
    Step(StreamLane& owner, Member what) : lane(owner), member(what) {}
    void Done(bool ok) override { (lane.*member)(ok); }
    StreamLane& lane;
    const Member member;
  };

  bool CanSend() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return state_ == State::kOpen && !writing_ && !closing_ &&
           in_flight_.size() < static_cast<std::size_t>(outstanding_);
  }
  bool Quiet() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return state_ == State::kEnded; }

  void Send(std::int64_t intended_ns) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    writing_ = true;
    in_flight_.push_back(intended_ns);
    stream_->Write(NextRequest(), &written_);
  }

  void Started(bool ok) {
    absl::MutexLock lock(&mutex_);
    if (!ok) return End();
    state_ = State::kOpen;
    stream_->Read(&answer_, &read_);
    SendWhatIsDue();
    CloseIfDrained();
  }

  void Written(bool ok) {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    if (!ok) return;  // The read ends too, and tells.
    SendWhatIsDue();
    CloseIfDrained();
  }

  void Read(bool ok) {
    std::int64_t intended_ns = 0;
    {
      absl::MutexLock lock(&mutex_);
      if (!ok || in_flight_.empty()) return End();
      intended_ns = in_flight_.front();
      in_flight_.pop_front();
    }
    CountAnswer(intended_ns, answer_);
    absl::MutexLock lock(&mutex_);
    stream_->Read(&answer_, &read_);
    SendWhatIsDue();
    CloseIfDrained();
  }

  void End() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    state_ = State::kEnding;
    stream_->Finish(&status_, &finished_);
  }

  void Finished(bool) {
    absl::MutexLock lock(&mutex_);
    for (std::size_t i = 0; i < in_flight_.size(); ++i) CountFailure(status_);
    if (in_flight_.empty() && !status_.ok()) CountFailure(status_);
    state_ = State::kEnded;
  }

  void CloseIfDrained() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!closing_ || closed_ || writing_ || state_ != State::kOpen || !in_flight_.empty()) return;
    closed_ = true;
    writing_ = true;
    stream_->WritesDone(&written_);
  }

  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_ ABSL_GUARDED_BY(mutex_);
  grpc::ByteBuffer answer_;
  grpc::Status status_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kOpening;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<std::int64_t> in_flight_ ABSL_GUARDED_BY(mutex_);  // when each was due
  Step started_{*this, &StreamLane::Started};
  Step written_{*this, &StreamLane::Written};
  Step read_{*this, &StreamLane::Read};
  Step finished_{*this, &StreamLane::Finished};
};

}  // namespace

std::unique_ptr<Lane> MakeStreamLane(const LoadOptions& options, std::shared_ptr<grpc::Channel> channel,
                                     grpc::CompletionQueue& queue, int outstanding, Budget& budget, Tally& tally) {
  return std::make_unique<StreamLane>(options, std::move(channel), queue, outstanding, budget, tally);
}

}  // namespace ebbgate::client

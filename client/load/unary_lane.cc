#include <optional>
#include <utility>
#include <vector>

#include "client/load/lane.h"

namespace ebbgate::client {
namespace {

class UnaryLane final : public Lane {
 public:
  UnaryLane(const LoadOptions& options, std::shared_ptr<grpc::Channel> channel, grpc::CompletionQueue& queue,
            int outstanding, Budget& budget, Tally& tally)
      : Lane(options, std::move(channel), queue, outstanding, budget, tally) {
    slots_.reserve(static_cast<std::size_t>(outstanding));
    for (int i = 0; i < outstanding; ++i) slots_.push_back(std::make_unique<Slot>(*this));
    for (const auto& slot : slots_) free_.push_back(slot.get());
  }

  void Cancel() override {
    absl::MutexLock lock(&mutex_);
    for (const auto& slot : slots_) {
      if (slot->reader != nullptr) slot->context->TryCancel();
    }
  }

 private:
  // A place for one call after another.
  struct Slot final : public Completion {
    explicit Slot(UnaryLane& owner) : lane(owner) {}
    void Done(bool) override { lane.Answered(*this); }

    UnaryLane& lane;
    std::int64_t intended_ns = 0;
    std::optional<grpc::ClientContext> context;
    std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;  // null while free
    grpc::ByteBuffer answer;
    grpc::Status status;
  };

  bool CanSend() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !free_.empty(); }
  bool Quiet() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return free_.size() == slots_.size(); }

  void Send(std::int64_t intended_ns) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Slot& slot = *free_.back();
    free_.pop_back();
    slot.intended_ns = intended_ns;
    slot.context.emplace();
    slot.answer.Clear();
    slot.reader = stub_.PrepareUnaryCall(&*slot.context, method_, NextRequest(), &queue_);
    slot.reader->StartCall();
    slot.reader->Finish(&slot.answer, &slot.status, &slot);
  }

  void Answered(Slot& slot) {
    if (slot.status.ok()) {
      CountAnswer(slot.intended_ns, slot.answer);
    } else {
      CountFailure(slot.status);
    }
    absl::MutexLock lock(&mutex_);
    slot.reader.reset();
    free_.push_back(&slot);
    SendWhatIsDue();
  }

  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Slot*> free_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Lane> MakeUnaryLane(const LoadOptions& options, std::shared_ptr<grpc::Channel> channel,
                                    grpc::CompletionQueue& queue, int outstanding, Budget& budget, Tally& tally) {
  return std::make_unique<UnaryLane>(options, std::move(channel), queue, outstanding, budget, tally);
}

}  // namespace ebbgate::client

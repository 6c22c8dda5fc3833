#include "client/load/lane.h"

#include <time.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/channel.h"

namespace ebbgate::client {
namespace {

const char* MethodOf(const LoadOptions& options) {
  if (options.target == LoadTarget::kYardstick) return "/ebbgate.bench.Yardstick/Echo";
  switch (options.mode) {
    case LoadMode::kUnary:
      return "/ebbgate.v1.RateLimiter/ShouldAllow";
    case LoadMode::kBatch:
      return "/ebbgate.v1.RateLimiter/ShouldAllowBatch";
    case LoadMode::kStream:
      return "/ebbgate.v1.RateLimiter/StreamShouldAllow";
  }
  return "";
}

// The bytes of a message, in place if they are in one piece.
absl::string_view Contiguous(grpc::ByteBuffer& buffer, grpc::Slice& slice, std::string& scratch) {
  if (buffer.TrySingleSlice(&slice).ok()) {
    return absl::string_view(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return {};
  scratch.clear();
  for (const grpc::Slice& piece : slices) {
    scratch.append(reinterpret_cast<const char*>(piece.begin()), piece.size());
  }
  return scratch;
}

// One writer, so no read-modify-write is needed.
void Add(std::atomic<std::int64_t>& counter, std::int64_t n) {
  counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

}  // namespace

std::int64_t SteadyNowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

bool Budget::Claim() {
  if (ended()) return false;
  return !limited_ || left_.fetch_sub(1, std::memory_order_relaxed) > 0;
}

Lane::Lane(const LoadOptions& options, std::shared_ptr<grpc::Channel> channel, grpc::CompletionQueue& queue,
           int outstanding, Budget& budget, Tally& tally)
    : options_(options),
      outstanding_(outstanding),
      method_(MethodOf(options)),
      channel_(channel),
      stub_(std::move(channel)),
      queue_(queue),
      budget_(budget),
      tally_(tally),
      writer_(options) {}

void Lane::Schedule(std::int64_t first_ns, double interval_ns) {
  scheduled_ = true;
  first_ns_ = first_ns;
  interval_ns_ = interval_ns;
}

bool Lane::idle() const {
  absl::MutexLock lock(&mutex_);
  return Quiet();
}

void Lane::SendDue(int more) {
  absl::MutexLock lock(&mutex_);
  due_ += more;
  SendWhatIsDue();
}

void Lane::SendWhatIsDue() {
  while ((!scheduled_ || sent_ < due_) && CanSend() && budget_.Claim()) {
    const double since_first_ns = static_cast<double>(sent_) * interval_ns_;
    Send(scheduled_ ? first_ns_ + static_cast<std::int64_t>(since_first_ns) : SteadyNowNs());
    ++sent_;
  }
}

grpc::ByteBuffer Lane::NextRequest() {
  const absl::string_view message = writer_.Next();
  const grpc::Slice slice(message.data(), message.size());
  return grpc::ByteBuffer(&slice, 1);
}

void Lane::CountAnswer(std::int64_t intended_ns, grpc::ByteBuffer& answer) {
  tally_.last_answer_ns = SteadyNowNs();
  tally_.latency.Add(tally_.last_answer_ns - intended_ns);
  Add(tally_.calls, 1);
  AnswerCounts counts{.allowed = 1};  // of the yardstick
  if (options_.target == LoadTarget::kEbbgate) {
    grpc::Slice slice;
    const absl::string_view message = Contiguous(answer, slice, scratch_);
    counts = options_.mode == LoadMode::kUnary ? CountResponse(message) : CountBatchResponse(message);
  }
  Add(tally_.allowed, counts.allowed);
  Add(tally_.denied, counts.denied);
  Add(tally_.errors, counts.errors);
}

void Lane::CountFailure(const grpc::Status& status) {
  tally_.last_answer_ns = SteadyNowNs();
  Add(tally_.failed_calls, 1);
  Add(tally_.errors, options_.mode == LoadMode::kUnary ? 1 : options_.batch);
  if (tally_.first_error.empty())
    tally_.first_error = FromGrpc(status).ToString(absl::StatusToStringMode::kWithNoExtraData);
}

}  // namespace ebbgate::client

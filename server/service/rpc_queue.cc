#include "server/service/rpc_queue.h"

#include <grpc/byte_buffer_reader.h>
#include <grpc/slice.h>
#include <grpc/support/time.h>

#include <algorithm>
#include <utility>

namespace ebbgate {
namespace {

// Calls that wait for callers, for each method of a server on a queue: as many as may come in with one look at the
// sockets; those that find none waiting take a slower way.
constexpr int kPostedCalls = 64;

}  // namespace

void ServedMethod::Refill() {
  // Refused calls are unfinished too, until their refusal is read: hence twice the budget.
  while (!closing && posted < kPostedCalls && queue.unfinished + posted < 2 * queue.budget().limit() + kPostedCalls) {
    if (idle.empty()) {
      calls.push_back(MakeCall(*this));
      idle.push_back(calls.back().get());
    }
    RpcCall* const call = idle.back();
    idle.pop_back();
    call->Post();
  }
}

void ServedMethod::Opened(RpcCall& call) {
  call.open_index = open.size();
  open.push_back(&call);
}

void ServedMethod::Closed(RpcCall& call) {
  open[call.open_index] = open.back();
  open[call.open_index]->open_index = call.open_index;
  open.pop_back();
}

void ServedMethod::ServerIsClosing() {
  if (std::exchange(closing, true)) return;
  for (RpcCall* call : open) call->Close();
}

RpcQueue::RpcQueue(CallBudget& budget, ServiceCounters& counters)
    : budget_(budget), counters_(counters), cq_(grpc_completion_queue_create_for_next(nullptr)) {}

RpcQueue::~RpcQueue() {
  if (!joined_) {
    grpc_completion_queue_shutdown(cq_);
    Run();
  }
  grpc_completion_queue_destroy(cq_);
}

MessageHandler* RpcQueue::AddHandler(std::unique_ptr<MessageHandler> handler) {
  return handlers_.emplace_back(std::move(handler)).get();
}

void RpcQueue::AddMethod(grpc_server* server, void* registered, const RpcMethod& method, MessageHandler* handler,
                         std::int64_t max_stream_age_ns) {
  methods_.push_back(
      ServedMethod{*this, server, registered, method.shape, method.counted_as, handler, max_stream_age_ns});
}

void RpcQueue::AddUnknownMethods(grpc_server* server) {
  methods_.push_back(ServedMethod{*this, server, nullptr, CallShape::kUnary, std::nullopt, nullptr, 0});
}

void RpcQueue::Start() {
  for (ServedMethod& method : methods_) method.Refill();
  thread_ = std::thread([this] { Run(); });
}

void RpcQueue::Join() {
  grpc_completion_queue_shutdown(cq_);
  if (thread_.joinable()) thread_.join();
  joined_ = true;
}

void RpcQueue::Run() {
  for (;;) {
    const grpc_event event = grpc_completion_queue_next(cq_, gpr_inf_future(GPR_CLOCK_REALTIME), nullptr);
    if (event.type != GRPC_OP_COMPLETE) return;
    const auto* tag = static_cast<const RpcCall::Tag*>(event.tag);
    tag->call->On(tag->event, event.success != 0);
  }
}

absl::string_view RpcQueue::Flatten(grpc_byte_buffer* message) {
  grpc_byte_buffer_reader reader;
  flat_.clear();
  if (!grpc_byte_buffer_reader_init(&reader, message)) return flat_;
  const std::size_t size = grpc_byte_buffer_length(message);
  absl::string_view bytes;
  for (grpc_slice* slice; grpc_byte_buffer_reader_peek(&reader, &slice);) {
    const absl::string_view piece(reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(*slice)),
                                  GRPC_SLICE_LENGTH(*slice));
    if (piece.size() == size) {  // nearly always: all of it, where it is
      bytes = piece;
      break;
    }
    flat_.append(piece.data(), piece.size());
    bytes = flat_;
  }
  grpc_byte_buffer_reader_destroy(&reader);
  return bytes;
}

void RpcQueue::WakeFeeds() {
  absl::MutexLock lock(&feeds_mutex_);
  for (RpcCall* feed : feeds_) feed->Wake();
}

void RpcQueue::AddFeed(RpcCall& call) {
  absl::MutexLock lock(&feeds_mutex_);
  feeds_.push_back(&call);
}

void RpcQueue::RemoveFeed(RpcCall& call) {
  absl::MutexLock lock(&feeds_mutex_);
  feeds_.erase(std::remove(feeds_.begin(), feeds_.end(), &call), feeds_.end());
}

}  // namespace ebbgate

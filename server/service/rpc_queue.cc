#include "server/service/rpc_queue.h"

#include <grpc/byte_buffer_reader.h>
#include <grpc/slice.h>
#include <grpc/support/time.h>

#include <algorithm>
#include <utility>

namespace ebbgate {
namespace {

// The most calls that wait for callers, for each method of a server on a queue: as many as may come in with one look at
// the sockets. A call that finds none waiting goes to another queue, and so to another thread, or waits itself.
constexpr int kMaxPostedCalls = 512;

grpc_completion_queue* CreateQueue(RpcQueue::Kind kind) {
  grpc_completion_queue_attributes attributes = {};
  attributes.version = 1;
  attributes.cq_completion_type = GRPC_CQ_NEXT;
  attributes.cq_polling_type = kind == RpcQueue::Kind::kWaitsForSockets ? GRPC_CQ_DEFAULT_POLLING : GRPC_CQ_NON_POLLING;
  return grpc_completion_queue_create(grpc_completion_queue_factory_lookup(&attributes), &attributes, nullptr);
}

}  // namespace

void ServedMethod::Refill() {
  // None left: more came at once than were expected.
  if (posted == 0 && !calls.empty()) posted_goal = std::min(2 * posted_goal, kMaxPostedCalls);
  // Refused calls are unfinished too, until their refusal is read: hence twice the budget.
  const std::int64_t bound = 2 * queue.budget().limit() + posted_goal;
  while (!closing && posted < posted_goal && queue.unfinished + posted < bound) {
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

RpcQueue::RpcQueue(Kind kind, CallBudget& budget, ServiceCounters& counters)
    : budget_(budget), counters_(counters), cq_(CreateQueue(kind)) {}

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
  ++servers_;
  methods_.push_back(ServedMethod{*this, server, nullptr, CallShape::kUnary, std::nullopt, nullptr, 0});
}

void RpcQueue::Start() {
  for (ServedMethod& method : methods_) method.Refill();
  thread_ = std::thread([this] { Run(); });
}

void RpcQueue::ShutDown(grpc_server* server) { grpc_server_shutdown_and_notify(server, cq_, nullptr); }

void RpcQueue::Join() {
  if (!thread_.joinable()) return;
  thread_.join();
  joined_ = true;
}

void RpcQueue::Run() {
  for (;;) {
    const grpc_event event = grpc_completion_queue_next(cq_, gpr_inf_future(GPR_CLOCK_REALTIME), nullptr);
    if (event.type != GRPC_OP_COMPLETE) return;
    const auto* tag = static_cast<const RpcCall::Tag*>(event.tag);
    if (tag == nullptr) {
      --servers_;
    } else {
      tag->call->On(tag->event, event.success != 0);
    }
    // A server has shut down when its connections are gone: until then they must be looked after, and even then calls
    // may still be on their way through here. So the queue itself knows best when it is done.
    if (servers_ == 0 && posted == 0 && unfinished == 0) grpc_completion_queue_shutdown(cq_);
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

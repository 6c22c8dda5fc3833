#include "server/service/rpc_call.h"

#include <grpc/byte_buffer.h>
#include <grpc/slice.h>
#include <grpc/support/time.h>

#include <atomic>
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/status/status.h"
#include "server/engine/call.h"
#include "server/limiter/moment.h"
#include "server/service/error_details.h"
#include "server/service/rpc_queue.h"

namespace ebbgate {
namespace {

grpc::Status Refusal(ErrorReason reason, std::string message) {
  return ToGrpcStatus(CallError{reason, std::string(), std::move(message)});
}

bool IsSet(const gpr_timespec& deadline) { return gpr_time_cmp(deadline, gpr_inf_future(deadline.clock_type)) != 0; }

// One message in, one out.
class UnaryCall final : public RpcCall {
 public:
  using RpcCall::RpcCall;

 protected:
  void Begin() override {
    grpc::Status status = CheckTime();
    absl::string_view response;
    if (status.ok()) status = HandleMessage(response);
    Finish(status, response, status.ok());
  }
};

// Messages in and out in turn. An answer is sent together with the wait for the next message, so that a caller who does
// not read its answers is not read from either.
class StreamCall final : public RpcCall {
 public:
  using RpcCall::RpcCall;

  void Close() override {
    if (!finishing_) Finish(Refusal(ErrorReason::kDraining, "the server is going away; nothing was decided"));
  }

 protected:
  void Begin() override {
    began_ns_ = method_.max_stream_age_ns > 0 ? SystemTime().MonotonicNs() : 0;
    Step(true);
  }

  void Step(bool ok) override {
    if (finishing_) return;  // a message that came too late is not decided
    if (!ok || !has_message()) return Finish(grpc::Status::OK);
    if (method_.closing) return Close();
    grpc::Status status = CheckTime();
    absl::string_view response;
    if (status.ok()) status = HandleMessage(response);
    if (!status.ok()) return Finish(status);
    if (TooOld()) {
      return Finish(Refusal(ErrorReason::kDraining, "the stream has reached its greatest age; open another one"),
                    response, true);
    }
    Batch batch;
    if (!headers_sent_) batch.SendHeaders();
    headers_sent_ = true;
    batch.SendMessage(response);
    batch.ReceiveMessage(*this);
    batch.Start(*this, Event::kStep);
  }

 private:
  bool TooOld() const {
    return method_.max_stream_age_ns > 0 && SystemTime().MonotonicNs() - began_ns_ > method_.max_stream_age_ns;
  }

  std::int64_t began_ns_ = 0;
};

// One message in, which stays and is answered anew whenever somebody says that the answer may have changed.
class FeedCall final : public RpcCall {
 public:
  using RpcCall::RpcCall;

  void Close() override {
    if (!finishing_) End(Refusal(ErrorReason::kDraining, "the server is going away"));
  }

  void Wake() override {
    if (!wake_due_.exchange(true)) Batch().Start(*this, Event::kWoken);
  }

 protected:
  void Begin() override {
    Batch close;
    close.ReceiveClose(*this);
    close_awaited_ = true;
    close.Start(*this, Event::kHungUp);
    method_.queue.AddFeed(*this);
    Refresh();
  }

  void Step(bool ok) override {
    sending_ = false;
    if (ok && look_again_) Refresh();
  }

  void Woken() override {
    wake_due_.store(false);  // before looking, so that what changes after the look wakes again
    if (!finishing_) Refresh();
  }

  void HungUp() override {
    if (!finishing_) End(grpc::Status::CANCELLED);
  }

  bool Settled() override { return !wake_due_.load(); }

  void Reset() override {
    sent_.clear();
    sending_ = false;
    look_again_ = false;
    answered_ = false;
  }

 private:
  void Refresh() {
    look_again_ = sending_;
    if (sending_ || finishing_) return;
    absl::string_view response;
    const grpc::Status status = HandleMessage(response);
    if (!status.ok()) return End(status);
    if (answered_ && response == sent_) return;
    sent_.assign(response.data(), response.size());
    Batch batch;
    if (!headers_sent_) batch.SendHeaders();
    headers_sent_ = true;
    batch.SendMessage(sent_);
    sending_ = true;
    answered_ = true;
    batch.Start(*this, Event::kStep);
  }

  void End(const grpc::Status& status) {
    method_.queue.RemoveFeed(*this);
    Finish(status);
  }

  std::string sent_;
  bool sending_ = false;
  bool look_again_ = false;
  bool answered_ = false;
  std::atomic<bool> wake_due_{false};
};

// A call to a method that does not exist: it ends when it arrives.
class UnknownCall final : public RpcCall {
 public:
  using RpcCall::RpcCall;

 protected:
  void Begin() override {}
};

}  // namespace

std::unique_ptr<RpcCall> MakeCall(ServedMethod& method) {
  if (method.registered == nullptr) return std::make_unique<UnknownCall>(method);
  switch (method.shape) {
    case CallShape::kUnary:
      return std::make_unique<UnaryCall>(method);
    case CallShape::kStream:
      return std::make_unique<StreamCall>(method);
    case CallShape::kFeed:
      return std::make_unique<FeedCall>(method);
  }
  return nullptr;
}

RpcCall::RpcCall(ServedMethod& method)
    : method_(method),
      tags_{{this, Event::kArrived},
            {this, Event::kStep},
            {this, Event::kHungUp},
            {this, Event::kWoken},
            {this, Event::kDone}} {
  grpc_metadata_array_init(&request_metadata_);
  grpc_call_details_init(&details_);
  status_message_ = grpc_empty_slice();
  std::memset(&status_details_, 0, sizeof(status_details_));
  status_details_.key = grpc_slice_from_static_string("grpc-status-details-bin");
  status_details_.value = grpc_empty_slice();
}

RpcCall::~RpcCall() {
  assert(call_ == nullptr);
  DropMessage();
  grpc_call_details_destroy(&details_);
  grpc_metadata_array_destroy(&request_metadata_);
}

void RpcCall::Post() {
  Tag* tag = &tags_[static_cast<std::size_t>(Event::kArrived)];
  grpc_completion_queue* const cq = method_.queue.cq();
  request_metadata_.count = 0;
  ++pending_;
  ++method_.posted;
  ++method_.queue.posted;
  // Neither fails unless misused: a server that has shut down answers with an event.
  if (method_.registered == nullptr) {
    grpc_server_request_call(method_.server, &call_, &details_, &request_metadata_, cq, cq, tag);
  } else {
    grpc_server_request_registered_call(method_.server, method_.registered, &call_, &deadline_, &request_metadata_,
                                        &message_, cq, cq, tag);
  }
}

void RpcCall::On(Event event, bool ok) {
  if (event != Event::kWoken) --pending_;
  switch (event) {
    case Event::kArrived:
      Arrived(ok);
      break;
    case Event::kStep:
      Step(ok);
      break;
    case Event::kHungUp:
      HungUp();
      break;
    case Event::kWoken:
      Woken();
      break;
    case Event::kDone:
      break;
  }
  if (pending_ == 0 && Settled()) Recycle();
}

void RpcCall::Arrived(bool ok) {
  --method_.posted;
  --method_.queue.posted;
  if (!ok) {
    call_ = nullptr;
    method_.ServerIsClosing();
    return;
  }
  ++method_.queue.unfinished;
  method_.Refill();
  if (method_.counted_as) method_.queue.counters().CallStarted(*method_.counted_as);
  in_flight_ = method_.queue.budget().TryTake();
  if (!in_flight_) {
    method_.queue.counters().CountError(ErrorReason::kOverloaded);
    return Finish(Refusal(ErrorReason::kOverloaded, "too many calls are in flight"));
  }
  if (method_.shape != CallShape::kUnary) method_.Opened(*this);
  // A call arrives with its first message. Where there is none, the caller has nearly always reset the call already:
  // whoever does so by the thousand (CVE-2023-44487) must cost less to serve than to read, or what was read piles up.
  if (method_.registered == nullptr) return Abandon(grpc::StatusCode::UNIMPLEMENTED, "no such method here");
  if (!has_message()) {
    method_.queue.counters().CountError(ErrorReason::kMalformed);
    return Abandon(grpc::StatusCode::INVALID_ARGUMENT, "the call carries no message");
  }
  Begin();
  if (method_.closing) Close();
}

// Ends a call without waiting for anything: the status goes out if there is still somebody to read it.
void RpcCall::Abandon(grpc::StatusCode code, const char* message) {
  code_ = code;
  grpc_call_cancel_with_status(call_, static_cast<grpc_status_code>(code), message, nullptr);
}

void RpcCall::Recycle() {
  if (call_ != nullptr) {
    grpc_call_unref(call_);
    call_ = nullptr;
    --method_.queue.unfinished;
    if (method_.counted_as) {
      method_.queue.counters().CallEnded(*method_.counted_as, static_cast<absl::StatusCode>(code_));
    }
    if (in_flight_) {
      method_.queue.budget().Return();
      if (method_.shape != CallShape::kUnary) method_.Closed(*this);
    }
  }
  DropMessage();
  DropStatus();
  if (method_.registered == nullptr) {
    grpc_call_details_destroy(&details_);
    grpc_call_details_init(&details_);
  }
  headers_sent_ = close_awaited_ = finishing_ = in_flight_ = false;
  Reset();
  method_.idle.push_back(this);
  method_.Refill();
}

grpc::Status RpcCall::CheckTime() const {
  if (!IsSet(deadline_) || gpr_time_cmp(gpr_now(deadline_.clock_type), deadline_) < 0) return grpc::Status::OK;
  method_.queue.counters().CountError(ErrorReason::kDeadlinePassed);
  return Refusal(ErrorReason::kDeadlinePassed, "the deadline passed before the decision; nothing was charged");
}

grpc::Status RpcCall::HandleMessage(absl::string_view& response) {
  grpc::Status status = method_.handler->Handle(method_.queue.Flatten(message_), response);
  if (method_.shape != CallShape::kFeed) DropMessage();
  return status;
}

void RpcCall::Finish(const grpc::Status& status, absl::string_view response, bool has_response) {
  assert(!finishing_);
  finishing_ = true;
  Batch batch;
  if (!headers_sent_) batch.SendHeaders();
  if (has_response) batch.SendMessage(response);
  if (!close_awaited_) batch.ReceiveClose(*this);
  batch.SendStatus(*this, status);
  batch.Start(*this, Event::kDone);
}

void RpcCall::DropMessage() {
  if (message_ != nullptr) grpc_byte_buffer_destroy(message_);
  message_ = nullptr;
}

void RpcCall::DropStatus() {
  grpc_slice_unref(status_message_);
  grpc_slice_unref(status_details_.value);
  status_message_ = grpc_empty_slice();
  status_details_.value = grpc_empty_slice();
  code_ = grpc::StatusCode::OK;
}

grpc_op& RpcCall::Batch::Add(grpc_op_type type) {
  assert(count_ < 4);
  grpc_op& op = ops_[count_++];
  op.op = type;
  return op;
}

void RpcCall::Batch::SendHeaders() { Add(GRPC_OP_SEND_INITIAL_METADATA); }

void RpcCall::Batch::SendMessage(absl::string_view bytes) {
  grpc_slice slice = grpc_slice_from_copied_buffer(bytes.data(), bytes.size());
  message_ = grpc_raw_byte_buffer_create(&slice, 1);
  grpc_slice_unref(slice);
  Add(GRPC_OP_SEND_MESSAGE).data.send_message.send_message = message_;
}

void RpcCall::Batch::ReceiveMessage(RpcCall& call) {
  Add(GRPC_OP_RECV_MESSAGE).data.recv_message.recv_message = &call.message_;
}

void RpcCall::Batch::ReceiveClose(RpcCall& call) {
  Add(GRPC_OP_RECV_CLOSE_ON_SERVER).data.recv_close_on_server.cancelled = &call.cancelled_;
}

void RpcCall::Batch::SendStatus(RpcCall& call, const grpc::Status& status) {
  auto& op = Add(GRPC_OP_SEND_STATUS_FROM_SERVER).data.send_status_from_server;
  call.code_ = status.error_code();
  op.status = static_cast<grpc_status_code>(call.code_);
  if (status.ok()) return;
  const std::string message = status.error_message();
  const std::string details = status.error_details();
  call.status_message_ = grpc_slice_from_copied_buffer(message.data(), message.size());
  op.status_details = &call.status_message_;
  if (details.empty()) return;
  call.status_details_.value = grpc_slice_from_copied_buffer(details.data(), details.size());
  op.trailing_metadata = &call.status_details_;
  op.trailing_metadata_count = 1;
}

void RpcCall::Batch::Start(RpcCall& call, Event event) {
  if (event != Event::kWoken) ++call.pending_;
  const grpc_call_error error =
      grpc_call_start_batch(call.call_, ops_, count_, &call.tags_[static_cast<std::size_t>(event)], nullptr);
  if (error != GRPC_CALL_OK) {
    // Only operations that contradict each other are refused: a mistake here, whatever the caller did.
    std::fprintf(stderr, "gRPC refused a batch: %s\n", grpc_call_error_to_string(error));
    std::abort();
  }
}

RpcCall::Batch::~Batch() {
  if (message_ != nullptr) grpc_byte_buffer_destroy(message_);
}

}  // namespace ebbgate

#include "server/service/rate_limiter_methods.h"

#include <memory>

#include "server/service/call_codec.h"
#include "server/service/error_details.h"

namespace ebbgate {
namespace {

grpc::Status Refuse(const CallError& error, const RateLimiterParts& parts) {
  parts.counters.CountError(error.reason);
  return ToGrpcStatus(error);
}

class ShouldAllowHandler final : public MessageHandler {
 public:
  explicit ShouldAllowHandler(const RateLimiterParts& parts) : parts_(parts) {}

  grpc::Status Handle(absl::string_view request, absl::string_view& response) override {
    if (const CallFault fault = codec_.Decode(request)) return Refuse(*fault, parts_);
    CallAnswer& answer = codec_.answer();
    const std::int64_t begin_ns = parts_.time.MonotonicNs();
    parts_.engine.Decide(codec_.call(), answer);
    parts_.latency.Record(parts_.time.MonotonicNs() - begin_ns);
    if (answer.error != nullptr) return Refuse(*answer.error, parts_);
    response = codec_.Encode();
    return grpc::Status::OK;
  }

 private:
  const RateLimiterParts parts_;
  CallCodec codec_;
};

enum class BatchCarrier { kUnary, kStream };

class BatchHandler final : public MessageHandler {
 public:
  BatchHandler(const RateLimiterParts& parts, BatchCarrier carrier) : parts_(parts), carrier_(carrier) {}

  grpc::Status Handle(absl::string_view request, absl::string_view& response) override {
    if (carrier_ == BatchCarrier::kStream) parts_.counters.CountStreamMessage();
    if (const CallFault fault = codec_.Decode(request)) return Refuse(*fault, parts_);
    const absl::Span<CallAnswer> answers = codec_.answers();
    const std::int64_t begin_ns = parts_.time.MonotonicNs();
    parts_.engine.DecideBatch(codec_.calls(), answers);
    parts_.latency.Record(parts_.time.MonotonicNs() - begin_ns, answers.size());
    for (const CallAnswer& answer : answers) {
      if (answer.error != nullptr) parts_.counters.CountError(answer.error->reason);
    }
    response = codec_.Encode();
    return grpc::Status::OK;
  }

 private:
  const RateLimiterParts parts_;
  const BatchCarrier carrier_;
  BatchCodec codec_;
};

class ReserveHandler final : public MessageHandler {
 public:
  explicit ReserveHandler(const RateLimiterParts& parts) : parts_(parts) {}

  grpc::Status Handle(absl::string_view request, absl::string_view& response) override {
    if (const CallFault fault = codec_.Decode(request)) return Refuse(*fault, parts_);
    ReserveAnswer& answer = codec_.answer();
    parts_.engine.Reserve(codec_.request(), answer);
    if (answer.call.error != nullptr) return Refuse(*answer.call.error, parts_);
    response = codec_.Encode();
    return grpc::Status::OK;
  }

 private:
  const RateLimiterParts parts_;
  ReserveCodec codec_;
};

enum class Ending { kSettle, kCancel };

// Settle and Cancel: the two ways for a caller to end a hold.
class EndHandler final : public MessageHandler {
 public:
  EndHandler(const RateLimiterParts& parts, Ending ending) : parts_(parts), ending_(ending) {}

  grpc::Status Handle(absl::string_view request, absl::string_view& response) override {
    if (const CallFault fault = codec_.Decode(request)) return Refuse(*fault, parts_);
    SettleAnswer& answer = codec_.answer();
    if (ending_ == Ending::kSettle) {
      parts_.engine.Settle(codec_.reservation_id(), codec_.actual(), answer);
    } else {
      parts_.engine.Cancel(codec_.reservation_id(), answer);
    }
    if (answer.error != nullptr) return Refuse(*answer.error, parts_);
    response = codec_.Encode();
    return grpc::Status::OK;
  }

 private:
  const RateLimiterParts parts_;
  const Ending ending_;
  SettleCodec codec_;
};

}  // namespace

std::vector<RpcMethod> RateLimiterMethods(const RateLimiterParts& parts) {
  return {
      {"/ebbgate.v1.RateLimiter/ShouldAllow", CallShape::kUnary, Method::kShouldAllow,
       [parts] { return std::make_unique<ShouldAllowHandler>(parts); }},
      {"/ebbgate.v1.RateLimiter/ShouldAllowBatch", CallShape::kUnary, Method::kShouldAllowBatch,
       [parts] { return std::make_unique<BatchHandler>(parts, BatchCarrier::kUnary); }},
      {"/ebbgate.v1.RateLimiter/StreamShouldAllow", CallShape::kStream, Method::kStreamShouldAllow,
       [parts] { return std::make_unique<BatchHandler>(parts, BatchCarrier::kStream); }},
      {"/ebbgate.v1.RateLimiter/Reserve", CallShape::kUnary, Method::kReserve,
       [parts] { return std::make_unique<ReserveHandler>(parts); }},
      {"/ebbgate.v1.RateLimiter/Settle", CallShape::kUnary, Method::kSettle,
       [parts] { return std::make_unique<EndHandler>(parts, Ending::kSettle); }},
      {"/ebbgate.v1.RateLimiter/Cancel", CallShape::kUnary, Method::kCancel,
       [parts] { return std::make_unique<EndHandler>(parts, Ending::kCancel); }},
  };
}

}  // namespace ebbgate

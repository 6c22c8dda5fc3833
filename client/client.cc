#include "client/client.h"

#include <array>
#include <utility>

#include "client/channel.h"
#include "ebbgate/v1/rate_limiter.grpc.pb.h"
#include "google/rpc/error_details.pb.h"

namespace ebbgate::client {
namespace {

absl::Duration FromProto(const google::protobuf::Duration& length) {
  return absl::Seconds(length.seconds()) + absl::Nanoseconds(length.nanos());
}

Reason FromProto(v1::Reason reason) {
  switch (reason) {
    case v1::SHADOWED:
      return Reason::kShadowed;
    case v1::QUOTA_EXCEEDED:
      return Reason::kQuotaExceeded;
    case v1::COST_EXCEEDS_CAPACITY:
      return Reason::kCostExceedsCapacity;
    default:
      return Reason::kAllowed;
  }
}

OnUnavailable FromProto(v1::OnUnavailable advice) {
  switch (advice) {
    case v1::ON_UNAVAILABLE_ALLOW:
      return OnUnavailable::kAllow;
    case v1::ON_UNAVAILABLE_DENY:
      return OnUnavailable::kDeny;
    default:
      return OnUnavailable::kUnknown;
  }
}

ChargeAnswer FromProto(const v1::ChargeResult& result) {
  ChargeAnswer answer;
  answer.limit = result.limit();
  answer.remaining = result.remaining();
  answer.capacity = result.capacity();
  if (result.has_retry_after()) answer.retry_after = FromProto(result.retry_after());
  answer.reset_after = FromProto(result.reset_after());
  answer.reason = FromProto(result.reason());
  answer.tightest = result.tightest();
  answer.on_unavailable = FromProto(result.on_unavailable());
  return answer;
}

Answer FromProto(const v1::ShouldAllowResponse& response) {
  Answer answer;
  answer.allowed = response.allowed();
  answer.reason = FromProto(response.reason());
  for (const v1::ChargeResult& result : response.charges()) answer.charges.push_back(FromProto(result));
  if (response.has_retry_after()) answer.retry_after = FromProto(response.retry_after());
  answer.replayed = response.replayed();
  return answer;
}

absl::Status FromProto(const google::rpc::Status& error) {
  absl::Status status(static_cast<absl::StatusCode>(error.code()), error.message());
  for (const google::protobuf::Any& detail : error.details()) {
    status.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  }
  return status;
}

void ToProto(const Call& call, v1::ShouldAllowRequest& request) {
  for (const Charge& charge : call.charges) {
    v1::Charge& to = *request.add_charges();
    to.set_limit(charge.limit);
    to.set_key(charge.key);
    if (charge.cost.has_value()) to.set_cost(*charge.cost);
  }
  request.set_request_id(call.request_id);
  request.set_peek(call.peek);
}

// The detail of a kind that an error carries, if it does.
template <typename Detail>
std::optional<Detail> DetailOf(const absl::Status& error) {
  const std::string url = "type.googleapis.com/" + Detail::descriptor()->full_name();
  const absl::optional<absl::Cord> payload = error.GetPayload(url);
  Detail detail;
  if (!payload.has_value() || !detail.ParseFromString(std::string(*payload))) return std::nullopt;
  return detail;
}

}  // namespace

absl::string_view Name(Reason reason) {
  static constexpr std::array<absl::string_view, 4> kNames = {"ALLOWED", "SHADOWED", "QUOTA_EXCEEDED",
                                                              "COST_EXCEEDS_CAPACITY"};
  return kNames[static_cast<std::size_t>(reason)];
}

ErrorDetails DetailsOf(const absl::Status& error) {
  ErrorDetails details;
  if (const auto info = DetailOf<google::rpc::ErrorInfo>(error)) details.reason = info->reason();
  if (const auto bad = DetailOf<google::rpc::BadRequest>(error); bad && bad->field_violations_size() > 0) {
    details.field = bad->field_violations(0).field();
  }
  if (const auto retry = DetailOf<google::rpc::RetryInfo>(error)) details.retry_after = FromProto(retry->retry_delay());
  return details;
}

class Client::Impl {
 public:
  explicit Impl(std::shared_ptr<grpc::Channel> channel) : stub(v1::RateLimiter::NewStub(std::move(channel))) {}

  const std::unique_ptr<v1::RateLimiter::Stub> stub;
};

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() = default;

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(const ClientOptions& options) {
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel =
      OpenChannel(options.address, options.tls, /*own_connection=*/false);
  if (!channel.ok()) return channel.status();
  return std::unique_ptr<Client>(new Client(std::make_unique<Impl>(*std::move(channel))));
}

absl::StatusOr<Answer> Client::ShouldAllow(const Call& call, absl::Duration timeout) const {
  v1::ShouldAllowRequest request;
  ToProto(call, request);
  v1::ShouldAllowResponse response;
  grpc::ClientContext context;
  SetTimeout(context, timeout);
  const grpc::Status status = impl_->stub->ShouldAllow(&context, request, &response);
  if (!status.ok()) return FromGrpc(status);
  return FromProto(response);
}

absl::StatusOr<std::vector<absl::StatusOr<Answer>>> Client::ShouldAllowBatch(absl::Span<const Call> calls,
                                                                             absl::Duration timeout) const {
  v1::ShouldAllowBatchRequest request;
  for (const Call& call : calls) ToProto(call, *request.add_calls());
  v1::ShouldAllowBatchResponse response;
  grpc::ClientContext context;
  SetTimeout(context, timeout);
  const grpc::Status status = impl_->stub->ShouldAllowBatch(&context, request, &response);
  if (!status.ok()) return FromGrpc(status);
  if (static_cast<std::size_t>(response.outcomes_size()) != calls.size()) {
    return absl::InternalError("the server answered with another number of outcomes than there were calls");
  }
  std::vector<absl::StatusOr<Answer>> answers;
  for (const v1::ShouldAllowOutcome& outcome : response.outcomes()) {
    if (outcome.has_response()) {
      answers.emplace_back(FromProto(outcome.response()));
    } else if (outcome.has_error() && outcome.error().code() != 0) {
      answers.emplace_back(FromProto(outcome.error()));
    } else {
      answers.emplace_back(absl::InternalError("the server's outcome is neither an answer nor an error"));
    }
  }
  return answers;
}

}  // namespace ebbgate::client

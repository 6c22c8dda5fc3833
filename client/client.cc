#include "client/client.h"

#include <array>
#include <cstdint>
#include <utility>

#include "client/channel.h"
#include "client/retry.h"
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
    case v1::TOO_MUCH_DEBT:
      return Reason::kTooMuchDebt;
    case v1::TOO_MANY_HOLDS:
      return Reason::kTooManyHolds;
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

ReserveAnswer FromProto(const v1::ReserveResponse& response) {
  ReserveAnswer answer;
  answer.granted = response.granted();
  answer.reason = FromProto(response.reason());
  answer.reservation_id = response.reservation_id();
  answer.act_after = FromProto(response.act_after());
  answer.expires_after = FromProto(response.expires_after());
  for (const v1::ChargeResult& result : response.charges()) answer.charges.push_back(FromProto(result));
  if (response.has_retry_after()) answer.retry_after = FromProto(response.retry_after());
  answer.replayed = response.replayed();
  return answer;
}

HoldState FromProto(v1::HoldState state) {
  switch (state) {
    case v1::SETTLED:
      return HoldState::kSettled;
    case v1::CANCELLED:
      return HoldState::kCancelled;
    case v1::EXPIRED:
      return HoldState::kExpired;
    default:
      return HoldState::kUnknown;
  }
}

SettleAnswer FromProto(const v1::SettleResponse& response) {
  SettleAnswer answer;
  answer.state = FromProto(response.state());
  answer.repeated = response.repeated();
  for (const v1::SettledCharge& from : response.charges()) {
    SettledCharge& charge = answer.charges.emplace_back();
    charge.limit = from.limit();
    charge.key = from.key();
    charge.reserved = from.reserved();
    charge.actual = from.actual();
    charge.given_back = from.given_back();
    charge.overrun = from.overrun();
    charge.uncovered = from.uncovered();
  }
  return answer;
}

absl::Status FromProto(const google::rpc::Status& error) {
  absl::Status status(static_cast<absl::StatusCode>(error.code()), error.message());
  for (const google::protobuf::Any& detail : error.details()) {
    status.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  }
  return status;
}

template <typename Request>
void AddCharges(const std::vector<Charge>& charges, Request& request) {
  for (const Charge& charge : charges) {
    v1::Charge& to = *request.add_charges();
    to.set_limit(charge.limit);
    to.set_key(charge.key);
    if (charge.cost.has_value()) to.set_cost(*charge.cost);
  }
}

// A time beyond all bounds stays so, and is for the server to refuse.
void ToProto(absl::Duration length, google::protobuf::Duration& to) {
  absl::Duration rest;
  to.set_seconds(absl::IDivDuration(length, absl::Seconds(1), &rest));
  if (rest > -absl::Seconds(1) && rest < absl::Seconds(1)) {
    to.set_nanos(static_cast<std::int32_t>(absl::ToInt64Nanoseconds(rest)));
  }
}

void ToProto(const Call& call, v1::ShouldAllowRequest& request) {
  AddCharges(call.charges, request);
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
  static constexpr std::array<absl::string_view, 6> kNames = {
      "ALLOWED", "SHADOWED", "QUOTA_EXCEEDED", "COST_EXCEEDS_CAPACITY", "TOO_MUCH_DEBT", "TOO_MANY_HOLDS"};
  return kNames[static_cast<std::size_t>(reason)];
}

absl::string_view Name(HoldState state) {
  static constexpr std::array<absl::string_view, 4> kNames = {"UNKNOWN", "SETTLED", "CANCELLED", "EXPIRED"};
  return kNames[static_cast<std::size_t>(state)];
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
  Impl(std::shared_ptr<grpc::Channel> channel, const ClientOptions& options)
      : stub(v1::RateLimiter::NewStub(std::move(channel))),
        retry(options.retry),
        surroundings(options.surroundings != nullptr ? options.surroundings : RealSurroundings()) {}

  // Calls `method`, again and again if it `may_repeat`, and returns what `Answer` its response is.
  template <typename Answer, typename Request, typename Response>
  absl::StatusOr<Answer> Ask(grpc::Status (v1::RateLimiter::Stub::*method)(grpc::ClientContext*, const Request&,
                                                                           Response*),
                             const Request& request, bool may_repeat, absl::Duration timeout) const {
    Response response;
    const absl::Status status = Exchange(method, request, may_repeat, timeout, response);
    if (!status.ok()) return status;
    return FromProto(response);
  }

  template <typename Request, typename Response>
  absl::Status Exchange(grpc::Status (v1::RateLimiter::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                        const Request& request, bool may_repeat, absl::Duration timeout, Response& response) const {
    const auto attempt = [&](absl::Duration left) {
      grpc::ClientContext context;
      SetTimeout(context, left);
      return FromGrpc((stub.get()->*method)(&context, request, &response));
    };
    if (!may_repeat || retry.which == Retry::kNever) return attempt(timeout);
    return WithRetries(retry, *surroundings, timeout, attempt);
  }

  // Gives the call an id if it should have one. Returns whether it may be repeated.
  bool Prepare(v1::ShouldAllowRequest& call) const {
    if (call.request_id().empty() && !call.peek() && retry.which == Retry::kAlways) {
      call.set_request_id(NewRequestId(*surroundings));
    }
    return call.peek() || !call.request_id().empty();
  }

  const std::unique_ptr<v1::RateLimiter::Stub> stub;
  const RetryOptions retry;
  const std::shared_ptr<Surroundings> surroundings;
};

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() = default;

Surroundings& Client::surroundings() const { return *impl_->surroundings; }

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(const ClientOptions& options) {
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel =
      OpenChannel(options.address, options.tls, /*own_connection=*/false);
  if (!channel.ok()) return channel.status();
  return std::unique_ptr<Client>(new Client(std::make_unique<Impl>(*std::move(channel), options)));
}

absl::StatusOr<Answer> Client::ShouldAllow(const Call& call, absl::Duration timeout) const {
  v1::ShouldAllowRequest request;
  ToProto(call, request);
  const bool may_repeat = impl_->Prepare(request);
  return impl_->Ask<Answer>(&v1::RateLimiter::Stub::ShouldAllow, request, may_repeat, timeout);
}

absl::StatusOr<std::vector<absl::StatusOr<Answer>>> Client::ShouldAllowBatch(absl::Span<const Call> calls,
                                                                             absl::Duration timeout) const {
  v1::ShouldAllowBatchRequest request;
  bool may_repeat = true;
  for (const Call& call : calls) {
    v1::ShouldAllowRequest& to = *request.add_calls();
    ToProto(call, to);
    may_repeat = impl_->Prepare(to) && may_repeat;
  }
  v1::ShouldAllowBatchResponse response;
  const absl::Status status =
      impl_->Exchange(&v1::RateLimiter::Stub::ShouldAllowBatch, request, may_repeat, timeout, response);
  if (!status.ok()) return status;
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

absl::StatusOr<ReserveAnswer> Client::Reserve(const ReserveCall& call, absl::Duration timeout) const {
  v1::ReserveRequest request;
  AddCharges(call.charges, request);
  ToProto(call.max_wait, *request.mutable_max_wait());
  if (call.hold_for.has_value()) ToProto(*call.hold_for, *request.mutable_hold_for());
  request.set_request_id(call.request_id);
  if (call.request_id.empty() && impl_->retry.which != Retry::kNever) {
    request.set_request_id(NewRequestId(*impl_->surroundings));
  }
  return impl_->Ask<ReserveAnswer>(&v1::RateLimiter::Stub::Reserve, request, !request.request_id().empty(), timeout);
}

absl::StatusOr<SettleAnswer> Client::Settle(const std::string& reservation_id, absl::Span<const std::int64_t> actual,
                                            absl::Duration timeout) const {
  v1::SettleRequest request;
  request.set_reservation_id(reservation_id);
  for (const std::int64_t cost : actual) request.add_actual(cost);
  return impl_->Ask<SettleAnswer>(&v1::RateLimiter::Stub::Settle, request, /*may_repeat=*/true, timeout);
}

absl::StatusOr<SettleAnswer> Client::Cancel(const std::string& reservation_id, absl::Duration timeout) const {
  v1::CancelRequest request;
  request.set_reservation_id(reservation_id);
  return impl_->Ask<SettleAnswer>(&v1::RateLimiter::Stub::Cancel, request, /*may_repeat=*/true, timeout);
}

}  // namespace ebbgate::client

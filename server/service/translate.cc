#include "server/service/translate.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"
#include "server/limiter/amount.h"
#include "server/limiter/bounds.h"

namespace ebbgate {
namespace {

constexpr char kErrorDomain[] = "ebbgate";

// How long to wait before asking again, by what is in the way: a burst of calls is over at once, a full table empties
// at the pace at which buckets fill, and a server that is going away is best left by the next attempt.
std::int64_t RetryDelayNs(ErrorReason reason) {
  switch (reason) {
    case ErrorReason::kOverloaded:
      return 100'000'000;
    case ErrorReason::kDraining:
      return 0;
    default:
      return kNsPerSecond;
  }
}

// One charge more than is allowed is enough for the engine to say so.
int ChargesToCarry(const v1::ShouldAllowRequest& request) {
  return std::min(request.charges_size(), static_cast<int>(kMaxChargesPerCall) + 1);
}

// Appends to `charges`, which has room: spans into it must stay good.
CallRequest Append(const v1::ShouldAllowRequest& request, std::vector<ChargeRequest>& charges) {
  const std::size_t first = charges.size();
  const int count = ChargesToCarry(request);
  for (int i = 0; i < count; ++i) {
    const v1::Charge& charge = request.charges(i);
    ChargeRequest& added = charges.emplace_back();
    added.limit = charge.limit();
    added.key = charge.key();
    if (charge.has_cost()) added.cost = charge.cost();
  }
  CallRequest call;
  call.charges = absl::MakeConstSpan(charges.data() + first, charges.size() - first);
  call.request_id = request.request_id();
  call.peek = request.peek();
  return call;
}

void PackDetail(const google::protobuf::Message& detail, google::rpc::Status& status) {
  status.add_details()->PackFrom(detail);
}

}  // namespace

v1::Reason ToWire(Reason reason) {
  switch (reason) {
    case Reason::kAllowed:
      return v1::ALLOWED;
    case Reason::kShadowed:
      return v1::SHADOWED;
    case Reason::kQuotaExceeded:
      return v1::QUOTA_EXCEEDED;
    case Reason::kCostExceedsCapacity:
      return v1::COST_EXCEEDS_CAPACITY;
  }
  return v1::REASON_UNSPECIFIED;
}

v1::OnUnavailable ToWire(OnUnavailable advice) {
  return advice == OnUnavailable::kAllow ? v1::ON_UNAVAILABLE_ALLOW : v1::ON_UNAVAILABLE_DENY;
}

void ToWire(std::int64_t ns, google::protobuf::Duration& duration) {
  duration.set_seconds(ns / kNsPerSecond);
  duration.set_nanos(static_cast<std::int32_t>(ns % kNsPerSecond));
}

CallRequest FromWire(const v1::ShouldAllowRequest& request, std::vector<ChargeRequest>& charges) {
  charges.clear();
  charges.reserve(static_cast<std::size_t>(ChargesToCarry(request)));
  return Append(request, charges);
}

void ToWire(const CallRequest& call, const CallAnswer& answer, v1::ShouldAllowResponse& response) {
  response.set_allowed(answer.allowed);
  response.set_reason(ToWire(answer.reason));
  response.set_replayed(answer.replayed);
  if (answer.retry_after_ns != kNoWait) ToWire(answer.retry_after_ns, *response.mutable_retry_after());
  response.mutable_charges()->Reserve(static_cast<int>(answer.charges.size()));
  for (std::size_t i = 0; i < answer.charges.size(); ++i) {
    const ChargeAnswer& charge = answer.charges[i];
    v1::ChargeResult& result = *response.add_charges();
    result.set_limit(call.charges[i].limit.data(), call.charges[i].limit.size());
    result.set_remaining(charge.remaining);
    result.set_capacity(charge.capacity);
    if (charge.retry_after_ns != kNoWait) ToWire(charge.retry_after_ns, *result.mutable_retry_after());
    ToWire(charge.reset_after_ns, *result.mutable_reset_after());
    result.set_reason(ToWire(charge.reason));
    result.set_tightest(charge.tightest);
    result.set_on_unavailable(ToWire(charge.on_unavailable));
  }
}

void ToRpcStatus(const CallError& error, absl::string_view field_prefix, google::rpc::Status& status) {
  const std::string field = error.field.empty() ? std::string() : absl::StrCat(field_prefix, error.field);
  status.set_code(static_cast<int>(error.code()));
  status.set_message(field.empty() ? error.message : absl::StrCat(field, ": ", error.message));
  google::rpc::ErrorInfo info;
  const absl::string_view reason = ErrorReasonName(error.reason);
  info.set_reason(reason.data(), reason.size());
  info.set_domain(kErrorDomain);
  if (!field.empty()) (*info.mutable_metadata())["field"] = field;
  PackDetail(info, status);
  if (error.code() == absl::StatusCode::kInvalidArgument) {
    google::rpc::BadRequest bad;
    google::rpc::BadRequest::FieldViolation& violation = *bad.add_field_violations();
    violation.set_field(field);
    violation.set_description(error.message);
    PackDetail(bad, status);
  }
  if (error.code() == absl::StatusCode::kUnavailable) {
    google::rpc::RetryInfo retry;
    ToWire(RetryDelayNs(error.reason), *retry.mutable_retry_delay());
    PackDetail(retry, status);
  }
}

grpc::Status ToGrpcStatus(const CallError& error) {
  google::rpc::Status status;
  ToRpcStatus(error, "", status);
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), status.message(), status.SerializeAsString());
}

}  // namespace ebbgate

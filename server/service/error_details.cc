#include "server/service/error_details.h"

#include <google/protobuf/util/time_util.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"
#include "server/limiter/amount.h"

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

void PackDetail(const google::protobuf::Message& detail, google::rpc::Status& status) {
  status.add_details()->PackFrom(detail);
}

}  // namespace

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
    *retry.mutable_retry_delay() = google::protobuf::util::TimeUtil::NanosecondsToDuration(RetryDelayNs(error.reason));
    PackDetail(retry, status);
  }
}

grpc::Status ToGrpcStatus(const CallError& error) {
  google::rpc::Status status;
  ToRpcStatus(error, "", status);
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), status.message(), status.SerializeAsString());
}

}  // namespace ebbgate

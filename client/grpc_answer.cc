#include "client/grpc_answer.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace ebbgate::client {

grpc::Status ToGrpcStatus(const Answer& answer) {
  if (answer.allowed) return grpc::Status::OK;
  google::rpc::ErrorInfo info;
  info.set_domain("ebbgate");
  info.set_reason(std::string(Name(answer.reason)));
  google::rpc::QuotaFailure quota;
  for (const ChargeAnswer& charge : answer.charges) {
    const bool never = charge.reason == Reason::kCostExceedsCapacity;
    if (!never && charge.reason != Reason::kQuotaExceeded) continue;
    auto& violation = *quota.add_violations();
    violation.set_subject(charge.limit);
    violation.set_description(never ? absl::StrCat("the cost is above the capacity of ", charge.capacity)
                                    : absl::StrCat(charge.remaining, " of ", charge.capacity, " left"));
  }

  google::rpc::Status status;
  status.set_code(grpc::StatusCode::RESOURCE_EXHAUSTED);
  std::string message = answer.reason == Reason::kCostExceedsCapacity ? "more than the limit can ever allow"
                                                                      : "the limit is used up for now";
  if (answer.retry_after.has_value())
    absl::StrAppend(&message, "; retry after ", absl::FormatDuration(*answer.retry_after));
  status.set_message(message);
  status.add_details()->PackFrom(info);
  status.add_details()->PackFrom(quota);
  if (answer.retry_after.has_value()) {
    google::rpc::RetryInfo retry;
    const std::int64_t seconds = absl::ToInt64Seconds(*answer.retry_after);
    retry.mutable_retry_delay()->set_seconds(seconds);
    retry.mutable_retry_delay()->set_nanos(
        static_cast<std::int32_t>(absl::ToInt64Nanoseconds(*answer.retry_after - absl::Seconds(seconds))));
    status.add_details()->PackFrom(retry);
  }
  return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, message, status.SerializeAsString());
}

}  // namespace ebbgate::client

#include "server/service/drift_methods.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "ebbgate/v1/admin.pb.h"
#include "ebbgate/v1/rate_limiter.pb.h"
#include "google/protobuf/util/time_util.h"
#include "server/limiter/amount.h"
#include "server/service/error_details.h"
#include "server/service/proto_method.h"

namespace ebbgate {
namespace {

using google::protobuf::util::TimeUtil;

CallError Error(ErrorReason reason, absl::string_view field, absl::string_view message) {
  return CallError{reason, std::string(field), std::string(message)};
}

// What the detector says, "field: reason", in the words of the API.
CallError Translate(const absl::Status& status) {
  const absl::string_view message = status.message();
  if (absl::IsResourceExhausted(status)) return Error(ErrorReason::kReportersFull, "", message);
  const std::size_t colon = message.find(": ");
  const ErrorReason reason = absl::IsNotFound(status) ? ErrorReason::kUnknownLimit : ErrorReason::kInvalidField;
  return Error(reason, message.substr(0, colon), message.substr(colon + 2));
}

// Nanoseconds since the epoch; nothing for what is no time, or beyond the year 2262.
std::optional<std::int64_t> ToWallNs(const google::protobuf::Timestamp& time) {
  if (time.nanos() < 0 || time.nanos() >= kNsPerSecond) return std::nullopt;
  const Int128 ns = static_cast<Int128>(time.seconds()) * kNsPerSecond + time.nanos();
  if (ns != Saturate(ns)) return std::nullopt;
  return static_cast<std::int64_t>(ns);
}

grpc::Status ReportObserved(const DriftParts& parts, const v1::ReportObservedRequest& request) {
  const auto refuse = [&](const CallError& error) {
    parts.counters.CountError(error.reason);
    return ToGrpcStatus(error);
  };
  if (!request.has_start_time()) return refuse(Error(ErrorReason::kInvalidField, "start_time", "is missing"));
  const std::optional<std::int64_t> start_wall_ns = ToWallNs(request.start_time());
  if (!start_wall_ns) return refuse(Error(ErrorReason::kInvalidField, "start_time", "is not a valid time"));
  std::vector<ObservedReport::Total> totals;
  totals.reserve(static_cast<std::size_t>(request.totals_size()));
  for (const v1::ObservedTotal& each : request.totals()) totals.push_back({each.limit(), each.total()});
  const absl::Status status = parts.drift.Report({.reporter = request.reporter(),
                                                  .instance = request.instance(),
                                                  .start_wall_ns = *start_wall_ns,
                                                  .totals = totals},
                                                 parts.time.MonotonicNs());
  return status.ok() ? grpc::Status::OK : refuse(Translate(status));
}

v1::DriftState ToWire(DriftState state) {
  switch (state) {
    case DriftState::kOk:
      return v1::DRIFT_STATE_OK;
    case DriftState::kSuspect:
      return v1::DRIFT_STATE_SUSPECT;
    case DriftState::kDrifting:
      return v1::DRIFT_STATE_DRIFTING;
  }
  return v1::DRIFT_STATE_UNSPECIFIED;
}

void Describe(const LimitDrift& drift, std::int64_t now_ns, v1::LimitDrift& info) {
  const auto ago = [now_ns](std::int64_t then_ns) {
    return TimeUtil::NanosecondsToDuration(std::max<std::int64_t>(0, now_ns - then_ns));
  };
  info.set_limit(drift.limit);
  info.set_state(ToWire(drift.reading.state));
  info.set_admitted(drift.reading.admitted);
  info.set_received(drift.reading.received);
  *info.mutable_span() = TimeUtil::NanosecondsToDuration(drift.reading.span_ns);
  if (drift.reading.out_since_ns) *info.mutable_out_of_bounds_for() = ago(*drift.reading.out_since_ns);
  if (drift.last_report_ns) *info.mutable_last_report_age() = ago(*drift.last_report_ns);
  info.set_ratio_millionths(drift.settings.ratio_micros);
  *info.mutable_window() = TimeUtil::NanosecondsToDuration(drift.settings.window_ns);
  info.set_minimum(drift.settings.minimum);
  info.set_received_total(drift.received);
  for (const auto& [reporter, total] : drift.reporters) {
    v1::ReporterTotal& added = *info.add_reporters();
    added.set_reporter(reporter);
    added.set_total(total);
  }
}

grpc::Status GetDrift(const DriftParts& parts, const v1::GetDriftRequest& request, v1::GetDriftResponse& response) {
  const std::int64_t now_ns = parts.time.MonotonicNs();
  if (request.limit().empty()) {
    for (const LimitDrift& drift : parts.drift.Read()) Describe(drift, now_ns, *response.add_limits());
  } else if (const std::optional<LimitDrift> drift = parts.drift.Read(request.limit())) {
    Describe(*drift, now_ns, *response.add_limits());
  } else {
    return ToGrpcStatus(Error(ErrorReason::kUnknownLimit, "limit", "no limit of this name is configured"));
  }
  const DriftCounts counts = parts.drift.Counts();
  response.set_reporters(static_cast<std::uint32_t>(counts.reporters));
  response.set_instances(static_cast<std::uint32_t>(counts.instances));
  return grpc::Status::OK;
}

}  // namespace

std::vector<RpcMethod> ReportMethods(const DriftParts& parts) {
  return {ProtoMethod<v1::ReportObservedRequest, v1::ReportObservedResponse>(
      "/ebbgate.v1.RateLimiter/ReportObserved", Method::kReportObserved,
      [parts](const auto& request, auto&) { return ReportObserved(parts, request); }, &parts.counters)};
}

std::vector<RpcMethod> DriftAdminMethods(const DriftParts& parts) {
  return {ProtoMethod<v1::GetDriftRequest, v1::GetDriftResponse>(
      "/ebbgate.v1.Admin/GetDrift", Method::kGetDrift,
      [parts](const auto& request, auto& response) { return GetDrift(parts, request, response); })};
}

}  // namespace ebbgate

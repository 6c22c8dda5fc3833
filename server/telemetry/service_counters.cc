#include "server/telemetry/service_counters.h"

namespace ebbgate {
namespace {

constexpr absl::string_view kMethodNames[kMethods] = {
    "ShouldAllow",     "ShouldAllowBatch", "StreamShouldAllow", "Reserve",      "Settle",         "Cancel",
    "HttpShouldAllow", "HealthCheck",      "HealthWatch",       "Reflection",   "ReportObserved", "GetDrift",
    "InspectKey",      "ResetKey",         "ListLimits",        "ReloadLimits",
};

}  // namespace

absl::string_view Name(Method method) { return kMethodNames[static_cast<std::size_t>(method)]; }

ServiceCounters::Snapshot ServiceCounters::Read() const {
  Snapshot snapshot;
  for (std::size_t method = 0; method < kMethods; ++method) {
    // The end is read before the start: a call that ends in between then counts as in flight, never as less than none.
    const std::uint64_t ended = cells_.Sum(kEndedCell + method);
    const std::uint64_t started = cells_.Sum(kStartedCell + method);
    snapshot.in_flight[method] = started > ended ? started - ended : 0;
    for (std::size_t code = 0; code < kStatusCodes; ++code) {
      snapshot.ended[method][code] = cells_.Sum(kCodesCell + method * kStatusCodes + code);
    }
  }
  for (std::size_t reason = 0; reason < kErrorReasons; ++reason) {
    snapshot.errors[reason] = cells_.Sum(kErrorsCell + reason);
  }
  snapshot.stream_messages = cells_.Sum(kStreamMessagesCell);
  return snapshot;
}

}  // namespace ebbgate

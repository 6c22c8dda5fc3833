// What was received against what was admitted, over gRPC: RateLimiter.ReportObserved and Admin.GetDrift.
#ifndef EBBGATE_SERVER_SERVICE_DRIFT_METHODS_H_
#define EBBGATE_SERVER_SERVICE_DRIFT_METHODS_H_

#include <vector>

#include "server/drift/drift_detector.h"
#include "server/limiter/moment.h"
#include "server/service/rpc_method.h"
#include "server/telemetry/service_counters.h"

namespace ebbgate {

// What the methods use; all of it outlives the server.
struct DriftParts {
  DriftDetector& drift;
  ServiceCounters& counters;
  const TimeSource& time;
};

// ReportObserved, for the port for calls.
std::vector<RpcMethod> ReportMethods(const DriftParts& parts);

// GetDrift, for the admin port.
std::vector<RpcMethod> DriftAdminMethods(const DriftParts& parts);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_SERVICE_DRIFT_METHODS_H_

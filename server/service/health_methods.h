// grpc.health.v1.Health: whether this process should be sent calls, as Readiness says.
#ifndef EBBGATE_SERVER_SERVICE_HEALTH_METHODS_H_
#define EBBGATE_SERVER_SERVICE_HEALTH_METHODS_H_

#include <string>
#include <vector>

#include "server/service/readiness.h"
#include "server/service/rpc_method.h"

namespace ebbgate {

// Check and Watch. They know `services` and the empty name, for the server as a whole, all with the same state; another
// name is NOT_FOUND for Check and SERVICE_UNKNOWN for Watch. For Watch to tell of changes, somebody calls WakeFeeds of
// the server after each.
std::vector<RpcMethod> HealthMethods(const Readiness& readiness, const std::vector<std::string>& services);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_SERVICE_HEALTH_METHODS_H_

// ebbgate.v1.Admin: what an operator asks, over the engine and the limits file. For the admin port only.
#ifndef EBBGATE_SERVER_SERVICE_ADMIN_METHODS_H_
#define EBBGATE_SERVER_SERVICE_ADMIN_METHODS_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/engine.h"
#include "server/service/rpc_method.h"
#include "server/telemetry/logging.h"
#include "server/telemetry/service_counters.h"

namespace ebbgate {

// What the methods use; all of it outlives the server.
struct AdminParts {
  Engine& engine;
  // Loads the limits file now; whether the limits in force changed.
  std::function<absl::StatusOr<bool>()> reload;
  ServiceCounters& counters;
  EventLog& log;
};

// InspectKey, ResetKey, ListLimits, ReloadLimits.
std::vector<RpcMethod> AdminMethods(const AdminParts& parts);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_SERVICE_ADMIN_METHODS_H_

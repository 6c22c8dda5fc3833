// ebbgate.v1.RateLimiter over the engine: decode, decide, encode.
#ifndef EBBGATE_SERVER_SERVICE_RATE_LIMITER_METHODS_H_
#define EBBGATE_SERVER_SERVICE_RATE_LIMITER_METHODS_H_

#include <vector>

#include "server/engine/engine.h"
#include "server/limiter/moment.h"
#include "server/service/rpc_method.h"
#include "server/telemetry/latency.h"
#include "server/telemetry/service_counters.h"

namespace ebbgate {

// What the methods use; all of it outlives the server.
struct RateLimiterParts {
  Engine& engine;
  LatencyRecorder& latency;
  ServiceCounters& counters;
  const TimeSource& time;
};

// ShouldAllow, ShouldAllowBatch, StreamShouldAllow, Reserve, Settle, Cancel. Handlers keep their memory from call to
// call: in steady state a decision allocates nothing but the message that leaves.
std::vector<RpcMethod> RateLimiterMethods(const RateLimiterParts& parts);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_SERVICE_RATE_LIMITER_METHODS_H_

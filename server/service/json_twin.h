// ShouldAllow for those who speak HTTP and JSON: the body of a request to the body, code and fields of its answer.
//
// Thread-safety: pure but for the engine and the counters, which are thread-safe. Bounded by the body's size, which the
// caller bounds, and by the parser's limit of nesting. Cost: some 20 us.
#ifndef EBBGATE_SERVER_SERVICE_JSON_TWIN_H_
#define EBBGATE_SERVER_SERVICE_JSON_TWIN_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/engine/engine.h"
#include "server/telemetry/latency.h"
#include "server/telemetry/service_counters.h"

namespace ebbgate {

struct HttpAnswer {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> fields;
  std::string body;  // JSON
};

// Where decisions are made, and counted.
struct TwinParts {
  Engine& engine;
  LatencyRecorder& latency;
  ServiceCounters& counters;
  const TimeSource& time;
};

// `body` is a ShouldAllowRequest in the JSON form of protobuf. 200: allowed; 429: denied; both with the answer as JSON,
// the fields RateLimit and RateLimit-Policy of draft-ietf-httpapi-ratelimit-headers-10, and Retry-After where waiting
// helps. Otherwise the error as JSON of google.rpc.Status: 400, 404, 503 (with Retry-After) or 504.
HttpAnswer AnswerShouldAllow(absl::string_view body, const TwinParts& parts);

// A google.rpc.Status without details, as JSON, for what went wrong before there was a call.
std::string ErrorJson(absl::StatusCode code, absl::string_view message);

// Whole seconds, rounded up and never 0: acting then is not too early. Pre: ns >= 0.
std::int64_t RetryAfterSeconds(std::int64_t ns);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_SERVICE_JSON_TWIN_H_

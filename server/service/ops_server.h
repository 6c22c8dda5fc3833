// The operations port, HTTP/1.1: what Prometheus, Kubernetes and people with curl ask.
//
//   GET  /metrics          for Prometheus (text format; gzip if asked for)
//   GET  /healthz          200 while the process lives
//   GET  /readyz           200 when ready for calls, else 503 with the reasons; and what else people should know
//   POST /v1/should_allow  ShouldAllow as protobuf JSON: 200 allowed, 429 denied, else google.rpc.Status as JSON
//   GET  /                 a short index
//
// Plain HTTP, no TLS and nobody asked for a password: keep it on loopback, or inside a pod's network. A web page that
// somebody's browser shows cannot reach the decisions even there: should_allow takes only application/json, which
// browsers do not send to another origin without asking it first, and nothing here answers that question with yes.
//
// Thread-safety: everything from any thread. Ownership: what the surface points at outlives the server. Bounded:
// connections, time and bytes a request may take, and requests a connection may make (see ops_server.cc); more
// connections than that are closed at once.
#ifndef EBBGATE_SERVER_SERVICE_OPS_SERVER_H_
#define EBBGATE_SERVER_SERVICE_OPS_SERVER_H_

#include <prometheus/collectable.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/config/listen_address.h"
#include "server/engine/engine.h"
#include "server/service/readiness.h"
#include "server/telemetry/latency.h"
#include "server/telemetry/logging.h"
#include "server/telemetry/service_counters.h"

namespace ebbgate {

struct OpsSurface {
  Engine& engine;
  const Readiness& readiness;
  const prometheus::Collectable& metrics;
  LatencyRecorder& latency;
  ServiceCounters& counters;
  EventLog& log;
  const TimeSource& time;
  // What /readyz tells beside the reasons, as lines for people; none of it makes the server less ready.
  std::function<std::vector<std::string>()> information = {};
};

class OpsServer {
 public:
  // Listens at `address` and serves from now on. `json_twin` off: should_allow is answered with 404. Fails at once for
  // a port in use, saying what to do.
  static absl::StatusOr<std::unique_ptr<OpsServer>> Start(const ListenAddress& address, bool json_twin,
                                                          const OpsSurface& surface);
  ~OpsServer();  // Stop
  OpsServer(const OpsServer&) = delete;
  OpsServer& operator=(const OpsServer&) = delete;

  // Where it listens, with the actual port: "127.0.0.1:7371".
  const std::string& address() const;
  int port() const;

  // Takes no more connections, lets requests that run finish (they are short), and returns when no thread is left.
  void Stop();

 private:
  class Impl;
  explicit OpsServer(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_SERVICE_OPS_SERVER_H_

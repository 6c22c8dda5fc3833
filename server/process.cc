#include "server/process.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_join.h"
#include "server/config/limits_file.h"
#include "server/config/limits_watcher.h"
#include "server/drift/drift_detector.h"
#include "server/drift_upkeep.h"
#include "server/engine/engine.h"
#include "server/service/admin_methods.h"
#include "server/service/drift_methods.h"
#include "server/service/health_methods.h"
#include "server/service/ops_server.h"
#include "server/service/rate_limiter_methods.h"
#include "server/service/readiness.h"
#include "server/service/reflection_methods.h"
#include "server/service/rpc_server.h"
#include "server/telemetry/library_logs.h"
#include "server/telemetry/metrics.h"
#include "server/ticker.h"

namespace ebbgate {
namespace {

constexpr char kStarting[] = "starting";
constexpr char kDraining[] = "draining";
constexpr char kRateLimiterService[] = "ebbgate.v1.RateLimiter";
constexpr char kAdminService[] = "ebbgate.v1.Admin";
constexpr char kHealthService[] = "grpc.health.v1.Health";

// Forgets full buckets and old request ids, watches the wall clock, and judges drift.
constexpr std::chrono::milliseconds kMaintainEvery(100);
// An operator or two; the port is loopback unless told otherwise.
constexpr std::int64_t kMaxAdminCallsInFlight = 100;
// How often the end of a drain looks for a second signal.
constexpr std::int64_t kDrainStepNs = 20'000'000;

using Methods = std::vector<RpcMethod>;

void Append(Methods more, Methods& methods) { std::move(more.begin(), more.end(), std::back_inserter(methods)); }

// The methods of one port: its service, health, and reflection if wanted.
Methods MethodsOfPort(Methods methods, const std::string& service, const Readiness& readiness, bool reflection) {
  Append(HealthMethods(readiness, {service}), methods);
  if (reflection) Append(ReflectionMethods({service, kHealthService}), methods);
  return methods;
}

// The port for calls.
absl::StatusOr<std::unique_ptr<RpcServer>> StartCalls(const ServerOptions& options, Methods methods,
                                                      const Readiness& readiness, ServiceCounters& counters) {
  return RpcServer::Start({.listen = options.listen,
                           .tls = options.tls,
                           .threads = options.threads,
                           .max_calls_in_flight = options.max_calls_in_flight,
                           .max_connection_age_ns = options.max_connection_age_ns},
                          MethodsOfPort(std::move(methods), kRateLimiterService, readiness, options.reflection_on()),
                          counters);
}

absl::StatusOr<std::unique_ptr<RpcServer>> StartAdmin(const ServerOptions& options, Methods methods,
                                                      const Readiness& readiness, RpcServer& calls,
                                                      ServiceCounters& counters) {
  const bool reflection = options.reflection.value_or(options.admin_listen.is_local());
  return RpcServer::Start({.listen = {options.admin_listen},
                           .tls = options.tls,
                           .threads = 1,
                           .max_calls_in_flight = kMaxAdminCallsInFlight,
                           .max_connection_age_ns = options.max_connection_age_ns,
                           .sockets_of = &calls},
                          MethodsOfPort(std::move(methods), kAdminService, readiness, reflection), counters);
}

int Fail(const absl::Status& status, EventLog& log) {
  log.Error("start_failed", {{"error", status.message()}});
  return kExitFailure;
}

void LogReload(const ReloadEvent& event, const std::string& file, EventLog& log) {
  if (!event.status.ok()) {
    log.Error("limits_rejected", {{"file", file}, {"error", event.status.message()}});
    return;
  }
  for (const std::string& warning : event.warnings) log.Warning("limits_warning", {{"warning", warning}});
  log.Info("limits_loaded", {{"file", file}, {"limits", event.limits}, {"changed", event.changed}});
}

// Answers SIGHUP; returns at a signal to stop.
void ServeUntilToldToStop(const Signals& signals, LimitsWatcher& watcher, EventLog& log) {
  for (;;) {
    const int signal = signals.Wait();
    if (signal != SIGHUP) {
      log.Info("stopping", {{"signal", signal == SIGINT ? "SIGINT" : "SIGTERM"}});
      return;
    }
    // What comes of it is logged by LogReload.
    (void)watcher.ReloadNow();
  }
}

// Waits, unless another signal to stop comes meanwhile. Returns whether the time was waited out.
bool Wait(std::int64_t ns, const Signals& signals) {
  const std::int64_t end_ns = SystemTime().MonotonicNs() + ns;
  for (std::int64_t left_ns = ns; left_ns > 0; left_ns = end_ns - SystemTime().MonotonicNs()) {
    const std::optional<int> signal = signals.WaitFor(left_ns);
    if (signal && *signal != SIGHUP) return false;
  }
  return true;
}

// Still answers for the drain delay, then lets calls in flight finish for the drain timeout, then ends them.
void Drain(const ServerOptions& options, const Signals& signals, RpcServer& server, EventLog& log) {
  bool hurried = !Wait(options.drain_delay_ns, signals);
  server.BeginStop();
  const std::int64_t end_ns = SystemTime().MonotonicNs() + options.drain_timeout_ns;
  bool stopped = server.AwaitStopped(0);
  while (!stopped && !hurried && SystemTime().MonotonicNs() < end_ns) {
    stopped = server.AwaitStopped(kDrainStepNs);
    hurried = !Wait(1, signals);
  }
  if (!stopped) {
    log.Warning("calls_cancelled", {{"cause", hurried ? "second signal" : "drain timeout"}});
    server.CancelCalls();
  }
}

void LogServing(const ServerOptions& options, const RpcServer& calls, const OpsServer& ops, const RpcServer& admin,
                EventLog& log) {
  log.Info("serving", {{"version", EBBGATE_VERSION},
                       {"calls", absl::StrJoin(calls.addresses(), ",")},
                       {"ops", ops.address()},
                       {"admin", admin.addresses().front()},
                       {"tls", options.tls.enabled()}});
}

}  // namespace

int CheckConfig(const ServerOptions& options) {
  const absl::StatusOr<std::vector<Limit>> limits = LoadLimits(options.limits);
  if (!limits.ok()) {
    std::cerr << limits.status().message() << std::endl;
    return kExitBadOptions;
  }
  for (const std::string& warning : LintLimits(*limits)) std::cout << "warning: " << warning << '\n';
  std::cout << options.limits << ": " << limits->size() << (limits->size() == 1 ? " limit" : " limits") << ", all valid"
            << std::endl;
  return 0;
}

int RunServer(const ServerOptions& options, const Signals& signals) {
  EventLog log({.json = options.log_format == LogFormat::kJson,
                .level = LogLevelNamed(options.log_level).value_or(LogLevel::kInfo),
                .sink = nullptr});
  const LibraryLogs library_logs(log);
  const TimeSource& time = SystemTime();

  Engine engine(options.engine, time);
  DriftDetector drift;
  absl::StatusOr<std::unique_ptr<LimitsWatcher>> watcher = LimitsWatcher::Start(
      options.limits,
      [&](std::vector<Limit> limits) {
        drift.Watch(limits, time.WallNs());
        return engine.InstallLimits(std::move(limits));
      },
      [&](const ReloadEvent& event) { LogReload(event, options.limits, log); });
  if (!watcher.ok()) {
    Fail(watcher.status(), log);
    return kExitBadOptions;
  }
  DriftUpkeep drift_upkeep(engine, time, drift, log);
  const Ticker maintenance(kMaintainEvery, [&] {
    engine.Maintain();
    drift_upkeep.Tick();
  });

  LatencyRecorder latency;
  ServiceCounters counters;
  const Metrics metrics({.engine = engine,
                         .engine_options = options.engine,
                         .latency = latency,
                         .service = counters,
                         .reload_status = [&watcher] { return (*watcher)->Status(); },
                         .drift = drift,
                         .build = {EBBGATE_VERSION}});
  Readiness readiness({kStarting});

  const auto ops = OpsServer::Start(
      options.ops_listen, options.json_twin_on(),
      {engine, readiness, metrics, latency, counters, log, time, [&drift] { return DriftLines(drift); }});
  if (!ops.ok()) return Fail(ops.status(), log);

  const DriftParts drift_parts{drift, counters, time};
  Methods call_methods = RateLimiterMethods({engine, latency, counters, time});
  Append(ReportMethods(drift_parts), call_methods);
  const auto calls = StartCalls(options, std::move(call_methods), readiness, counters);
  if (!calls.ok()) return Fail(calls.status(), log);

  Methods admin_methods = AdminMethods({engine, [&watcher] { return (*watcher)->ReloadNow(); }, counters, log});
  Append(DriftAdminMethods(drift_parts), admin_methods);
  const auto admin = StartAdmin(options, std::move(admin_methods), readiness, **calls, counters);
  if (!admin.ok()) return Fail(admin.status(), log);

  const Readiness::ListenerId listener = readiness.AddListener([&] {
    (*calls)->WakeFeeds();
    (*admin)->WakeFeeds();
  });
  const absl::Cleanup remove_listener = [&] { readiness.RemoveListener(listener); };

  readiness.Clear(kStarting);
  LogServing(options, **calls, **ops, **admin, log);
  ServeUntilToldToStop(signals, **watcher, log);
  readiness.Block(kDraining);
  Drain(options, signals, **calls, log);
  log.Info("stopped");
  return 0;
}

}  // namespace ebbgate

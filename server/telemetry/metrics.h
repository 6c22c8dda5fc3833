// Everything that Ebbgate tells Prometheus, gathered when it is asked for.
//
// All series that can ever be exist from the first scrape, at 0; those of a reporter from its first report. Labels come
// from closed sets: names of configured limits, outcomes, reasons, methods, codes, and up to kMaxReporters reporters. A
// user's key, or the name of a limit that is not configured, is never one.
//
// Thread-safety: Collect from any thread; a scrape disturbs decisions no more than Engine::Counters does. Ownership:
// what the sources point at outlives this. Cost: some microseconds a limit.
#ifndef EBBGATE_SERVER_TELEMETRY_METRICS_H_
#define EBBGATE_SERVER_TELEMETRY_METRICS_H_

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <functional>
#include <string>
#include <vector>

#include "server/config/limits_watcher.h"
#include "server/drift/drift_detector.h"
#include "server/engine/engine.h"
#include "server/telemetry/latency.h"
#include "server/telemetry/service_counters.h"

namespace ebbgate {

struct BuildInfo {
  std::string version;
};

struct MetricsSources {
  const Engine& engine;
  EngineOptions engine_options;
  const LatencyRecorder& latency;
  const ServiceCounters& service;
  // Called at each scrape, from the thread that scrapes.
  std::function<ReloadStatus()> reload_status;
  const DriftDetector& drift;
  BuildInfo build;
};

class Metrics final : public prometheus::Collectable {
 public:
  explicit Metrics(MetricsSources sources);

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const MetricsSources sources_;
};

// The text format of Prometheus (version 0.0.4).
std::string ExpositionText(const prometheus::Collectable& metrics);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_TELEMETRY_METRICS_H_

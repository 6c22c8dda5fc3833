#include "server/telemetry/metrics.h"

#include <prometheus/client_metric.h>
#include <prometheus/metric_type.h>
#include <prometheus/text_serializer.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <sstream>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/telemetry/process_stats.h"

namespace ebbgate {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

using Families = std::vector<MetricFamily>;

struct Label {
  const char* name;
  absl::string_view value;
};
using Labels = std::initializer_list<Label>;

MetricFamily Family(MetricType type, const char* name, const char* help) {
  MetricFamily family;
  family.type = type;
  family.name = name;
  family.help = help;
  return family;
}
MetricFamily CounterFamily(const char* name, const char* help) { return Family(MetricType::Counter, name, help); }
MetricFamily GaugeFamily(const char* name, const char* help) { return Family(MetricType::Gauge, name, help); }

template <typename Number>
void Add(MetricFamily& family, Labels labels, Number value) {
  ClientMetric metric;
  metric.label.reserve(labels.size());
  for (const Label& label : labels) metric.label.push_back({label.name, std::string(label.value)});
  if (family.type == MetricType::Counter) {
    metric.counter.value = static_cast<double>(value);
  } else {
    metric.gauge.value = static_cast<double>(value);
  }
  family.metric.push_back(std::move(metric));
}

// A family of one series without labels.
template <typename Number>
void AddCounter(Families& out, const char* name, const char* help, Number value) {
  Add(out.emplace_back(CounterFamily(name, help)), {}, value);
}
template <typename Number>
void AddGauge(Families& out, const char* name, const char* help, Number value) {
  Add(out.emplace_back(GaugeFamily(name, help)), {}, value);
}

void AddLimits(const std::vector<LimitCounters>& limits, Families& out) {
  MetricFamily decisions = CounterFamily(
      "ebbgate_decisions_total",
      "Charges asked of a limit, by the outcome of their call: allowed, denied (quota), or failed (an error).");
  MetricFamily admitted = CounterFamily("ebbgate_admitted_cost_total", "Tokens admitted and charged to a limit.");
  MetricFamily refusals =
      CounterFamily("ebbgate_refusals_total",
                    "Charges that were a cause of their call's refusal: for now (QUOTA_EXCEEDED), for ever, or by the "
                    "limit's bounds on reservations.");
  MetricFamily shadow = CounterFamily("ebbgate_shadow_refusals_total",
                                      "Charges that a limit in shadow mode let pass and would have refused.");
  MetricFamily shadow_cost =
      CounterFamily("ebbgate_shadow_refused_cost_total", "Tokens that a limit in shadow mode would have refused.");
  MetricFamily peeks = CounterFamily("ebbgate_peeks_total", "Charges that only looked and took nothing.");
  for (const LimitCounters& limit : limits) {
    const Label name{"limit", limit.limit};
    Add(decisions, {name, {"outcome", "allowed"}}, limit.allowed);
    Add(decisions, {name, {"outcome", "denied"}}, limit.denied);
    Add(decisions, {name, {"outcome", "failed"}}, limit.failed);
    Add(admitted, {name}, limit.admitted_cost);
    Add(refusals, {name, {"reason", "QUOTA_EXCEEDED"}}, limit.refused_quota);
    Add(refusals, {name, {"reason", "COST_EXCEEDS_CAPACITY"}}, limit.refused_never);
    Add(refusals, {name, {"reason", "TOO_MUCH_DEBT"}}, limit.refused_debt);
    Add(refusals, {name, {"reason", "TOO_MANY_HOLDS"}}, limit.refused_holds);
    Add(shadow, {name}, limit.shadow_refused);
    Add(shadow_cost, {name}, limit.shadow_refused_cost);
    Add(peeks, {name}, limit.peeked);
  }
  for (MetricFamily* family : {&decisions, &admitted, &refusals, &shadow, &shadow_cost, &peeks}) {
    out.push_back(std::move(*family));
  }
}

void AddHolds(const EngineCounters& counters, const EngineOptions& options, Families& out) {
  MetricFamily open = GaugeFamily("ebbgate_holds_open", "Holds open now, one for each charge of a reservation.");
  MetricFamily ended =
      CounterFamily("ebbgate_holds_ended_total",
                    "Holds that ended, by how: settled, cancelled, or expired because nobody did either.");
  MetricFamily given_back = CounterFamily("ebbgate_given_back_cost_total", "Tokens that were reserved and not spent.");
  MetricFamily overrun =
      CounterFamily("ebbgate_overrun_cost_total", "Tokens spent beyond what was reserved, and charged as debt.");
  MetricFamily uncovered = CounterFamily("ebbgate_uncovered_cost_total",
                                         "Tokens spent beyond what was reserved and what may be owed: not charged.");
  for (const LimitCounters& limit : counters.limits) {
    const Label name{"limit", limit.limit};
    Add(open, {name}, limit.holds_open);
    Add(ended, {name, {"state", "settled"}}, limit.holds_settled);
    Add(ended, {name, {"state", "cancelled"}}, limit.holds_cancelled);
    Add(ended, {name, {"state", "expired"}}, limit.holds_expired);
    Add(given_back, {name}, limit.given_back_cost);
    Add(overrun, {name}, limit.overrun_cost);
    Add(uncovered, {name}, limit.uncovered_cost);
  }
  for (MetricFamily* family : {&open, &ended, &given_back, &overrun, &uncovered}) out.push_back(std::move(*family));
  AddGauge(out, "ebbgate_holds", "Holds open now, of all limits together.", counters.holds);
  AddGauge(out, "ebbgate_max_holds", "Holds that may be open.", options.max_holds);
  AddCounter(out, "ebbgate_holds_refused_total", "Reservations refused because too many holds were open.",
             counters.holds_refused);
}

void AddLatency(const LatencyRecorder::Snapshot& latency, Families& out) {
  MetricFamily& family = out.emplace_back(
      Family(MetricType::Histogram, "ebbgate_decision_duration_seconds",
             "Time the engine took to decide a call, in seconds; calls of a batch share its time evenly."));
  ClientMetric metric;
  std::uint64_t cumulative = 0;
  for (std::size_t bucket = 0; bucket < LatencyRecorder::kBuckets; ++bucket) {
    cumulative += latency.counts[bucket];
    metric.histogram.bucket.push_back({cumulative, static_cast<double>(LatencyRecorder::BoundNs(bucket)) / 1e9});
  }
  metric.histogram.sample_count = cumulative + latency.counts[LatencyRecorder::kBuckets];
  metric.histogram.sample_sum = static_cast<double>(latency.sum_ns) / 1e9;
  family.metric.push_back(std::move(metric));
}

void AddStore(const EngineCounters& counters, const EngineOptions& options, Families& out) {
  AddGauge(out, "ebbgate_keys", "Keys held in memory now.", counters.keys);
  AddGauge(out, "ebbgate_store_max_keys", "Keys that may be held.", options.max_keys);
  AddGauge(out, "ebbgate_store_bytes", "Memory taken by the keys held, in bytes.", counters.store_bytes);
  AddGauge(out, "ebbgate_store_max_bytes", "Memory that keys may take, in bytes.", options.max_store_bytes);
  AddCounter(out, "ebbgate_keys_expired_total", "Keys forgotten because their bucket was full again.",
             counters.keys_expired);
  AddCounter(out, "ebbgate_keys_given_up_total",
             "Keys forgotten although their bucket was not full: of limits removed long ago, too many to keep.",
             counters.keys_given_up);
  AddCounter(out, "ebbgate_keys_reset_total", "Keys reset by an operator.", counters.keys_reset);
  MetricFamily& full = out.emplace_back(CounterFamily(
      "ebbgate_store_full_total",
      "Charges for whose key no memory was left, by what was done: deny (an error) or allow (no account)."));
  Add(full, {{"policy", "deny"}}, counters.store_full_denied);
  Add(full, {{"policy", "allow"}}, counters.store_full_allowed);
}

void AddCalls(const EngineCounters& counters, Families& out) {
  AddCounter(out, "ebbgate_unknown_limit_total", "Charges that named a limit that is not configured.",
             counters.unknown_limit);
  AddCounter(out, "ebbgate_invalid_calls_total", "Calls refused as invalid (INVALID_ARGUMENT).",
             counters.invalid_calls);
  AddCounter(out, "ebbgate_replayed_calls_total",
             "Calls answered from the record of an earlier one with their request id.", counters.replayed_calls);
  AddGauge(out, "ebbgate_request_ids", "Request ids remembered now.", counters.request_ids);
  AddGauge(out, "ebbgate_request_id_bytes", "Memory taken by the request ids remembered, in bytes.",
           counters.request_id_bytes);
  AddCounter(out, "ebbgate_request_ids_refused_total", "Calls refused because no more request ids could be remembered.",
             counters.request_ids_refused);
}

void AddClocks(const EngineCounters& counters, Families& out) {
  AddCounter(out, "ebbgate_clock_regressions_total",
             "Readings of the monotonic clock that were behind the last one a bucket had seen.",
             counters.clock_regressions);
  MetricFamily& steps =
      out.emplace_back(CounterFamily("ebbgate_wall_clock_steps_total",
                                     "Steps of the system's wall clock that calendar windows followed, by direction."));
  Add(steps, {{"direction", "forward"}}, counters.wall_steps_forward);
  Add(steps, {{"direction", "back"}}, counters.wall_steps_back);
}

void AddConfiguration(const ReloadStatus& status, const LimitsInForce& limits, std::uint64_t changes, Families& out) {
  AddGauge(out, "ebbgate_config_last_reload_successful",
           "1 if the limits file was valid when it was last read, else 0.", status.last_reload_successful ? 1 : 0);
  AddGauge(out, "ebbgate_config_last_reload_success_timestamp_seconds",
           "When limits were last loaded from their file, in seconds since the epoch; 0 for never.",
           status.successes == 0 ? 0.0 : absl::ToDoubleSeconds(status.last_success - absl::UnixEpoch()));
  MetricFamily& reloads = out.emplace_back(CounterFamily(
      "ebbgate_config_reloads_total", "Times the limits file was loaded, by result; the first included."));
  Add(reloads, {{"result", "success"}}, status.successes);
  Add(reloads, {{"result", "failure"}}, status.failures);
  AddGauge(out, "ebbgate_limits", "Limits in force.", limits.limits == nullptr ? 0 : limits.limits->size());
  AddGauge(out, "ebbgate_limits_generation", "Number of the limits in force; rises when they change.",
           limits.generation);
  AddCounter(out, "ebbgate_limits_changes_total",
             "Times that limits were put in force that differed from those before.", changes);
}

void AddService(const ServiceCounters::Snapshot& service, Families& out) {
  MetricFamily in_flight =
      GaugeFamily("ebbgate_calls_in_flight", "Calls being answered now, by method; an open stream is one.");
  MetricFamily calls = CounterFamily("ebbgate_calls_total", "Calls that ended, by method and gRPC status code.");
  for (std::size_t method = 0; method < kMethods; ++method) {
    const Label name{"method", Name(static_cast<Method>(method))};
    Add(in_flight, {name}, service.in_flight[method]);
    for (std::size_t code = 0; code < kStatusCodes; ++code) {
      const std::string code_name = absl::StatusCodeToString(static_cast<absl::StatusCode>(code));
      Add(calls, {name, {"code", code_name}}, service.ended[method][code]);
    }
  }
  MetricFamily errors = CounterFamily(
      "ebbgate_errors_total", "Calls that got an error and no decision, by its reason; those inside batches too.");
  for (std::size_t reason = 0; reason < kErrorReasons; ++reason) {
    Add(errors, {{"reason", ErrorReasonName(static_cast<ErrorReason>(reason))}}, service.errors[reason]);
  }
  out.push_back(std::move(in_flight));
  out.push_back(std::move(calls));
  out.push_back(std::move(errors));
  AddCounter(out, "ebbgate_stream_messages_total", "Messages received on streams.", service.stream_messages);
}

void AddDrift(const DriftDetector& drift, Families& out) {
  MetricFamily observed = CounterFamily("ebbgate_observed_cost_total",
                                        "Tokens of a limit that a reporter says it has received (ReportObserved).");
  MetricFamily states = GaugeFamily(
      "ebbgate_drift_state",
      "1 for the state of a limit, 0 for the others: ok, suspect (what was received and what was admitted are apart), "
      "drifting (they have been for the limit's whole window).");
  for (const LimitDrift& limit : drift.Read()) {
    const Label name{"limit", limit.limit};
    for (const auto& [reporter, total] : limit.reporters) Add(observed, {name, {"reporter", reporter}}, total);
    for (const DriftState state : {DriftState::kOk, DriftState::kSuspect, DriftState::kDrifting}) {
      Add(states, {name, {"state", Name(state)}}, limit.reading.state == state ? 1 : 0);
    }
  }
  out.push_back(std::move(observed));
  out.push_back(std::move(states));
  const DriftCounts counts = drift.Counts();
  AddGauge(out, "ebbgate_observed_reporters", "Services that report what they have received.", counts.reporters);
  AddGauge(out, "ebbgate_observed_instances", "Processes that report what they have received.", counts.instances);
}

// Reports as their senders saw them end.
void AddReports(const ServiceCounters::Snapshot& service, Families& out) {
  const auto& ended = service.ended[static_cast<std::size_t>(Method::kReportObserved)];
  const std::uint64_t accepted = ended[static_cast<std::size_t>(absl::StatusCode::kOk)];
  std::uint64_t rejected = 0;
  for (const std::uint64_t of_code : ended) rejected += of_code;
  rejected -= accepted;
  MetricFamily& reports = out.emplace_back(
      CounterFamily("ebbgate_observed_reports_total", "Reports of what was received, by what became of them."));
  Add(reports, {{"result", "accepted"}}, accepted);
  Add(reports, {{"result", "rejected"}}, rejected);
}

void AddProcess(const ProcessStats& stats, Families& out) {
  const auto gauge = [&](const char* name, const char* help, const std::optional<double>& value) {
    if (value) AddGauge(out, name, help, *value);
  };
  gauge("process_start_time_seconds", "When the process started, in seconds since the epoch.",
        stats.start_time_seconds);
  gauge("process_resident_memory_bytes", "Resident memory, in bytes.", stats.resident_bytes);
  gauge("process_virtual_memory_bytes", "Virtual memory, in bytes.", stats.virtual_bytes);
  gauge("process_threads", "Threads.", stats.threads);
  gauge("process_open_fds", "Open file descriptors.", stats.open_fds);
  gauge("process_max_fds", "File descriptors that may be open.", stats.max_fds);
  if (stats.cpu_seconds) {
    AddCounter(out, "process_cpu_seconds_total", "Processor time used by user and system, in seconds.",
               *stats.cpu_seconds);
  }
}

}  // namespace

Metrics::Metrics(MetricsSources sources) : sources_(std::move(sources)) {}

std::vector<MetricFamily> Metrics::Collect() const {
  Families families;
  const EngineCounters counters = sources_.engine.Counters();
  AddLimits(counters.limits, families);
  AddHolds(counters, sources_.engine_options, families);
  AddLatency(sources_.latency.Read(), families);
  AddStore(counters, sources_.engine_options, families);
  AddCalls(counters, families);
  AddClocks(counters, families);
  AddConfiguration(sources_.reload_status(), sources_.engine.limits(), counters.limit_changes, families);
  const ServiceCounters::Snapshot service = sources_.service.Read();
  AddService(service, families);
  AddDrift(sources_.drift, families);
  AddReports(service, families);
  MetricFamily& build = families.emplace_back(
      GaugeFamily("ebbgate_build_info", "Always 1; its labels say what was built and with what."));
  Add(build, {{"version", sources_.build.version}, {"compiler", __VERSION__}}, 1);
  AddProcess(ReadProcessStats(), families);
  return families;
}

std::string ExpositionText(const prometheus::Collectable& metrics) {
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, metrics.Collect());
  return std::move(out).str();
}

}  // namespace ebbgate

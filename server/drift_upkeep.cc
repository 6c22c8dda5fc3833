#include "server/drift_upkeep.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/limiter/bounds.h"

namespace ebbgate {
namespace {

// After reading the counters, so many times as long passes before they are read again.
constexpr std::int64_t kRestPerWork = 50;

constexpr absl::string_view kTooMuch =
    "more was received than admitted: suspect the limiter's window logic before assuming a traffic spike";
constexpr absl::string_view kTooLittle =
    "more was admitted than received: work that never arrived, or a service that does not report all it receives";
constexpr absl::string_view kWithin = "what was received and what was admitted agree again, or nobody reports any more";

absl::string_view Meaning(const DriftReading& reading) {
  if (reading.state == DriftState::kOk) return kWithin;
  return reading.received > reading.admitted ? kTooMuch : kTooLittle;
}

void Log(const DriftChange& change, EventLog& log) {
  const DriftReading& reading = change.now.reading;
  const std::string span = DescribeNs(reading.span_ns);
  log.Event(reading.state == DriftState::kOk ? LogLevel::kInfo : LogLevel::kWarning, "drift_state_changed",
            {{"limit", change.now.limit},
             {"from", Name(change.before)},
             {"to", Name(reading.state)},
             {"admitted", reading.admitted},
             {"received", reading.received},
             {"span", span},
             {"meaning", Meaning(reading)}});
}

}  // namespace

std::vector<DriftChange> DriftUpkeep::Judge(std::int64_t now_ns) {
  const EngineCounters counters = engine_.Counters();
  const std::int64_t read_ns = time_.MonotonicNs();
  not_before_ns_ = read_ns + kRestPerWork * (read_ns - now_ns);
  std::vector<AdmittedCost> admitted;
  admitted.reserve(counters.limits.size());
  for (const LimitCounters& limit : counters.limits) {
    // All that may arrive behind the limit: also what it let pass in shadow, and what a reservation cost beyond what
    // could be charged.
    admitted.push_back(
        {.limit = limit.limit,
         .cost = limit.admitted_cost + limit.shadow_refused_cost + limit.overrun_cost + limit.uncovered_cost,
         .given_back = limit.given_back_cost});
  }
  return drift_.Evaluate(admitted, read_ns);
}

void DriftUpkeep::Tick() {
  const std::int64_t now_ns = time_.MonotonicNs();
  const bool due = drift_.HasNews() && now_ns >= not_before_ns_;
  for (const DriftChange& change : due ? Judge(now_ns) : drift_.Evaluate({}, now_ns)) Log(change, log_);
}

std::vector<std::string> DriftLines(const DriftDetector& drift) {
  std::vector<std::string> lines;
  const std::vector<LimitDrift> limits = drift.OutOfBounds();
  for (const LimitDrift& limit : absl::MakeConstSpan(limits).first(std::min(limits.size(), kMaxDriftTold))) {
    lines.push_back(absl::StrCat("drift: ", limit.limit, " is ", Name(limit.reading.state), ": received ",
                                 limit.reading.received, ", admitted ", limit.reading.admitted, " in ",
                                 DescribeNs(limit.reading.span_ns)));
  }
  if (limits.size() > kMaxDriftTold)
    lines.push_back(absl::StrCat("drift: and ", limits.size() - kMaxDriftTold, " more"));
  return lines;
}

}  // namespace ebbgate

// The upkeep of drift: puts what the engine counts beside what was reported, and logs each change of a limit's state.
#ifndef EBBGATE_SERVER_DRIFT_UPKEEP_H_
#define EBBGATE_SERVER_DRIFT_UPKEEP_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "server/drift/drift_detector.h"
#include "server/engine/engine.h"
#include "server/limiter/moment.h"
#include "server/telemetry/logging.h"

namespace ebbgate {

// Thread-safety: none; one thread does the upkeep. Ownership: what it is made of outlives it. Cost: reads the engine's
// counters, if there is news; with thousands of limits that takes milliseconds, and is then done less often, so that it
// never takes more than 2 % of a core.
class DriftUpkeep {
 public:
  DriftUpkeep(const Engine& engine, const TimeSource& time, DriftDetector& drift, EventLog& log)
      : engine_(engine), time_(time), drift_(drift), log_(log) {}

  // To be called now and then, ten times a second.
  void Tick();

 private:
  std::vector<DriftChange> Judge(std::int64_t now_ns);

  const Engine& engine_;
  const TimeSource& time_;
  DriftDetector& drift_;
  EventLog& log_;
  std::int64_t not_before_ns_ = std::numeric_limits<std::int64_t>::min();
};

// A line for each limit that is suspect or drifting, for /readyz; up to kMaxDriftTold of them.
std::vector<std::string> DriftLines(const DriftDetector& drift);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_DRIFT_UPKEEP_H_

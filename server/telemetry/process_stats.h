// What the operating system says about this process, as every exporter of Prometheus tells it.
//
// Reads /proc; costs some 50 us. What cannot be read is absent. Pure otherwise; call from any thread.
#ifndef EBBGATE_SERVER_TELEMETRY_PROCESS_STATS_H_
#define EBBGATE_SERVER_TELEMETRY_PROCESS_STATS_H_

#include <optional>

namespace ebbgate {

struct ProcessStats {
  std::optional<double> start_time_seconds;  // since the epoch
  std::optional<double> cpu_seconds;         // user and system
  std::optional<double> resident_bytes;
  std::optional<double> virtual_bytes;
  std::optional<double> threads;
  std::optional<double> open_fds;
  std::optional<double> max_fds;
};

ProcessStats ReadProcessStats();

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_TELEMETRY_PROCESS_STATS_H_

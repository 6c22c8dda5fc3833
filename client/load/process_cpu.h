// CPU time that a process has used, from /proc.
#ifndef EBBGATE_CLIENT_LOAD_PROCESS_CPU_H_
#define EBBGATE_CLIENT_LOAD_PROCESS_CPU_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace ebbgate::client {

// User and system time of all threads so far; in steps of 10 ms on most systems.
absl::StatusOr<absl::Duration> ProcessCpuTime(int pid);

// The same from the text of /proc/PID/stat, in clock ticks. The program's name in it may hold any character.
absl::StatusOr<long> CpuTicksFromStat(absl::string_view stat);

}  // namespace ebbgate::client

#endif  // EBBGATE_CLIENT_LOAD_PROCESS_CPU_H_

#include "client/load/process_cpu.h"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace ebbgate::client {

absl::StatusOr<long> CpuTicksFromStat(absl::string_view stat) {
  // "PID (NAME) STATE ...": utime and stime are the 12th and 13th fields after the name.
  const std::size_t name_end = stat.rfind(')');
  if (name_end == absl::string_view::npos) return absl::InternalError("no program name in /proc/PID/stat");
  const std::vector<absl::string_view> fields = absl::StrSplit(stat.substr(name_end + 1), ' ', absl::SkipEmpty());
  long user = 0, system = 0;
  if (fields.size() < 13 || !absl::SimpleAtoi(fields[11], &user) || !absl::SimpleAtoi(fields[12], &system)) {
    return absl::InternalError("no CPU times in /proc/PID/stat");
  }
  return user + system;
}

absl::StatusOr<absl::Duration> ProcessCpuTime(int pid) {
  std::ifstream in(absl::StrCat("/proc/", pid, "/stat"));
  if (!in) return absl::NotFoundError(absl::StrCat("there is no process ", pid));
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const absl::StatusOr<long> ticks = CpuTicksFromStat(text);
  if (!ticks.ok()) return ticks.status();
  return absl::Seconds(1) * *ticks / sysconf(_SC_CLK_TCK);
}

}  // namespace ebbgate::client

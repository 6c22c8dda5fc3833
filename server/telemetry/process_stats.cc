#include "server/telemetry/process_stats.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace ebbgate {
namespace {

// Fields of /proc/self/stat, counted from the one after the program's name, which may hold spaces itself.
constexpr std::size_t kUserTicks = 11;
constexpr std::size_t kSystemTicks = 12;
constexpr std::size_t kThreads = 17;
constexpr std::size_t kStartTicks = 19;
constexpr std::size_t kVirtualBytes = 20;
constexpr std::size_t kResidentPages = 21;

std::vector<std::string> StatFields() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(") ");
  if (name_end == std::string::npos) return {};
  return absl::StrSplit(line.substr(name_end + 2), ' ');
}

std::optional<double> Number(absl::string_view text) {
  double number = 0;
  if (!absl::SimpleAtod(text, &number)) return std::nullopt;
  return number;
}

// When the machine started, in seconds since the epoch.
std::optional<double> BootTime() {
  std::ifstream file("/proc/stat");
  std::string word;
  while (file >> word) {
    if (word == "btime" && file >> word) return Number(word);
  }
  return std::nullopt;
}

std::optional<double> OpenFds() {
  std::error_code error;
  std::filesystem::directory_iterator entry("/proc/self/fd", error);
  double entries = 0;
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) ++entries;
  if (error) return std::nullopt;
  return entries - 1;  // the one that reads the directory
}

}  // namespace

ProcessStats ReadProcessStats() {
  ProcessStats stats;
  const std::vector<std::string> fields = StatFields();
  const auto field = [&](std::size_t i) { return i < fields.size() ? Number(fields[i]) : std::nullopt; };
  const double ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto user = field(kUserTicks);
  const auto system = field(kSystemTicks);
  if (user && system) stats.cpu_seconds = (*user + *system) / ticks_per_second;
  const auto boot = BootTime();
  const auto start = field(kStartTicks);
  if (boot && start) stats.start_time_seconds = *boot + *start / ticks_per_second;
  stats.threads = field(kThreads);
  stats.virtual_bytes = field(kVirtualBytes);
  if (const auto pages = field(kResidentPages)) {
    stats.resident_bytes = *pages * static_cast<double>(sysconf(_SC_PAGESIZE));
  }
  stats.open_fds = OpenFds();
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) stats.max_fds = static_cast<double>(limit.rlim_cur);
  return stats;
}

}  // namespace ebbgate

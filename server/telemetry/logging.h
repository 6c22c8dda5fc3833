// The log: one line an event, with a stable name and named fields, as text for people or JSON for programs.
//
//   EventLog log({.json = true, .level = LogLevel::kInfo});
//   log.Info("limits_loaded", {{"file", path}, {"limits", limits.size()}});
//
//   2026-11-01T05:47:00.123Z info limits_loaded file=limits.yaml limits=12
//   {"ts":"2026-11-01T05:47:00.123Z","level":"info","event":"limits_loaded","file":"limits.yaml","limits":12}
//
// Whatever a value holds, an event stays one line, JSON stays valid, and a terminal is told nothing: see escape.h.
// Names of events and fields are written in the code (lower_case_with_underscores), never taken from input.
//
// Thread-safety: everything may be called from any thread. Ownership: main owns the log and hands out references; it
// outlives all who hold one. Cost: one comparison below the level, else some microseconds and a write under a lock; so
// never a line per decision. Bounded: values beyond kMaxLogValueBytes are cut, saying so; what a caller can cause again
// and again goes through a LogThrottle.
#ifndef EBBGATE_SERVER_TELEMETRY_LOGGING_H_
#define EBBGATE_SERVER_TELEMETRY_LOGGING_H_

#include <atomic>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/variant.h"
#include "server/limiter/moment.h"

namespace spdlog {
class logger;
namespace sinks {
class sink;
}  // namespace sinks
}  // namespace spdlog

namespace ebbgate {

enum class LogLevel : std::uint8_t { kTrace, kDebug, kInfo, kWarning, kError, kOff };

// "trace", "debug", "info", "warning", "error", "off"; and back ("warn" is taken too).
absl::string_view Name(LogLevel level);
std::optional<LogLevel> LogLevelNamed(absl::string_view name);

// One named value. Holds views: it lives as long as the statement that logs it.
class LogField {
 public:
  using Value = absl::variant<absl::string_view, std::int64_t, std::uint64_t, double, bool>;

  template <typename T>
  LogField(absl::string_view name, const T& value) : name_(name), value_(From(value)) {}

  absl::string_view name() const { return name_; }
  const Value& value() const { return value_; }

 private:
  template <typename T>
  static Value From(const T& value) {
    if constexpr (std::same_as<T, bool>) {
      return value;
    } else if constexpr (std::signed_integral<T>) {
      return static_cast<std::int64_t>(value);
    } else if constexpr (std::unsigned_integral<T>) {
      return static_cast<std::uint64_t>(value);
    } else if constexpr (std::floating_point<T>) {
      return static_cast<double>(value);
    } else {
      return absl::string_view(value);
    }
  }

  absl::string_view name_;
  Value value_;
};
using LogFields = std::initializer_list<LogField>;

// Lets an event through once in a while and counts the rest. One for each place that logs, owned by whoever owns that.
class LogThrottle {
 public:
  constexpr explicit LogThrottle(std::int64_t every_ns = 10 * kNsPerSecond) : every_ns_(every_ns) {}

  // Whether an event at `mono_ns` goes through; if so, how many did not since the last that did.
  std::optional<std::uint64_t> Admit(std::int64_t mono_ns);

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

  const std::int64_t every_ns_;
  std::atomic<std::int64_t> last_ns_{kNever};
  std::atomic<std::uint64_t> suppressed_{0};
};

struct LogOptions {
  // A JSON object a line, instead of text.
  bool json = false;
  LogLevel level = LogLevel::kInfo;
  // Where lines go; null: standard error.
  std::shared_ptr<spdlog::sinks::sink> sink;
  const TimeSource* time = &SystemTime();
};

class EventLog {
 public:
  explicit EventLog(const LogOptions& options);
  ~EventLog();
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  void Event(LogLevel level, absl::string_view event, LogFields fields = {});
  void Info(absl::string_view event, LogFields fields = {}) { Event(LogLevel::kInfo, event, fields); }
  void Warning(absl::string_view event, LogFields fields = {}) { Event(LogLevel::kWarning, event, fields); }
  void Error(absl::string_view event, LogFields fields = {}) { Event(LogLevel::kError, event, fields); }

  // An event that may come again and again: most are only counted, and the next line says how many ("suppressed").
  void Throttled(LogThrottle& throttle, LogLevel level, absl::string_view event, LogFields fields = {});

  bool Enabled(LogLevel level) const { return level >= level_ && level != LogLevel::kOff; }

 private:
  void Write(LogLevel level, absl::string_view event, LogFields fields, std::optional<std::uint64_t> suppressed);

  const bool json_;
  const LogLevel level_;
  const TimeSource& time_;
  const std::unique_ptr<spdlog::logger> logger_;
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_TELEMETRY_LOGGING_H_

#include "server/telemetry/logging.h"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "server/limiter/bounds.h"
#include "server/telemetry/escape.h"

namespace ebbgate {
namespace {

constexpr std::array<absl::string_view, 6> kLevelNames = {"trace", "debug", "info", "warning", "error", "off"};

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return spdlog::level::trace;
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::off;
}

// At most kMaxLogValueBytes of `value`, with a note of what is missing. A character cut in two is escaped like any
// other bytes that are not UTF-8.
std::string Shortened(absl::string_view value) {
  if (value.size() <= kMaxLogValueBytes) return std::string(value);
  return absl::StrCat(value.substr(0, kMaxLogValueBytes), "... (", value.size() - kMaxLogValueBytes, " bytes more)");
}

void AppendNumber(double value, std::string& out) {
  // JSON has no word for these.
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  absl::StrAppendFormat(&out, "%.9g", value);
}

void AppendValue(const LogField::Value& value, bool json, std::string& out) {
  if (const auto* text = absl::get_if<absl::string_view>(&value)) {
    const std::string shortened = Shortened(*text);
    json ? AppendJsonString(shortened, out) : AppendTextValue(shortened, out);
  } else if (const auto* flag = absl::get_if<bool>(&value)) {
    out += *flag ? "true" : "false";
  } else if (const auto* real = absl::get_if<double>(&value)) {
    AppendNumber(*real, out);
  } else if (const auto* whole = absl::get_if<std::int64_t>(&value)) {
    absl::StrAppend(&out, *whole);
  } else {
    absl::StrAppend(&out, absl::get<std::uint64_t>(value));
  }
}

void AppendField(absl::string_view name, const LogField::Value& value, bool json, std::string& out) {
  if (json) {
    out += ',';
    AppendJsonString(name, out);
    out += ':';
  } else {
    absl::StrAppend(&out, " ", name, "=");
  }
  AppendValue(value, json, out);
}

// RFC 3339, in UTC, to the millisecond.
std::string TimeStamp(std::int64_t wall_ns) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromUnixNanos(wall_ns), absl::UTCTimeZone());
}

std::unique_ptr<spdlog::logger> MakeLogger(const LogOptions& options) {
  auto sink = options.sink != nullptr ? options.sink : std::make_shared<spdlog::sinks::stderr_sink_mt>();
  auto logger = std::make_unique<spdlog::logger>("ebbgate", std::move(sink));
  // Lines are made here, whole: spdlog would escape nothing.
  logger->set_formatter(std::make_unique<spdlog::pattern_formatter>("%v", spdlog::pattern_time_type::utc));
  logger->set_level(ToSpdlog(options.level));
  logger->flush_on(spdlog::level::trace);
  // A log that cannot be written must not stop the server, nor complain where it cannot be read.
  logger->set_error_handler([](const std::string&) {});
  return logger;
}

}  // namespace

absl::string_view Name(LogLevel level) { return kLevelNames[static_cast<std::size_t>(level)]; }

std::optional<LogLevel> LogLevelNamed(absl::string_view name) {
  if (name == "warn") return LogLevel::kWarning;
  for (std::size_t i = 0; i < kLevelNames.size(); ++i) {
    if (kLevelNames[i] == name) return static_cast<LogLevel>(i);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> LogThrottle::Admit(std::int64_t mono_ns) {
  std::int64_t last_ns = last_ns_.load(std::memory_order_relaxed);
  const bool due = last_ns == kNever || mono_ns - last_ns >= every_ns_;
  // Of threads that come at the same time one wins; the others are counted.
  if (due && last_ns_.compare_exchange_strong(last_ns, mono_ns, std::memory_order_relaxed)) {
    return suppressed_.exchange(0, std::memory_order_relaxed);
  }
  suppressed_.fetch_add(1, std::memory_order_relaxed);
  return std::nullopt;
}

EventLog::EventLog(const LogOptions& options)
    : json_(options.json), level_(options.level), time_(*options.time), logger_(MakeLogger(options)) {}

EventLog::~EventLog() = default;

void EventLog::Event(LogLevel level, absl::string_view event, LogFields fields) {
  if (Enabled(level)) Write(level, event, fields, std::nullopt);
}

void EventLog::Throttled(LogThrottle& throttle, LogLevel level, absl::string_view event, LogFields fields) {
  if (!Enabled(level)) return;
  if (const auto suppressed = throttle.Admit(time_.MonotonicNs())) Write(level, event, fields, suppressed);
}

void EventLog::Write(LogLevel level, absl::string_view event, LogFields fields,
                     std::optional<std::uint64_t> suppressed) {
  std::string line;
  const std::string now = TimeStamp(time_.WallNs());
  if (json_) {
    line = absl::StrCat("{\"ts\":\"", now, "\",\"level\":\"", Name(level), "\",\"event\":");
    AppendJsonString(event, line);
  } else {
    line = absl::StrCat(now, " ", Name(level), " ", event);
  }
  for (const LogField& field : fields) AppendField(field.name(), field.value(), json_, line);
  if (suppressed.value_or(0) > 0) AppendField("suppressed", LogField::Value(*suppressed), json_, line);
  if (json_) line += '}';
  logger_->log(ToSpdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace ebbgate

#include "server/telemetry/library_logs.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <array>
#include <atomic>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace ebbgate {
namespace {

// Places in the libraries that log share this many throttles, so that a peer who makes one of them speak without end
// costs a line in ten seconds, and memory is bounded; two places that share one hide each other now and then.
constexpr std::size_t kThrottles = 64;

std::atomic<EventLog*> log_in_force{nullptr};
constinit std::array<LogThrottle, kThrottles> throttles;
// Protobuf's own, to be put back.
google::protobuf::LogHandler* former_protobuf_handler = nullptr;

void Write(LogLevel level, absl::string_view event, const char* file, int line, absl::string_view message) {
  EventLog* const log = log_in_force.load(std::memory_order_acquire);
  if (log == nullptr) return;
  absl::string_view name(file == nullptr ? "" : file);
  if (const std::size_t slash = name.rfind('/'); slash != absl::string_view::npos) name.remove_prefix(slash + 1);
  std::size_t place = static_cast<std::size_t>(line);
  for (const char c : name) place = place * 31 + static_cast<unsigned char>(c);
  log->Throttled(throttles[place % kThrottles], level, event,
                 {{"message", message}, {"at", absl::StrCat(name, ":", line)}});
}

void FromGrpc(gpr_log_func_args* args) {
  LogLevel level = LogLevel::kDebug;
  if (args->severity == GPR_LOG_SEVERITY_ERROR) level = LogLevel::kError;
  if (args->severity == GPR_LOG_SEVERITY_INFO) level = LogLevel::kInfo;
  Write(level, "grpc_log", args->file, args->line, WithoutHeaderValues(args->message));
}

void FromProtobuf(google::protobuf::LogLevel severity, const char* file, int line, const std::string& message) {
  LogLevel level = LogLevel::kInfo;
  if (severity == google::protobuf::LOGLEVEL_WARNING) level = LogLevel::kWarning;
  if (severity >= google::protobuf::LOGLEVEL_ERROR) level = LogLevel::kError;
  Write(level, "protobuf_log", file, line, message);
}

}  // namespace

std::string WithoutHeaderValues(absl::string_view message) {
  // A header shown while tracing HTTP/2: "HTTP:1:HDR:SVR: name: value".
  if (absl::StrContains(message, ":HDR:") || absl::StrContains(message, ":TRL:")) return "HTTP/2 header, not shown";
  // One that could not be read: "Error parsing metadata: key=... error=... value=...".
  constexpr absl::string_view kValue = "value=";
  if (const std::size_t at = message.find(kValue); at != absl::string_view::npos) {
    return absl::StrCat(message.substr(0, at + kValue.size()), "(not shown)");
  }
  return std::string(message);
}

LibraryLogs::LibraryLogs(EventLog& log) {
  log_in_force.store(&log, std::memory_order_release);
  gpr_set_log_function(FromGrpc);
  former_protobuf_handler = google::protobuf::SetLogHandler(FromProtobuf);
}

LibraryLogs::~LibraryLogs() {
  gpr_set_log_function(nullptr);  // gRPC's own
  google::protobuf::SetLogHandler(former_protobuf_handler);
  log_in_force.store(nullptr, std::memory_order_release);
}

}  // namespace ebbgate

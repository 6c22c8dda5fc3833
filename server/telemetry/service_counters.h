// What the surfaces of the server count about calls, whatever the protocol; what decisions were is the engine's to
// count.
//
// Thread-safety: everything from any thread; some 2 ns each (see stripes.h). Bounded: methods, codes and reasons are
// closed sets.
#ifndef EBBGATE_SERVER_TELEMETRY_SERVICE_COUNTERS_H_
#define EBBGATE_SERVER_TELEMETRY_SERVICE_COUNTERS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/engine/call.h"
#include "server/telemetry/stripes.h"

namespace ebbgate {

enum class Method : std::uint8_t {
  kShouldAllow,
  kShouldAllowBatch,
  kStreamShouldAllow,
  kReserve,
  kSettle,
  kCancel,
  kHttpShouldAllow,  // the JSON twin
  kHealthCheck,
  kHealthWatch,
  kReflection,
  kReportObserved,
  kGetDrift,
  kInspectKey,
  kResetKey,
  kListLimits,
  kReloadLimits,
};
inline constexpr std::size_t kMethods = static_cast<std::size_t>(Method::kReloadLimits) + 1;

// "ShouldAllow", ...: the label of a metric.
absl::string_view Name(Method method);

// OK to UNAUTHENTICATED.
inline constexpr std::size_t kStatusCodes = static_cast<std::size_t>(absl::StatusCode::kUnauthenticated) + 1;
inline constexpr std::size_t kErrorReasons = static_cast<std::size_t>(ErrorReason::kDraining) + 1;

class ServiceCounters {
 public:
  // A call was taken up, and ended with `code`. A stream is one call, for as long as it is open.
  void CallStarted(Method method) { cells_.Add(kStartedCell + Index(method), 1); }
  void CallEnded(Method method, absl::StatusCode code) {
    const unsigned stripe = ThreadStripe();
    cells_.AddAt(stripe, kEndedCell + Index(method), 1);
    cells_.AddAt(stripe, kCodesCell + Index(method) * kStatusCodes + CodeIndex(code), 1);
  }

  // Calls that got an error instead of a decision: those inside batches too. Shed calls are OVERLOADED, unreadable
  // messages are MALFORMED.
  void CountError(ErrorReason reason, std::uint64_t n = 1) {
    cells_.Add(kErrorsCell + static_cast<std::size_t>(reason), n);
  }

  // A message of StreamShouldAllow came in.
  void CountStreamMessage() { cells_.Add(kStreamMessagesCell, 1); }

  struct Snapshot {
    std::array<std::array<std::uint64_t, kStatusCodes>, kMethods> ended{};
    std::array<std::uint64_t, kMethods> in_flight{};
    std::array<std::uint64_t, kErrorReasons> errors{};
    std::uint64_t stream_messages = 0;
  };
  Snapshot Read() const;

 private:
  static constexpr std::size_t Index(Method method) { return static_cast<std::size_t>(method); }
  static constexpr std::size_t CodeIndex(absl::StatusCode code) {
    const std::size_t index = static_cast<std::size_t>(code);
    return index < kStatusCodes ? index : static_cast<std::size_t>(absl::StatusCode::kUnknown);
  }

  static constexpr std::size_t kStartedCell = 0;
  static constexpr std::size_t kEndedCell = kStartedCell + kMethods;
  static constexpr std::size_t kErrorsCell = kEndedCell + kMethods;
  static constexpr std::size_t kStreamMessagesCell = kErrorsCell + kErrorReasons;
  static constexpr std::size_t kCodesCell = kStreamMessagesCell + 1;
  Striped<kCodesCell + kMethods * kStatusCodes> cells_;
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_TELEMETRY_SERVICE_COUNTERS_H_

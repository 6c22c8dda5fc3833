// One call as the engine sees it, free of any protocol: what is asked, and what is answered.
#ifndef EBBGATE_SERVER_ENGINE_CALL_H_
#define EBBGATE_SERVER_ENGINE_CALL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/limiter/parameters.h"

namespace ebbgate {

struct ChargeRequest {
  absl::string_view limit = {};
  absl::string_view key = {};
  // Whole tokens; absent: the limit's default. 0 looks and takes nothing.
  std::optional<std::int64_t> cost = std::nullopt;
};

// Views only: what they point at must outlive the call.
struct CallRequest {
  absl::Span<const ChargeRequest> charges = {};
  absl::string_view request_id = {};
  bool peek = false;
};

enum class Reason : std::uint8_t { kAllowed, kShadowed, kQuotaExceeded, kCostExceedsCapacity };

// No wait is to be told.
inline constexpr std::int64_t kNoWait = -1;

struct ChargeAnswer {
  Reason reason = Reason::kAllowed;
  bool tightest = false;
  OnUnavailable on_unavailable = OnUnavailable::kDeny;
  std::int64_t remaining = 0;  // whole tokens
  std::int64_t capacity = 0;   // whole tokens
  std::int64_t retry_after_ns = kNoWait;
  std::int64_t reset_after_ns = 0;
};

// Why there is no decision. The names are those of ErrorInfo.reason on the wire; see ErrorReasonName.
enum class ErrorReason : std::uint8_t {
  kMalformed,         // INVALID_ARGUMENT: the message cannot be read
  kInvalidField,      // INVALID_ARGUMENT
  kKeyTooLong,        // INVALID_ARGUMENT
  kCostOutOfRange,    // INVALID_ARGUMENT
  kCostAboveMaximum,  // INVALID_ARGUMENT
  kRequestIdReused,   // INVALID_ARGUMENT
  kUnknownLimit,      // NOT_FOUND
  kDeadlinePassed,    // DEADLINE_EXCEEDED
  kStoreFull,         // UNAVAILABLE
  kRequestIdsFull,    // UNAVAILABLE
  kOverloaded,        // UNAVAILABLE
  kDraining,          // UNAVAILABLE
};

// "STORE_FULL", ...
absl::string_view ErrorReasonName(ErrorReason reason);

struct CallError {
  ErrorReason reason;
  // A path such as "charges[0].cost"; empty where no field is at fault.
  std::string field;
  std::string message;

  absl::StatusCode code() const;
};

struct CallAnswer {
  // Set: there is no decision, nothing was charged, and the rest means nothing.
  std::shared_ptr<const CallError> error;
  bool allowed = false;
  Reason reason = Reason::kAllowed;
  bool replayed = false;
  std::int64_t retry_after_ns = kNoWait;
  // One for each charge, in order.
  absl::InlinedVector<ChargeAnswer, 2> charges;
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_ENGINE_CALL_H_

// One call as the engine sees it, free of any protocol: what is asked, and what is answered.
#ifndef EBBGATE_SERVER_ENGINE_CALL_H_
#define EBBGATE_SERVER_ENGINE_CALL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/limiter/amount.h"
#include "server/limiter/bounds.h"
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

// The last two are of Reserve only.
enum class Reason : std::uint8_t {
  kAllowed,
  kShadowed,
  kQuotaExceeded,
  kCostExceedsCapacity,
  kTooMuchDebt,
  kTooManyHolds
};

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
  kUnknownHold,       // NOT_FOUND
  kDeadlinePassed,    // DEADLINE_EXCEEDED
  kStoreFull,         // UNAVAILABLE
  kRequestIdsFull,    // UNAVAILABLE
  kHoldsFull,         // UNAVAILABLE
  kReportersFull,     // UNAVAILABLE
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

// --- Reservations ----------------------------------------------------------------------------------------------------

struct ReserveRequest {
  CallRequest call = {};  // `peek` is of no account
  // How long the work can wait for its turn: 0 to kMaxHoldNs.
  std::int64_t max_wait_ns = 0;
  // How long after its turn the hold stays open: 1 to kMaxHoldNs.
  std::int64_t hold_ns = kDefaultHoldNs;
};

struct ReserveAnswer {
  // `allowed` is: granted. The retry_after_ns of a refused charge is the time after which it alone could act; that of
  // the call, the time after which the same call would be granted if nothing else came.
  CallAnswer call;
  // Of a grant only.
  std::string reservation_id;
  std::int64_t act_after_ns = 0;
  std::int64_t expires_after_ns = 0;
};

enum class HoldState : std::uint8_t { kOpen, kSettled, kCancelled, kExpired };

// Whole tokens. reserved + overrun = actual + given_back; uncovered <= overrun.
struct SettledCharge {
  std::string limit;
  std::string key;
  std::int64_t reserved = 0;
  std::int64_t actual = 0;
  std::int64_t given_back = 0;
  std::int64_t overrun = 0;
  std::int64_t uncovered = 0;
  // What the bucket gained; less than given_back where it would have been full meanwhile. Rounded down.
  Microtokens returned = 0;
};

struct SettleAnswer {
  // Set: the rest means nothing.
  std::shared_ptr<const CallError> error;
  HoldState state = HoldState::kOpen;
  bool repeated = false;
  // One for each charge of the reservation, in order.
  std::vector<SettledCharge> charges;
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_ENGINE_CALL_H_

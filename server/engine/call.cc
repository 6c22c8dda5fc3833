#include "server/engine/call.h"

namespace ebbgate {

absl::string_view ErrorReasonName(ErrorReason reason) {
  switch (reason) {
    case ErrorReason::kMalformed:
      return "MALFORMED";
    case ErrorReason::kInvalidField:
      return "INVALID_FIELD";
    case ErrorReason::kKeyTooLong:
      return "KEY_TOO_LONG";
    case ErrorReason::kCostOutOfRange:
      return "COST_OUT_OF_RANGE";
    case ErrorReason::kCostAboveMaximum:
      return "COST_ABOVE_MAXIMUM";
    case ErrorReason::kRequestIdReused:
      return "REQUEST_ID_REUSED";
    case ErrorReason::kUnknownLimit:
      return "UNKNOWN_LIMIT";
    case ErrorReason::kUnknownHold:
      return "UNKNOWN_RESERVATION";
    case ErrorReason::kDeadlinePassed:
      return "DEADLINE_PASSED";
    case ErrorReason::kStoreFull:
      return "STORE_FULL";
    case ErrorReason::kRequestIdsFull:
      return "REQUEST_IDS_FULL";
    case ErrorReason::kHoldsFull:
      return "HOLDS_FULL";
    case ErrorReason::kReportersFull:
      return "REPORTERS_FULL";
    case ErrorReason::kOverloaded:
      return "OVERLOADED";
    case ErrorReason::kDraining:
      return "DRAINING";
  }
  return "UNKNOWN";
}

absl::StatusCode CallError::code() const {
  switch (reason) {
    case ErrorReason::kMalformed:
    case ErrorReason::kInvalidField:
    case ErrorReason::kKeyTooLong:
    case ErrorReason::kCostOutOfRange:
    case ErrorReason::kCostAboveMaximum:
    case ErrorReason::kRequestIdReused:
      return absl::StatusCode::kInvalidArgument;
    case ErrorReason::kUnknownLimit:
    case ErrorReason::kUnknownHold:
      return absl::StatusCode::kNotFound;
    case ErrorReason::kDeadlinePassed:
      return absl::StatusCode::kDeadlineExceeded;
    case ErrorReason::kStoreFull:
    case ErrorReason::kRequestIdsFull:
    case ErrorReason::kHoldsFull:
    case ErrorReason::kReportersFull:
    case ErrorReason::kOverloaded:
    case ErrorReason::kDraining:
      return absl::StatusCode::kUnavailable;
  }
  return absl::StatusCode::kInternal;
}

}  // namespace ebbgate

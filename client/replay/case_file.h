// Case files: small histories with their right answers, as data. tests/conformance/README.md describes the format.
//
// Pure but for reading files; nothing is thrown out of here; memory is bounded by the size of a file, which is bounded.
#ifndef EBBGATE_CLIENT_REPLAY_CASE_FILE_H_
#define EBBGATE_CLIENT_REPLAY_CASE_FILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/limiter/bounds.h"
#include "server/limiter/parameters.h"

namespace ebbgate::replay {

// A length of time that must match, or (null) must be absent.
struct ExpectedWait {
  std::optional<std::int64_t> ns;
};

// Of an answer's charge, or of one of a reservation that ended.
struct ExpectedCharge {
  std::optional<std::string> limit;
  std::optional<std::string> reason;
  std::optional<std::int64_t> remaining;
  std::optional<std::int64_t> capacity;
  std::optional<ExpectedWait> retry_after;
  std::optional<ExpectedWait> reset_after;
  std::optional<bool> tightest;
  std::optional<std::int64_t> reserved;
  std::optional<std::int64_t> actual;
  std::optional<std::int64_t> given_back;
  std::optional<std::int64_t> overrun;
  std::optional<std::int64_t> uncovered;
};

// What is absent may be anything.
struct Expectation {
  std::optional<bool> allowed;
  std::optional<bool> granted;
  std::optional<std::string> reason;
  std::optional<ExpectedWait> retry_after;
  std::optional<ExpectedWait> act_after;
  std::optional<ExpectedWait> expires_after;
  std::vector<ExpectedCharge> charges;
  std::optional<bool> replayed;
  // "settled", "cancelled" or "expired".
  std::optional<std::string> state;
  std::optional<bool> repeated;
  // A code such as "NOT_FOUND", or a reason such as "UNKNOWN_LIMIT".
  std::optional<std::string> error;
  // Of reservations: how many are granted.
  std::optional<std::int64_t> allowed_count;
};

struct CaseCharge {
  std::string limit;
  std::string key;
  std::optional<std::int64_t> cost;
};

struct ShouldAllowStep {
  std::vector<CaseCharge> charges;
  std::string request_id;
  bool peek = false;
};

// The limits, or why they are none: a case may expect a reload to be refused.
struct ReloadStep {
  absl::StatusOr<std::vector<Limit>> limits;
};

struct ReserveStep {
  std::vector<CaseCharge> charges;
  std::int64_t max_wait_ns = 0;
  std::int64_t hold_ns = kDefaultHoldNs;
  std::string request_id;
  // What later steps call the reservation.
  std::string as;
};

// Settles with `actual`, or without it cancels. A name that no reservation was granted under is taken for an id.
struct EndStep {
  std::string reservation;
  std::optional<std::vector<std::int64_t>> actual;
};

struct Step {
  std::int64_t at_ns = 0;
  std::int64_t times = 1;
  std::int64_t every_ns = 0;
  std::variant<ShouldAllowStep, ReserveStep, EndStep, ReloadStep> action;
  Expectation expect;
};

struct Case {
  std::string name;
  std::int64_t start_wall_ns = 0;
  std::vector<Limit> limits;
  std::vector<Step> steps;
};

// In the order of the file; a case that cannot be understood is told as INVALID_ARGUMENT in its place, with its name
// and the step at fault. Fails as a whole if the text is no case file.
absl::StatusOr<std::vector<absl::StatusOr<Case>>> ParseCases(absl::string_view text, absl::string_view file);

// The same from a file.
absl::StatusOr<std::vector<absl::StatusOr<Case>>> LoadCases(const std::string& path);

}  // namespace ebbgate::replay

#endif  // EBBGATE_CLIENT_REPLAY_CASE_FILE_H_

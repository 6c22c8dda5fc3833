#include "client/replay/compare.h"

#include <array>
#include <optional>

#include "absl/strings/str_cat.h"

namespace ebbgate::replay {
namespace {

std::string Show(bool truth) { return truth ? "true" : "false"; }
std::string Show(std::int64_t number) { return absl::StrCat(number); }
std::string Show(const std::string& text) { return text; }
std::string ShowWait(std::int64_t ns) { return ns == kNoWait ? "absent" : DescribeNs(ns); }

template <typename Value>
void Compare(const std::string& field, const std::optional<Value>& want, const Value& got,
             const ReportDifference& differ) {
  if (want.has_value() && *want != got) differ(field, Show(*want), Show(got));
}

void CompareWait(const std::string& field, const std::optional<ExpectedWait>& want, std::int64_t got_ns,
                 const ReportDifference& differ) {
  if (!want.has_value()) return;
  const std::int64_t want_ns = want->ns.value_or(kNoWait);
  if (want_ns != got_ns) differ(field, ShowWait(want_ns), ShowWait(got_ns));
}

void CompareCharge(const std::string& field, const ExpectedCharge& want, const ChargeAnswer& got,
                   const ReportDifference& differ) {
  Compare(field + ".reason", want.reason, std::string(Name(got.reason)), differ);
  Compare(field + ".remaining", want.remaining, got.remaining, differ);
  Compare(field + ".capacity", want.capacity, got.capacity, differ);
  CompareWait(field + ".retry_after", want.retry_after, got.retry_after_ns, differ);
  CompareWait(field + ".reset_after", want.reset_after, got.reset_after_ns, differ);
  Compare(field + ".tightest", want.tightest, got.tightest, differ);
}

void CheckShape(const CallAnswer& answer, const ReportDifference& differ) {
  // Where a bound on debt or holds was in the way, a wait helps or not.
  if (answer.reason == Reason::kTooMuchDebt || answer.reason == Reason::kTooManyHolds) return;
  const bool wait_helps = !answer.allowed && answer.reason == Reason::kQuotaExceeded;
  if (wait_helps && answer.retry_after_ns <= 0) {
    differ("retry_after of a denial for now", "above 0s", ShowWait(answer.retry_after_ns));
  }
  if (!wait_helps && answer.retry_after_ns != kNoWait) {
    differ(absl::StrCat("retry_after of ", Name(answer.reason)), "absent", ShowWait(answer.retry_after_ns));
  }
}

// Whether there is an answer to compare further: `got`, in a word.
bool CompareError(const Expectation& expect, const CallError* error, absl::string_view got,
                  const ReportDifference& differ) {
  if (error == nullptr) {
    if (expect.error.has_value()) differ("error", *expect.error, absl::StrCat("none, but ", got));
    return true;
  }
  const std::string code = absl::StatusCodeToString(error->code());
  const std::string reason(ErrorReasonName(error->reason));
  if (!expect.error.has_value() || (*expect.error != code && *expect.error != reason)) {
    differ("error", expect.error.value_or("none"), absl::StrCat(code, " (", reason, "): ", error->message));
  }
  return false;
}

// What the answers to a call and to a reservation have in common.
void CompareDecision(const Expectation& expect, const CallAnswer& answer, const ReportDifference& differ) {
  Compare("reason", expect.reason, std::string(Name(answer.reason)), differ);
  CompareWait("retry_after", expect.retry_after, answer.retry_after_ns, differ);
  Compare("replayed", expect.replayed, answer.replayed, differ);
  if (expect.charges.size() > answer.charges.size()) {
    differ("charges", absl::StrCat(expect.charges.size()), absl::StrCat(answer.charges.size()));
  }
  for (std::size_t i = 0; i < expect.charges.size() && i < answer.charges.size(); ++i) {
    CompareCharge(absl::StrCat("charges[", i, "]"), expect.charges[i], answer.charges[i], differ);
  }
  CheckShape(answer, differ);
}

void CompareSettled(const std::string& field, const ExpectedCharge& want, const SettledCharge& got,
                    const ReportDifference& differ) {
  Compare(field + ".limit", want.limit, got.limit, differ);
  Compare(field + ".reserved", want.reserved, got.reserved, differ);
  Compare(field + ".actual", want.actual, got.actual, differ);
  Compare(field + ".given_back", want.given_back, got.given_back, differ);
  Compare(field + ".overrun", want.overrun, got.overrun, differ);
  Compare(field + ".uncovered", want.uncovered, got.uncovered, differ);
}

}  // namespace

absl::string_view Name(Reason reason) {
  static constexpr std::array<absl::string_view, 6> kNames = {
      "ALLOWED", "SHADOWED", "QUOTA_EXCEEDED", "COST_EXCEEDS_CAPACITY", "TOO_MUCH_DEBT", "TOO_MANY_HOLDS"};
  return kNames[static_cast<std::size_t>(reason)];
}

absl::string_view Name(HoldState state) {
  static constexpr std::array<absl::string_view, 4> kNames = {"open", "settled", "cancelled", "expired"};
  return kNames[static_cast<std::size_t>(state)];
}

void CompareAnswer(const Expectation& expect, const CallAnswer& answer, const ReportDifference& differ) {
  if (!CompareError(expect, answer.error.get(), answer.allowed ? "allowed" : "denied", differ)) return;
  Compare("allowed", expect.allowed, answer.allowed, differ);
  CompareDecision(expect, answer, differ);
}

void CompareReservation(const Expectation& expect, const ReserveAnswer& answer, const ReportDifference& differ) {
  const bool granted = answer.call.allowed;
  if (!CompareError(expect, answer.call.error.get(), granted ? "granted" : "refused", differ)) return;
  Compare("granted", expect.granted, granted, differ);
  CompareWait("act_after", expect.act_after, granted ? answer.act_after_ns : kNoWait, differ);
  CompareWait("expires_after", expect.expires_after, granted ? answer.expires_after_ns : kNoWait, differ);
  CompareDecision(expect, answer.call, differ);
  const std::size_t id_bytes = granted ? kReservationIdBytes : 0;
  if (answer.reservation_id.size() != id_bytes) {
    differ("length of reservation_id", absl::StrCat(id_bytes), absl::StrCat(answer.reservation_id.size()));
  }
}

void CompareEnding(const Expectation& expect, const SettleAnswer& answer, const ReportDifference& differ) {
  const std::string state(Name(answer.state));
  if (!CompareError(expect, answer.error.get(), state, differ)) return;
  Compare("state", expect.state, state, differ);
  Compare("repeated", expect.repeated, answer.repeated, differ);
  if (expect.charges.size() > answer.charges.size()) {
    differ("charges", absl::StrCat(expect.charges.size()), absl::StrCat(answer.charges.size()));
  }
  for (std::size_t i = 0; i < answer.charges.size(); ++i) {
    const std::string field = absl::StrCat("charges[", i, "]");
    const SettledCharge& got = answer.charges[i];
    if (i < expect.charges.size()) CompareSettled(field, expect.charges[i], got, differ);
    if (got.reserved + got.overrun != got.actual + got.given_back || got.uncovered > got.overrun) {
      differ(
          field, "reserved + overrun = actual + given_back, uncovered <= overrun",
          absl::StrCat(got.reserved, " + ", got.overrun, ", ", got.actual, " + ", got.given_back, ", ", got.uncovered));
    }
  }
}

}  // namespace ebbgate::replay

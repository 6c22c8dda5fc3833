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
  const bool wait_helps = !answer.allowed && answer.reason == Reason::kQuotaExceeded;
  if (wait_helps && answer.retry_after_ns <= 0) {
    differ("retry_after of a denial for now", "above 0s", ShowWait(answer.retry_after_ns));
  }
  if (!wait_helps && answer.retry_after_ns != kNoWait) {
    differ(absl::StrCat("retry_after of ", Name(answer.reason)), "absent", ShowWait(answer.retry_after_ns));
  }
}

// Whether there is a decision to compare further.
bool CompareError(const Expectation& expect, const CallAnswer& answer, const ReportDifference& differ) {
  if (answer.error == nullptr) {
    if (expect.error.has_value()) {
      differ("error", *expect.error, absl::StrCat("none, but ", answer.allowed ? "allowed" : "denied"));
    }
    return true;
  }
  const std::string code = absl::StatusCodeToString(answer.error->code());
  const std::string reason(ErrorReasonName(answer.error->reason));
  if (!expect.error.has_value() || (*expect.error != code && *expect.error != reason)) {
    differ("error", expect.error.value_or("none"), absl::StrCat(code, " (", reason, "): ", answer.error->message));
  }
  return false;
}

}  // namespace

absl::string_view Name(Reason reason) {
  static constexpr std::array<absl::string_view, 4> kNames = {"ALLOWED", "SHADOWED", "QUOTA_EXCEEDED",
                                                              "COST_EXCEEDS_CAPACITY"};
  return kNames[static_cast<std::size_t>(reason)];
}

void CompareAnswer(const Expectation& expect, const CallAnswer& answer, const ReportDifference& differ) {
  if (!CompareError(expect, answer, differ)) return;
  Compare("allowed", expect.allowed, answer.allowed, differ);
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

}  // namespace ebbgate::replay

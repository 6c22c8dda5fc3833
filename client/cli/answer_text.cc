#include "client/cli/answer_text.h"

#include <sstream>

#include "absl/strings/str_cat.h"
#include "client/cli/text.h"

namespace ebbgate::client {
namespace {

// Of one width, so that the lines of several calls stand below each other.
std::string Verdict(bool allowed) { return allowed ? "allowed" : "denied "; }

bool Fits(Reason reason) { return reason == Reason::kAllowed; }

std::string Overall(const Answer& answer) {
  if (answer.reason == Reason::kCostExceedsCapacity) return "never: one of the costs is above its capacity";
  if (answer.retry_after.has_value()) return absl::StrCat("retry in ", UpToMs(*answer.retry_after));
  if (answer.reason == Reason::kShadowed) return "but for shadow mode it would be denied";
  return "";
}

}  // namespace

std::string ChargeText(const ChargeAnswer& charge, absl::string_view wait) {
  std::string text = absl::StrCat(Grouped(charge.remaining), " of ", Grouped(charge.capacity), " left");
  if (charge.reason == Reason::kShadowed) absl::StrAppend(&text, ", would be denied but for shadow mode");
  if (charge.reason == Reason::kCostExceedsCapacity) absl::StrAppend(&text, ", costs more than it can ever hold");
  if (charge.reason == Reason::kTooMuchDebt) absl::StrAppend(&text, ", would owe too much");
  if (charge.reason == Reason::kTooManyHolds) absl::StrAppend(&text, ", has too many open holds");
  if (charge.retry_after.has_value()) {
    absl::StrAppend(&text, ", ", wait, " ", UpToMs(*charge.retry_after));
  }
  if (charge.reset_after > absl::ZeroDuration()) {
    absl::StrAppend(&text, ", full in ", UpToMs(charge.reset_after));
  }
  return text;
}

std::string AnswerText(const Call& call, const Answer& answer) {
  std::ostringstream out;
  const bool one = answer.charges.size() == 1;
  Table head;
  head.Row({Verdict(answer.allowed) + " ", one ? ChargeText(answer.charges[0], "retry in") : Overall(answer),
            answer.replayed ? "(the answer of an earlier call with this id)" : ""});
  head.Print(out);
  if (one) return out.str();
  Table table;
  for (std::size_t i = 0; i < answer.charges.size(); ++i) {
    const ChargeAnswer& charge = answer.charges[i];
    table.Row({Printable(charge.limit), Printable(call.charges[i].key),
               Verdict(Fits(charge.reason) || charge.reason == Reason::kShadowed), ChargeText(charge, "retry in")});
  }
  table.Print(out, "  ");
  return out.str();
}

void WriteCharges(const std::vector<Charge>& asked, const std::vector<ChargeAnswer>& answers, JsonWriter& json) {
  json.Key("charges").BeginArray();
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const ChargeAnswer& charge = answers[i];
    json.BeginObject().Key("limit").Value(charge.limit).Key("key").Value(asked[i].key);
    json.Key("reason").Value(Name(charge.reason)).Key("remaining").Value(charge.remaining);
    json.Key("capacity").Value(charge.capacity);
    if (charge.retry_after.has_value()) json.Key("retry_after").Value(*charge.retry_after);
    json.Key("reset_after").Value(charge.reset_after).Key("tightest").Value(charge.tightest).EndObject();
  }
  json.EndArray();
}

std::string AnswerJson(const Call& call, const Answer& answer) {
  std::ostringstream out;
  JsonWriter json(out);
  json.BeginObject().Key("allowed").Value(answer.allowed).Key("reason").Value(Name(answer.reason));
  if (answer.retry_after.has_value()) json.Key("retry_after").Value(*answer.retry_after);
  json.Key("replayed").Value(answer.replayed);
  WriteCharges(call.charges, answer.charges, json);
  json.EndObject();
  out << "\n";
  return out.str();
}

}  // namespace ebbgate::client

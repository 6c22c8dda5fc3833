#include "client/cli/reservation_text.h"

#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/cli/answer_text.h"
#include "client/cli/text.h"
#include "client/json.h"

namespace ebbgate::client {
namespace {

constexpr char kReplayed[] = "(the reservation of an earlier call with this id)";
constexpr char kRepeated[] = "(it had ended before)";

// As wide as the verdicts that stand below each other.
std::string Verdict(bool granted) { return granted ? "granted  " : "refused  "; }

std::string Turn(const ReserveAnswer& answer) {
  const std::string turn = answer.act_after > absl::ZeroDuration()
                               ? absl::StrCat("may start in ", UpToMs(answer.act_after))
                               : "may start now";
  // Rounded down: who comes then is not too late.
  return absl::StrCat(turn, "; expires in ",
                      absl::FormatDuration(absl::Floor(answer.expires_after, absl::Milliseconds(1))));
}

std::string Refusal(const ReserveAnswer& answer) {
  std::string text;
  switch (answer.reason) {
    case Reason::kCostExceedsCapacity:
      text = "never: a cost is above its capacity";
      break;
    case Reason::kTooMuchDebt:
      text = "a bucket would owe more than its max_debt";
      break;
    case Reason::kTooManyHolds:
      text = "a bucket has as many open holds as its max_holds";
      break;
    default:
      text = "its turn would come too late";
  }
  if (answer.retry_after.has_value()) absl::StrAppend(&text, "; retry in ", UpToMs(*answer.retry_after));
  return text;
}

// "37 of 50 spent, 13 given back".
std::string Spent(const SettledCharge& charge) {
  std::string text = absl::StrCat(Grouped(charge.actual), " of ", Grouped(charge.reserved), " spent");
  if (charge.given_back > 0) absl::StrAppend(&text, ", ", Grouped(charge.given_back), " given back");
  if (charge.overrun > 0) absl::StrAppend(&text, ", ", Grouped(charge.overrun), " too many");
  if (charge.uncovered > 0) absl::StrAppend(&text, ", ", Grouped(charge.uncovered), " of them not charged");
  return text;
}

}  // namespace

std::string ReserveText(const ReserveCall& call, const ReserveAnswer& answer) {
  std::ostringstream out;
  Table head;
  head.Row(
      {Verdict(answer.granted), answer.granted ? Turn(answer) : Refusal(answer), answer.replayed ? kReplayed : ""});
  if (answer.granted) head.Row({"  id", answer.reservation_id});
  head.Print(out);
  Table table;
  for (std::size_t i = 0; i < answer.charges.size(); ++i) {
    const ChargeAnswer& charge = answer.charges[i];
    table.Row({Printable(charge.limit), Printable(call.charges[i].key), ChargeText(charge, "could start in")});
  }
  table.Print(out, "  ");
  return out.str();
}

std::string ReserveJson(const ReserveCall& call, const ReserveAnswer& answer) {
  std::ostringstream out;
  JsonWriter json(out);
  json.BeginObject().Key("granted").Value(answer.granted).Key("reason").Value(Name(answer.reason));
  if (answer.granted) {
    json.Key("reservation_id").Value(answer.reservation_id).Key("act_after").Value(answer.act_after);
    json.Key("expires_after").Value(answer.expires_after);
  }
  if (answer.retry_after.has_value()) json.Key("retry_after").Value(*answer.retry_after);
  json.Key("replayed").Value(answer.replayed);
  WriteCharges(call.charges, answer.charges, json);
  json.EndObject();
  out << "\n";
  return out.str();
}

std::string SettleText(const SettleAnswer& answer) {
  std::ostringstream out;
  const bool one = answer.charges.size() == 1;
  const std::string state = absl::AsciiStrToLower(Name(answer.state));
  Table head;
  std::vector<std::string> row = {state + " "};
  if (one) row.push_back(Spent(answer.charges[0]));
  if (answer.repeated) row.emplace_back(kRepeated);
  head.Row(std::move(row));
  head.Print(out);
  if (one) return out.str();
  Table table;
  for (const SettledCharge& charge : answer.charges) {
    table.Row({Printable(charge.limit), Printable(charge.key), Spent(charge)});
  }
  table.Print(out, "  ");
  return out.str();
}

std::string SettleJson(const SettleAnswer& answer) {
  std::ostringstream out;
  JsonWriter json(out);
  json.BeginObject().Key("state").Value(Name(answer.state)).Key("repeated").Value(answer.repeated);
  json.Key("charges").BeginArray();
  for (const SettledCharge& charge : answer.charges) {
    json.BeginObject().Key("limit").Value(charge.limit).Key("key").Value(charge.key);
    json.Key("reserved").Value(charge.reserved).Key("actual").Value(charge.actual);
    json.Key("given_back").Value(charge.given_back).Key("overrun").Value(charge.overrun);
    json.Key("uncovered").Value(charge.uncovered).EndObject();
  }
  json.EndArray().EndObject();
  out << "\n";
  return out.str();
}

}  // namespace ebbgate::client

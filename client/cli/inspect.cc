// ebbgate inspect: what is known of one bucket.
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/admin.h"
#include "client/cli/text.h"
#include "client/json.h"

namespace ebbgate::client {
namespace {

constexpr char kMore[] =
    "Example:\n"
    "  ebbgate inspect api-user alice\n"
    "\n"
    "Asks the admin port (--admin). Changes nothing. Exit code: 0, or 2 for an error.\n";

absl::Duration ToDuration(const google::protobuf::Duration& length) {
  return absl::Seconds(length.seconds()) + absl::Nanoseconds(length.nanos());
}

// Microtokens as tokens: "3.25".
std::string Tokens(std::int64_t microtokens) {
  std::string text = absl::StrFormat("%s%d.%06d", microtokens < 0 ? "-" : "", std::abs(microtokens / 1'000'000),
                                     std::abs(microtokens % 1'000'000));
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

// "50, may start in 2s, expires in 10m2s".
std::string Describe(const v1::HoldInfo& hold) {
  const std::string turn =
      hold.has_act_after() ? absl::StrCat("may start in ", UpToMs(ToDuration(hold.act_after()))) : "its turn has come";
  return absl::StrCat(Grouped(hold.cost()), ", ", turn, ", expires in ", UpToMs(ToDuration(hold.expires_after())));
}

// What the bucket owes and has promised, where there is any of it.
void AddHolds(const v1::InspectKeyResponse& bucket, Table& table) {
  if (bucket.debt_microtokens() > 0) table.Row({"owes", Tokens(bucket.debt_microtokens())});
  if (bucket.request_ids() > 0) table.Row({"request ids", absl::StrCat(bucket.request_ids(), " remembered")});
  if (bucket.open_holds() == 0) return;
  table.Row({"open holds", absl::StrCat(bucket.open_holds())});
  for (const v1::HoldInfo& hold : bucket.holds()) table.Row({"", Describe(hold)});
  const auto shown = static_cast<std::uint32_t>(bucket.holds_size());
  if (shown < bucket.open_holds()) table.Row({"", absl::StrCat("and ", bucket.open_holds() - shown, " more")});
}

void PrintText(std::ostream& out, const v1::InspectKeyResponse& bucket) {
  Table table;
  table.Row({"limit", Printable(bucket.limit())});
  table.Row({"key", Printable(bucket.key())});
  table.Row({"rule", Printable(bucket.parameters())});
  if (!bucket.override_pattern().empty()) table.Row({"override", Printable(bucket.override_pattern())});
  table.Row({"can spend now", absl::StrCat(Grouped(bucket.remaining()), " of ", Grouped(bucket.capacity()))});
  table.Row({"level", Tokens(bucket.level_microtokens())});
  const absl::Duration reset = ToDuration(bucket.reset_after());
  table.Row({"full in", reset > absl::ZeroDuration() ? UpToMs(reset) : "now"});
  if (!bucket.known()) {
    table.Row({"last charge", "none remembered: never charged, or full again"});
  } else {
    table.Row({"last charge", absl::StrCat(UpToMs(ToDuration(bucket.last_change_age())), " ago, ",
                                           Printable(bucket.last_change_label()))});
  }
  table.Row({"slot", absl::StrCat(bucket.slot())});
  AddHolds(bucket, table);
  table.Print(out);
}

void PrintJson(std::ostream& out, const v1::InspectKeyResponse& bucket) {
  JsonWriter json(out);
  json.BeginObject().Key("limit").Value(bucket.limit()).Key("key").Value(bucket.key());
  json.Key("known").Value(bucket.known()).Key("level_microtokens").Value(bucket.level_microtokens());
  json.Key("remaining").Value(bucket.remaining()).Key("capacity").Value(bucket.capacity());
  json.Key("reset_after").Value(ToDuration(bucket.reset_after()));
  if (bucket.has_last_change_age()) {
    json.Key("last_change_age").Value(ToDuration(bucket.last_change_age()));
    json.Key("last_change_label").Value(bucket.last_change_label());
  }
  json.Key("parameters").Value(bucket.parameters()).Key("override_pattern").Value(bucket.override_pattern());
  json.Key("slot").Value(bucket.slot()).Key("debt_microtokens").Value(bucket.debt_microtokens());
  json.Key("open_holds").Value(bucket.open_holds()).Key("holds").BeginArray();
  for (const v1::HoldInfo& hold : bucket.holds()) {
    json.BeginObject().Key("cost").Value(hold.cost());
    if (hold.has_act_after()) json.Key("act_after").Value(ToDuration(hold.act_after()));
    json.Key("expires_after").Value(ToDuration(hold.expires_after())).EndObject();
  }
  json.EndArray().Key("request_ids").Value(bucket.request_ids()).EndObject();
  out << "\n";
}

}  // namespace

void AddInspect(CLI::App& app, Session& session) {
  CLI::App* command = AddCommand(app, "inspect", "Show what is known of one key", kMore);
  const auto request = std::make_shared<v1::InspectKeyRequest>();
  command->add_option("limit", *request->mutable_limit(), "The limit")->required()->type_name("LIMIT");
  command->add_option("key", *request->mutable_key(), "The key")->required()->type_name("KEY");
  command->callback([&session, request] {
    const auto bucket = CallAdmin(session, &v1::Admin::Stub::InspectKey, *request);
    if (!bucket.ok()) {
      session.exit_code = Fail(session, bucket.status(), session.flags.admin);
    } else {
      session.flags.json ? PrintJson(session.out, *bucket) : PrintText(session.out, *bucket);
    }
  });
}

}  // namespace ebbgate::client

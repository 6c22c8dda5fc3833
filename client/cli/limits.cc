// ebbgate limits: the limits in force. ebbgate reload: reads their file again.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/admin.h"
#include "client/cli/text.h"
#include "client/json.h"

namespace ebbgate::client {
namespace {

// What is unlike the defaults, in a few words.
std::string Remarks(const v1::LimitInfo& limit) {
  std::vector<std::string> remarks;
  if (limit.shadow()) remarks.push_back("shadow");
  if (limit.default_cost() != 1) remarks.push_back(absl::StrCat("default cost ", Grouped(limit.default_cost())));
  if (limit.max_cost() != 0) remarks.push_back(absl::StrCat("cost at most ", Grouped(limit.max_cost())));
  if (limit.on_unavailable() == v1::ON_UNAVAILABLE_ALLOW) remarks.push_back("allow when unavailable");
  return absl::StrJoin(remarks, ", ");
}

void PrintText(std::ostream& out, const v1::ListLimitsResponse& response) {
  Table table;
  table.Row({"LIMIT", "ALGORITHM", "RULE", "REMARKS", "WHERE"});
  for (const v1::LimitInfo& limit : response.limits()) {
    table.Row({Printable(limit.name()), limit.algorithm(), limit.parameters(), Remarks(limit),
               absl::StrCat(Printable(limit.file()), ":", limit.line())});
    for (const v1::OverrideInfo& override : limit.overrides()) {
      table.Row({"  " + Printable(override.key()), "", override.parameters(), "",
                 absl::StrCat(Printable(limit.file()), ":", override.line())});
    }
  }
  table.Print(out);
  out << response.limits_size() << (response.limits_size() == 1 ? " limit" : " limits") << ", generation "
      << response.generation() << "\n";
}

absl::string_view AdviceName(v1::OnUnavailable advice) { return advice == v1::ON_UNAVAILABLE_ALLOW ? "allow" : "deny"; }

void WriteLimit(JsonWriter& json, const v1::LimitInfo& limit) {
  json.BeginObject().Key("name").Value(limit.name()).Key("algorithm").Value(limit.algorithm());
  json.Key("parameters").Value(limit.parameters()).Key("capacity").Value(limit.capacity());
  json.Key("shadow").Value(limit.shadow()).Key("default_cost").Value(limit.default_cost());
  if (limit.max_cost() != 0) json.Key("max_cost").Value(limit.max_cost());
  json.Key("on_unavailable").Value(AdviceName(limit.on_unavailable())).Key("time_zone").Value(limit.time_zone());
  json.Key("file").Value(limit.file()).Key("line").Value(limit.line()).Key("overrides").BeginArray();
  for (const v1::OverrideInfo& override : limit.overrides()) {
    json.BeginObject().Key("key").Value(override.key()).Key("parameters").Value(override.parameters());
    json.Key("line").Value(override.line()).EndObject();
  }
  json.EndArray().Key("metadata").BeginObject();
  std::vector<std::pair<std::string, std::string>> metadata(limit.metadata().begin(), limit.metadata().end());
  std::sort(metadata.begin(), metadata.end());
  for (const auto& [name, value] : metadata) json.Key(name).Value(value);
  json.EndObject().EndObject();
}

void PrintJson(std::ostream& out, const v1::ListLimitsResponse& response) {
  JsonWriter json(out);
  json.BeginObject().Key("generation").Value(response.generation()).Key("limits").BeginArray();
  for (const v1::LimitInfo& limit : response.limits()) WriteLimit(json, limit);
  json.EndArray().EndObject();
  out << "\n";
}

int Limits(Session& session) {
  const auto response = CallAdmin(session, &v1::Admin::Stub::ListLimits, v1::ListLimitsRequest());
  if (!response.ok()) return Fail(session, response.status(), session.flags.admin);
  session.flags.json ? PrintJson(session.out, *response) : PrintText(session.out, *response);
  return kExitOk;
}

int Reload(Session& session) {
  const auto response = CallAdmin(session, &v1::Admin::Stub::ReloadLimits, v1::ReloadLimitsRequest());
  if (!response.ok()) return Fail(session, response.status(), session.flags.admin);
  if (session.flags.json) {
    JsonWriter json(session.out);
    json.BeginObject().Key("changed").Value(response->changed()).Key("generation").Value(response->generation());
    json.Key("limits").Value(response->limits()).EndObject();
    session.out << "\n";
  } else {
    session.out << (response->changed() ? "reloaded: " : "nothing has changed: ") << response->limits()
                << (response->limits() == 1 ? " limit" : " limits") << ", generation " << response->generation()
                << "\n";
  }
  return kExitOk;
}

}  // namespace

void AddLimits(CLI::App& app, Session& session) {
  CLI::App* command = AddCommand(app, "limits", "List the limits in force, with file and line",
                                 "Asks the admin port (--admin). Exit code: 0, or 2 for an error.\n");
  command->callback([&session] { session.exit_code = Limits(session); });
}

void AddReload(CLI::App& app, Session& session) {
  CLI::App* command =
      AddCommand(app, "reload", "Make the server read its limits file again",
                 "A file that is not valid changes nothing and is reported with file, line and reason.\n"
                 "Asks the admin port (--admin). Exit code: 0, or 2 for an error.\n");
  command->callback([&session] { session.exit_code = Reload(session); });
}

}  // namespace ebbgate::client

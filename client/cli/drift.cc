// ebbgate drift: what was received against what was admitted.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/admin.h"
#include "client/cli/text.h"
#include "client/json.h"

namespace ebbgate::client {
namespace {

constexpr char kMore[] =
    "Examples:\n"
    "  ebbgate drift\n"
    "  ebbgate drift api-user --json\n"
    "\n"
    "States: ok; suspect, out of bounds now; drifting, out of bounds for the limit's whole window. When more is\n"
    "received than was admitted, suspect the limiter's window logic before assuming a traffic spike.\n"
    "Asks the admin port (--admin). Exit code: 0 nothing drifts, 1 something drifts, 2 an error.\n";

absl::Duration ToDuration(const google::protobuf::Duration& length) {
  return absl::Seconds(length.seconds()) + absl::Nanoseconds(length.nanos());
}

absl::string_view StateName(v1::DriftState state) {
  switch (state) {
    case v1::DRIFT_STATE_SUSPECT:
      return "suspect";
    case v1::DRIFT_STATE_DRIFTING:
      return "drifting";
    default:
      return "ok";
  }
}

// Received / admitted, for people.
std::string Ratio(const v1::LimitDrift& limit) {
  if (limit.admitted() == 0) return limit.received() == 0 ? "-" : "inf";
  return absl::StrFormat("%.3f", static_cast<double>(limit.received()) / static_cast<double>(limit.admitted()));
}

std::string Tokens(std::uint64_t count) {
  return Grouped(static_cast<std::int64_t>(std::min<std::uint64_t>(count, std::numeric_limits<std::int64_t>::max())));
}

std::string Bounds(const v1::LimitDrift& limit) {
  return absl::StrFormat("%g in %s", static_cast<double>(limit.ratio_millionths()) / 1e6,
                         absl::FormatDuration(ToDuration(limit.window())));
}

void PrintText(std::ostream& out, const v1::GetDriftResponse& response) {
  Table table;
  table.Row({"LIMIT", "STATE", "RATIO", "RECEIVED", "ADMITTED", "OVER", "BOUND", "LAST REPORT"});
  for (const v1::LimitDrift& limit : response.limits()) {
    if (!limit.has_last_report_age()) {
      table.Row({Printable(limit.limit()), "ok", "-", "-", "-", "-", Bounds(limit), "none"});
      continue;
    }
    table.Row({Printable(limit.limit()), std::string(StateName(limit.state())), Ratio(limit), Tokens(limit.received()),
               Tokens(limit.admitted()), UpToMs(ToDuration(limit.span())), Bounds(limit),
               absl::StrCat(UpToMs(ToDuration(limit.last_report_age())), " ago")});
    for (const v1::ReporterTotal& reporter : limit.reporters()) {
      table.Row({"  " + Printable(reporter.reporter()), "", "", Tokens(reporter.total()), "", "in all"});
    }
  }
  table.Print(out);
  out << response.reporters() << (response.reporters() == 1 ? " reporter, " : " reporters, ") << response.instances()
      << (response.instances() == 1 ? " instance\n" : " instances\n");
}

void WriteLimit(JsonWriter& json, const v1::LimitDrift& limit) {
  json.BeginObject().Key("limit").Value(limit.limit()).Key("state").Value(StateName(limit.state()));
  json.Key("received").Value(limit.received()).Key("admitted").Value(limit.admitted());
  json.Key("span").Value(ToDuration(limit.span()));
  if (limit.has_out_of_bounds_for()) json.Key("out_of_bounds_for").Value(ToDuration(limit.out_of_bounds_for()));
  if (limit.has_last_report_age()) json.Key("last_report_age").Value(ToDuration(limit.last_report_age()));
  json.Key("ratio_millionths").Value(limit.ratio_millionths()).Key("window").Value(ToDuration(limit.window()));
  json.Key("minimum").Value(limit.minimum()).Key("received_total").Value(limit.received_total());
  json.Key("reporters").BeginObject();
  for (const v1::ReporterTotal& reporter : limit.reporters()) json.Key(reporter.reporter()).Value(reporter.total());
  json.EndObject().EndObject();
}

void PrintJson(std::ostream& out, const v1::GetDriftResponse& response) {
  JsonWriter json(out);
  json.BeginObject().Key("reporters").Value(response.reporters()).Key("instances").Value(response.instances());
  json.Key("limits").BeginArray();
  for (const v1::LimitDrift& limit : response.limits()) WriteLimit(json, limit);
  json.EndArray().EndObject();
  out << "\n";
}

int Drift(Session& session, const v1::GetDriftRequest& request) {
  const auto response = CallAdmin(session, &v1::Admin::Stub::GetDrift, request);
  if (!response.ok()) return Fail(session, response.status(), session.flags.admin);
  session.flags.json ? PrintJson(session.out, *response) : PrintText(session.out, *response);
  const bool drifts =
      std::any_of(response->limits().begin(), response->limits().end(),
                  [](const v1::LimitDrift& limit) { return limit.state() == v1::DRIFT_STATE_DRIFTING; });
  return drifts ? kExitNo : kExitOk;
}

}  // namespace

void AddDrift(CLI::App& app, Session& session) {
  CLI::App* command = AddCommand(app, "drift", "Compare what was received with what was admitted", kMore);
  const auto request = std::make_shared<v1::GetDriftRequest>();
  command->add_option("limit", *request->mutable_limit(), "One limit; without it all of them")->type_name("LIMIT");
  command->callback([&session, request] { session.exit_code = Drift(session, *request); });
}

}  // namespace ebbgate::client

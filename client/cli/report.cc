// ebbgate report: tells the server what was received behind it. For scripts.
#include <unistd.h>

#include <array>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/channel.h"
#include "client/cli/command.h"
#include "client/cli/text.h"
#include "client/json.h"
#include "ebbgate/v1/rate_limiter.grpc.pb.h"
#include "google/protobuf/util/time_util.h"

namespace ebbgate::client {
namespace {

constexpr char kMore[] =
    "Examples:\n"
    "  start=$(date +%s)                                            once, when counting begins\n"
    "  ebbgate report billing api-user=0 --start-time $start        at once: what it starts from\n"
    "  ebbgate report billing api-user=120 --start-time $start      every few seconds\n"
    "\n"
    "Totals are cumulative since the start time: a report that is lost, repeated or late costs nothing. A process\n"
    "that restarts has a new start time and counts from 0. One that was counting before the server watched a limit\n"
    "is counted from its first report on. 'ebbgate drift' shows how they compare with what was admitted.\n"
    "Exit code: 0 taken, 2 an error; then nothing of it was taken.\n";

struct ReportArguments {
  std::string reporter;
  std::vector<std::string> totals;
  std::string instance;
  std::string start_time;
};

std::string HostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string();
}

// "LIMIT=TOTAL"; a limit's name may hold "=" too.
absl::Status ReadTotal(const std::string& text, v1::ObservedTotal& total) {
  const std::size_t equals = text.rfind('=');
  std::int64_t value = 0;
  if (equals == std::string::npos || !absl::SimpleAtoi(text.substr(equals + 1), &value)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not a total: write LIMIT=NUMBER, such as api-user=120"));
  }
  total.set_limit(text.substr(0, equals));
  total.set_total(value);
  return absl::OkStatus();
}

absl::Status ReadStartTime(const std::string& text, google::protobuf::Timestamp& time) {
  std::int64_t seconds = 0;
  if (absl::SimpleAtoi(text, &seconds)) {
    time.set_seconds(seconds);
    return absl::OkStatus();
  }
  if (google::protobuf::util::TimeUtil::FromString(text, &time)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--start-time '", text, "' is neither seconds since 1970 nor a time such as 2026-11-01T05:47:00Z"));
}

int Report(Session& session, const ReportArguments& arguments) {
  v1::ReportObservedRequest request;
  request.set_reporter(arguments.reporter);
  request.set_instance(arguments.instance);
  absl::Status status = ReadStartTime(arguments.start_time, *request.mutable_start_time());
  for (const std::string& text : arguments.totals) status.Update(ReadTotal(text, *request.add_totals()));
  if (!status.ok()) return Fail(session, status);
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel =
      OpenChannel(session.flags.server, session.flags.Tls(), /*own_connection=*/false);
  if (!channel.ok()) return Fail(session, channel.status());
  grpc::ClientContext context;
  SetTimeout(context, session.flags.timeout);
  v1::ReportObservedResponse response;
  const grpc::Status sent = v1::RateLimiter::NewStub(*channel)->ReportObserved(&context, request, &response);
  if (!sent.ok()) return Fail(session, FromGrpc(sent), session.flags.server);
  if (session.flags.json) {
    JsonWriter(session.out).BeginObject().Key("totals").Value(request.totals_size()).EndObject();
    session.out << "\n";
  } else {
    session.out << "reported: " << request.totals_size() << (request.totals_size() == 1 ? " total" : " totals")
                << " of " << Printable(request.reporter()) << ", " << Printable(request.instance()) << "\n";
  }
  return kExitOk;
}

}  // namespace

void AddReport(CLI::App& app, Session& session) {
  CLI::App* command = AddCommand(app, "report", "Tell what was received behind the limits", kMore);
  const auto arguments = std::make_shared<ReportArguments>();
  arguments->instance = HostName();
  command->add_option("reporter", arguments->reporter, "The service that received it")
      ->required()
      ->type_name("REPORTER");
  command->add_option("totals", arguments->totals, "Tokens of a limit received since the start time")
      ->required()
      ->type_name("LIMIT=TOTAL");
  command->add_option("--instance", arguments->instance, "Which process of the service; without it this host's name")
      ->type_name("NAME");
  command
      ->add_option("--start-time", arguments->start_time,
                   "When counting began: seconds since 1970, or a time such as 2026-11-01T05:47:00Z")
      ->required()
      ->type_name("TIME");
  command->callback([&session, arguments] { session.exit_code = Report(session, *arguments); });
}

}  // namespace ebbgate::client

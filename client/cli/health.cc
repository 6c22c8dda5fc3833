// ebbgate health: does the server say it is serving? Made for container health checks.
#include <memory>

#include "client/channel.h"
#include "client/cli/command.h"
#include "client/json.h"
#include "grpc/health/v1/health.grpc.pb.h"

namespace ebbgate::client {
namespace {

constexpr char kMore[] =
    "Examples:\n"
    "  ebbgate health\n"
    "  ebbgate health --service ebbgate.v1.RateLimiter --timeout 2s\n"
    "\n"
    "Exit code: 0 serving, 1 not serving (starting or stopping), 2 no answer.\n";

int Health(Session& session, const std::string& service) {
  namespace health = grpc::health::v1;
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel =
      OpenChannel(session.flags.server, session.flags.Tls(), /*own_connection=*/false);
  if (!channel.ok()) return Fail(session, channel.status());
  health::Health::Stub stub(*channel);
  grpc::ClientContext context;
  SetTimeout(context, session.flags.timeout);
  health::HealthCheckRequest request;
  request.set_service(service);
  health::HealthCheckResponse response;
  const grpc::Status status = stub.Check(&context, request, &response);
  if (!status.ok()) return Fail(session, FromGrpc(status), session.flags.server);
  const std::string name = health::HealthCheckResponse::ServingStatus_Name(response.status());
  if (session.flags.json) {
    JsonWriter(session.out).BeginObject().Key("status").Value(name).EndObject();
    session.out << "\n";
  } else {
    session.out << name << "\n";
  }
  return response.status() == health::HealthCheckResponse::SERVING ? kExitOk : kExitNo;
}

}  // namespace

void AddHealth(CLI::App& app, Session& session) {
  CLI::App* command = AddCommand(app, "health", "Ask whether the server is serving", kMore);
  const auto service = std::make_shared<std::string>();
  command->add_option("--service", *service, "A service by its full name; without it the whole server")
      ->type_name("NAME");
  command->callback([&session, service] { session.exit_code = Health(session, *service); });
}

}  // namespace ebbgate::client

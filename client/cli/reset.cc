// ebbgate reset: forgets what one bucket has spent.
#include <memory>

#include "client/cli/admin.h"
#include "client/cli/text.h"
#include "client/json.h"

namespace ebbgate::client {
namespace {

constexpr char kMore[] =
    "Example:\n"
    "  ebbgate reset api-user alice --reason 'ticket 4711: a runaway script'\n"
    "\n"
    "The bucket is full afterwards. The server logs the reason. Asks the admin port (--admin).\n"
    "Exit code: 0, also when there was nothing to forget; 2 for an error.\n";

int Reset(Session& session, const v1::ResetKeyRequest& request) {
  const auto response = CallAdmin(session, &v1::Admin::Stub::ResetKey, request);
  if (!response.ok()) return Fail(session, response.status(), session.flags.admin);
  if (session.flags.json) {
    JsonWriter(session.out).BeginObject().Key("known").Value(response->known()).EndObject();
    session.out << "\n";
  } else {
    session.out << (response->known() ? "reset: " : "nothing to reset: ") << Printable(request.limit()) << " "
                << Printable(request.key()) << " is full\n";
  }
  return kExitOk;
}

}  // namespace

void AddReset(CLI::App& app, Session& session) {
  CLI::App* command = AddCommand(app, "reset", "Forget what one key has spent", kMore);
  const auto request = std::make_shared<v1::ResetKeyRequest>();
  command->add_option("limit", *request->mutable_limit(), "The limit")->required()->type_name("LIMIT");
  command->add_option("key", *request->mutable_key(), "The key")->required()->type_name("KEY");
  command->add_option("--reason", *request->mutable_reason(), "Why, for the server's log")->type_name("TEXT");
  command->callback([&session, request] { session.exit_code = Reset(session, *request); });
}

}  // namespace ebbgate::client

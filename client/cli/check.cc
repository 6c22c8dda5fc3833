// ebbgate check: one call.
#include <memory>

#include "client/cli/answer_text.h"
#include "client/cli/command.h"

namespace ebbgate::client {
namespace {

constexpr char kMore[] =
    "Examples:\n"
    "  ebbgate check api-user alice                                 charges the limit's default cost\n"
    "  ebbgate check api-user alice --cost 3\n"
    "  ebbgate check api-user alice --and api-all total --cost 2    both are charged, or none is\n"
    "  ebbgate check api-user alice --peek                          asks, and charges nothing\n"
    "\n"
    "Exit code: 0 allowed, 1 denied, 2 no decision (an error).\n";

int Check(Session& session, Call call) {
  for (Charge& charge : session.more_charges) call.charges.push_back(std::move(charge));
  absl::StatusOr<std::unique_ptr<Client>> client =
      Client::Connect({.address = session.flags.server, .tls = session.flags.Tls()});
  if (!client.ok()) return Fail(session, client.status());
  const absl::StatusOr<Answer> answer = (*client)->ShouldAllow(call, session.flags.timeout);
  if (!answer.ok()) return Fail(session, answer.status(), session.flags.server);
  if (answer->charges.size() != call.charges.size()) {
    return Fail(session, absl::InternalError("the server answered another number of charges than were asked"));
  }
  session.out << (session.flags.json ? AnswerJson(call, *answer) : AnswerText(call, *answer));
  return answer->allowed ? kExitOk : kExitNo;
}

}  // namespace

void AddCheck(CLI::App& app, Session& session) {
  CLI::App* command = AddCommand(app, "check", "Ask whether work may be done, and charge for it", kMore);
  const auto call = std::make_shared<Call>();
  call->charges.resize(1);
  Charge& first = call->charges[0];
  command->add_option("limit", first.limit, "The limit to charge")->required()->type_name("LIMIT");
  command->add_option("key", first.key, "Who is charged")->required()->type_name("KEY");
  command->add_option("--cost", first.cost, "Tokens; without it the limit's default; 0 looks")->type_name("N");
  // Taken off before the parser sees it; here for the help.
  command->add_option("--and", "A further charge, as often as wanted: --and LIMIT KEY [--cost N]")
      ->type_name("LIMIT KEY");
  command->add_flag("--peek", call->peek, "Answer as if asked in earnest, but charge nothing");
  command->add_option("--request-id", call->request_id, "A call repeated with the same id is charged once")
      ->type_name("ID");
  command->callback([&session, call] { session.exit_code = Check(session, *call); });
}

}  // namespace ebbgate::client

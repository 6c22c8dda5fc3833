// ebbgate reserve, settle and cancel: work whose price is known afterwards, or that can wait for its turn.
#include <memory>

#include "client/cli/command.h"
#include "client/cli/reservation_text.h"

namespace ebbgate::client {
namespace {

constexpr char kMoreOfReserve[] =
    "Takes tokens before the work, for settling afterwards what it really cost.\n"
    "\n"
    "Examples:\n"
    "  ebbgate reserve reports team-7 --cost 50                     50 at most; refused unless it may start now\n"
    "  ebbgate reserve mail-out acme --max-wait 10s --wait          queues: returns when its turn has come\n"
    "  id=$(ebbgate reserve reports team-7 --cost 50 --id-only)\n"
    "  ebbgate settle $id 37                                        it cost 37: 13 come back\n"
    "\n"
    "A hold that is neither settled nor cancelled expires --hold-for after its turn; what was reserved then counts as\n"
    "spent, unless the limit says 'on_hold_expiry: give_back'.\n"
    "A call whose answer was lost may be made again with the same --request-id: it is charged once.\n"
    "\n"
    "Exit code: 0 granted, 1 refused (nothing was taken), 2 no decision (an error).\n";

constexpr char kMoreOfSettle[] =
    "Ends a hold with what its work cost: one amount for each charge of the reservation, in its order.\n"
    "\n"
    "Examples:\n"
    "  ebbgate settle 0123456789abcdef0123456789abcdef 37\n"
    "  ebbgate settle 0123456789abcdef0123456789abcdef 37 1         a reservation of two charges\n"
    "\n"
    "Less than was reserved: the rest comes back. More: the bucket owes it, up to the limit's max_debt.\n"
    "A hold ends once: settling again changes nothing and prints the first answer.\n"
    "Exit code: 0 settled, now or before; 1 it had been cancelled, or had expired; 2 an error.\n";

constexpr char kMoreOfCancel[] =
    "Ends a hold whose work was not done: what was reserved comes back.\n"
    "\n"
    "Example:\n"
    "  ebbgate cancel 0123456789abcdef0123456789abcdef\n"
    "\n"
    "A hold ends once: cancelling again changes nothing and prints the first answer.\n"
    "Exit code: 0 cancelled, now or before; 1 it had been settled, or had expired; 2 an error.\n";

struct ReserveFlags {
  ReserveCall call;
  absl::Duration hold_for = absl::Minutes(10);
  bool wait = false;
  bool id_only = false;
};

absl::StatusOr<std::unique_ptr<Client>> Connect(const Session& session) {
  return Client::Connect({.address = session.flags.server, .tls = session.flags.Tls()});
}

int Reserve(Session& session, const ReserveFlags& flags) {
  ReserveCall call = flags.call;
  for (Charge& charge : session.more_charges) call.charges.push_back(std::move(charge));
  const absl::StatusOr<std::unique_ptr<Client>> client = Connect(session);
  if (!client.ok()) return Fail(session, client.status());
  const absl::StatusOr<ReserveAnswer> answer = (*client)->Reserve(call, session.flags.timeout);
  if (!answer.ok()) return Fail(session, answer.status(), session.flags.server);
  if (answer->charges.size() != call.charges.size()) {
    return Fail(session, absl::InternalError("the server answered another number of charges than were asked"));
  }
  if (!flags.id_only) {
    session.out << (session.flags.json ? ReserveJson(call, *answer) : ReserveText(call, *answer));
  } else if (answer->granted) {
    session.out << answer->reservation_id << "\n";
  } else {
    session.err << ReserveText(call, *answer);
  }
  session.out.flush();
  if (flags.wait && answer->granted) (*client)->surroundings().Sleep(answer->act_after);
  return answer->granted ? kExitOk : kExitNo;
}

// Of settle and cancel, which want the hold to end in the state `wanted`.
int End(Session& session, const absl::StatusOr<SettleAnswer>& answer, HoldState wanted) {
  if (!answer.ok()) return Fail(session, answer.status(), session.flags.server);
  session.out << (session.flags.json ? SettleJson(*answer) : SettleText(*answer));
  return answer->state == wanted ? kExitOk : kExitNo;
}

int Settle(Session& session, const std::string& id, const std::vector<std::int64_t>& actual) {
  const absl::StatusOr<std::unique_ptr<Client>> client = Connect(session);
  if (!client.ok()) return Fail(session, client.status());
  return End(session, (*client)->Settle(id, actual, session.flags.timeout), HoldState::kSettled);
}

int Cancel(Session& session, const std::string& id) {
  const absl::StatusOr<std::unique_ptr<Client>> client = Connect(session);
  if (!client.ok()) return Fail(session, client.status());
  return End(session, (*client)->Cancel(id, session.flags.timeout), HoldState::kCancelled);
}

}  // namespace

void AddReserve(CLI::App& app, Session& session) {
  CLI::App* command =
      AddCommand(app, "reserve", "Take tokens for work to come, now or when its turn comes", kMoreOfReserve);
  const auto flags = std::make_shared<ReserveFlags>();
  ReserveCall& call = flags->call;
  call.charges.resize(1);
  Charge& first = call.charges[0];
  command->add_option("limit", first.limit, "The limit to charge")->required()->type_name("LIMIT");
  command->add_option("key", first.key, "Who is charged")->required()->type_name("KEY");
  command->add_option("--cost", first.cost, "Tokens that the work may take; without it the limit's default")
      ->type_name("N");
  // Taken off before the parser sees it; here for the help.
  command->add_option("--and", "A further charge, as often as wanted: --and LIMIT KEY [--cost N]")
      ->type_name("LIMIT KEY");
  AddDuration(*command, "--max-wait", call.max_wait, "How long the work can wait for its turn, such as 10s; 0s: not",
              Length::kAny);
  CLI::Option* hold_for =
      AddDuration(*command, "--hold-for", flags->hold_for, "How long after its turn the hold stays open, such as 10m");
  command->add_option("--request-id", call.request_id, "A call repeated with the same id is charged once")
      ->type_name("ID");
  command->add_flag("--wait", flags->wait, "Return only when the turn has come");
  command->add_flag("--id-only", flags->id_only, "Print the reservation's id and nothing else, for scripts");
  command->callback([&session, flags, hold_for] {
    if (hold_for->count() > 0) flags->call.hold_for = flags->hold_for;
    session.exit_code = Reserve(session, *flags);
  });
}

void AddSettle(CLI::App& app, Session& session) {
  CLI::App* command = AddCommand(app, "settle", "Say what reserved work really cost", kMoreOfSettle);
  const auto id = std::make_shared<std::string>();
  const auto actual = std::make_shared<std::vector<std::int64_t>>();
  command->add_option("id", *id, "The reservation")->required()->type_name("ID");
  command->add_option("actual", *actual, "Tokens, one amount for each charge")->required()->type_name("ACTUAL");
  command->callback([&session, id, actual] { session.exit_code = Settle(session, *id, *actual); });
}

void AddCancel(CLI::App& app, Session& session) {
  CLI::App* command =
      AddCommand(app, "cancel", "Give back what was reserved for work that was not done", kMoreOfCancel);
  const auto id = std::make_shared<std::string>();
  command->add_option("id", *id, "The reservation")->required()->type_name("ID");
  command->callback([&session, id] { session.exit_code = Cancel(session, *id); });
}

}  // namespace ebbgate::client

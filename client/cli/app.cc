#include "client/cli/app.h"

#include <exception>
#include <utility>

#include "client/cli/command.h"
#include "client/cli/split_charges.h"

namespace ebbgate::client {
namespace {

constexpr char kAbout[] =
    "Ask an Ebbgate server whether work may be done, look into its limits, and test limits before they are used.";

constexpr char kExamples[] =
    "Examples:\n"
    "  ebbgate check api-user alice                      may alice do one more call?\n"
    "  ebbgate check api-user alice --and api-all total  only if both limits allow it\n"
    "  ebbgate reserve reports team-7 --cost 50          tokens for work whose price is known only afterwards\n"
    "  ebbgate inspect api-user alice                    what is known of alice's bucket\n"
    "  ebbgate drift                                     does what is received agree with what was admitted?\n"
    "  ebbgate lint limits.yaml                          is this file right?\n"
    "  ebbgate load --limit api-user --duration 5s       how fast is the server?\n"
    "\n"
    "Flags may stand before or after the command. 'ebbgate COMMAND --help' tells more.\n"
    "Exit code: 0 yes, 1 no (denied, not ready, something differs or drifts), 2 an error.\n";

void AddGlobalFlags(CLI::App& app, GlobalFlags& flags) {
  app.add_option("--server", flags.server, "Where calls go: host:port or unix:/path")
      ->envname("EBBGATE_SERVER")
      ->type_name("ADDR")
      ->capture_default_str();
  app.add_option("--admin", flags.admin, "Where inspect, reset, limits, reload and drift go")
      ->envname("EBBGATE_ADMIN")
      ->type_name("ADDR")
      ->capture_default_str();
  app.add_flag("--json", flags.json, "Print JSON, for programs");
  AddDuration(app, "--timeout", flags.timeout, "How long to wait for an answer, such as 200ms");
  app.add_flag("--tls", flags.tls, "Connect by TLS and trust the usual authorities");
  app.add_option("--tls-ca", flags.tls_files.ca, "Connect by TLS and trust these authorities")->type_name("PEM");
  app.add_option("--tls-cert", flags.tls_files.cert, "Connect by TLS and show this certificate")->type_name("PEM");
  app.add_option("--tls-key", flags.tls_files.key, "The key of --tls-cert")->type_name("PEM");
}

}  // namespace

std::optional<TlsFiles> GlobalFlags::Tls() const {
  const bool wanted = tls || !tls_files.ca.empty() || !tls_files.cert.empty() || !tls_files.key.empty();
  return wanted ? std::optional(tls_files) : std::nullopt;
}

CLI::App* AddCommand(CLI::App& app, const std::string& name, const std::string& summary, const std::string& more) {
  CLI::App* command = app.add_subcommand(name, summary);
  command->fallthrough();
  command->footer(more + "Flags of all commands, such as --server and --json: 'ebbgate --help'.\n");
  return command;
}

CLI::Option* AddDuration(CLI::App& app, const std::string& name, absl::Duration& value, const std::string& help,
                         Length length) {
  const auto read = [&value, name, length](const std::string& text) {
    absl::Duration given;
    if (!absl::ParseDuration(text, &given) || given < absl::ZeroDuration() ||
        (given == absl::ZeroDuration() && length == Length::kLongerThanNothing)) {
      throw CLI::ValidationError(name, "'" + text + "' is not a length of time such as 200ms, 5s or 1m30s");
    }
    value = given;
  };
  return app.add_option_function<std::string>(name, read, help)
      ->type_name("TIME")
      ->default_str(value == absl::ZeroDuration() ? "0s" : absl::FormatDuration(value));
}

int RunCommandLine(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  Session session{.out = out, .err = err};
  CLI::App app(kAbout, "ebbgate");
  app.footer(kExamples);
  app.set_version_flag("--version", std::string("ebbgate ") + EBBGATE_VERSION);
  app.require_subcommand(1);
  AddGlobalFlags(app, session.flags);
  for (const auto add : {AddCheck, AddReserve, AddSettle, AddCancel, AddInspect, AddReset, AddLimits, AddReload,
                         AddDrift, AddReport, AddLint, AddReplay, AddLoad, AddHealth}) {
    add(app, session);
  }
  absl::StatusOr<SplitArguments> split = SplitCharges(args);
  if (!split.ok()) return Fail(session, split.status());
  session.more_charges = std::move(split->charges);
  try {
    std::vector<std::string> reversed(split->rest.rbegin(), split->rest.rend());
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    return app.exit(error, out, err) == 0 ? kExitOk : kExitError;
  } catch (const std::exception& error) {
    return Fail(session, absl::InternalError(error.what()));
  }
  return session.exit_code;
}

}  // namespace ebbgate::client

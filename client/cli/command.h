// What the subcommands of `ebbgate` share: the flags they all take, where they print, and how they end.
//
// Each subcommand lives in a file of its own, which adds it to the command line by the function declared here. A
// command that has run leaves its exit code in Session::exit_code.
#ifndef EBBGATE_CLIENT_CLI_COMMAND_H_
#define EBBGATE_CLIENT_CLI_COMMAND_H_

#include <CLI/CLI.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/client.h"
#include "client/tls_files.h"

namespace ebbgate::client {

// Exit codes. For `check` and `reserve`: yes, no, error. Others say in their help what they mean by the second.
inline constexpr int kExitOk = 0;
inline constexpr int kExitNo = 1;
inline constexpr int kExitError = 2;

struct GlobalFlags {
  std::string server = "127.0.0.1:7370";
  std::string admin = "127.0.0.1:7373";
  bool json = false;
  absl::Duration timeout = absl::Seconds(1);
  TlsFiles tls_files;
  bool tls = false;

  std::optional<TlsFiles> Tls() const;
};

// One run of the command line.
struct Session {
  std::ostream& out;
  std::ostream& err;
  GlobalFlags flags = {};
  // Of `check` and `reserve`: the charges after the first, which `--and` introduced (see split_charges.h).
  std::vector<Charge> more_charges = {};
  int exit_code = kExitOk;
};

void AddCancel(CLI::App& app, Session& session);
void AddCheck(CLI::App& app, Session& session);
void AddDrift(CLI::App& app, Session& session);
void AddHealth(CLI::App& app, Session& session);
void AddInspect(CLI::App& app, Session& session);
void AddLimits(CLI::App& app, Session& session);
void AddLint(CLI::App& app, Session& session);
void AddLoad(CLI::App& app, Session& session);
void AddReplay(CLI::App& app, Session& session);
void AddReload(CLI::App& app, Session& session);
void AddReport(CLI::App& app, Session& session);
void AddReserve(CLI::App& app, Session& session);
void AddReset(CLI::App& app, Session& session);
void AddSettle(CLI::App& app, Session& session);

// A subcommand that takes the global flags too.
CLI::App* AddCommand(CLI::App& app, const std::string& name, const std::string& summary, const std::string& more);

// An option whose value is a length of time such as "200ms".
enum class Length { kLongerThanNothing, kAny };
CLI::Option* AddDuration(CLI::App& app, const std::string& name, absl::Duration& value, const std::string& help,
                         Length length = Length::kLongerThanNothing);

// Prints an error, as text or JSON, with what to do next where that is known; returns kExitError.
// `address` is the server that was asked, empty if none was.
int Fail(Session& session, const absl::Status& error, absl::string_view address = "");

}  // namespace ebbgate::client

#endif  // EBBGATE_CLIENT_CLI_COMMAND_H_

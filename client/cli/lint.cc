// ebbgate lint: is a limits file right, and does it mean what it says?
#include <memory>

#include "absl/strings/str_split.h"
#include "client/cli/command.h"
#include "client/cli/text.h"
#include "client/json.h"
#include "server/config/limits_file.h"

namespace ebbgate::client {
namespace {

constexpr char kMore[] =
    "Examples:\n"
    "  ebbgate lint limits.yaml\n"
    "  ebbgate lint limits.yaml && mv limits.yaml /etc/ebbgate/     (warnings stop it too)\n"
    "\n"
    "Needs no server. Errors are what a server would refuse; warnings are what is surely not meant, such as a\n"
    "default cost above the capacity.\n"
    "Exit code: 0 nothing found, 1 warnings only, 2 errors.\n";

struct Findings {
  std::size_t limits = 0;
  std::vector<std::string> errors;
  std::vector<std::string> warnings;
};

Findings LintFile(const std::string& path) {
  Findings findings;
  const absl::StatusOr<std::vector<Limit>> limits = LoadLimits(path);
  if (!limits.ok()) {
    findings.errors = absl::StrSplit(limits.status().message(), '\n', absl::SkipEmpty());
    if (findings.errors.empty()) findings.errors.push_back(limits.status().ToString());
    return findings;
  }
  findings.limits = limits->size();
  findings.warnings = LintLimits(*limits);
  return findings;
}

void PrintText(std::ostream& out, const std::string& path, const Findings& findings) {
  for (const std::string& line : findings.errors) out << "error: " << Printable(line) << "\n";
  for (const std::string& line : findings.warnings) out << "warning: " << Printable(line) << "\n";
  if (!findings.errors.empty()) return;
  out << Printable(path) << ": " << findings.limits << (findings.limits == 1 ? " limit, " : " limits, ")
      << (findings.warnings.empty() ? "nothing found" : "usable, but see above") << "\n";
}

void PrintJson(std::ostream& out, const std::string& path, const Findings& findings) {
  JsonWriter json(out);
  json.BeginObject().Key("file").Value(path).Key("limits").Value(findings.limits).Key("errors").BeginArray();
  for (const std::string& line : findings.errors) json.Value(line);
  json.EndArray().Key("warnings").BeginArray();
  for (const std::string& line : findings.warnings) json.Value(line);
  json.EndArray().EndObject();
  out << "\n";
}

int Lint(Session& session, const std::string& path) {
  const Findings findings = LintFile(path);
  session.flags.json ? PrintJson(session.out, path, findings) : PrintText(session.out, path, findings);
  if (!findings.errors.empty()) return kExitError;
  return findings.warnings.empty() ? kExitOk : kExitNo;
}

}  // namespace

void AddLint(CLI::App& app, Session& session) {
  CLI::App* command = AddCommand(app, "lint", "Check a limits file without a server", kMore);
  const auto path = std::make_shared<std::string>();
  command->add_option("file", *path, "The limits file")->required()->type_name("FILE");
  command->callback([&session, path] { session.exit_code = Lint(session, *path); });
}

}  // namespace ebbgate::client

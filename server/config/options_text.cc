#include "server/config/options_text.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace ebbgate {
namespace {

constexpr std::size_t kHelpColumns = 100;
constexpr std::size_t kHelpIndent = 6;
constexpr absl::string_view kActions = "Actions";

// --- Help ------------------------------------------------------------------------------------------------------------

void AppendWrapped(absl::string_view text, std::string& out) {
  std::size_t column = 0;
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (column == 0 || column + 1 + word.size() > kHelpColumns) {
      absl::StrAppend(&out, column == 0 ? "" : "\n", std::string(kHelpIndent, ' '), word);
      column = kHelpIndent + word.size();
    } else {
      absl::StrAppend(&out, " ", word);
      column += 1 + word.size();
    }
  }
  out += '\n';
}

void AppendSetting(const Setting& setting, const ServerOptions& defaults, std::string& out) {
  absl::StrAppend(&out, "  --", setting.name, setting.value.empty() ? "" : " ", setting.value, "\n");
  std::string text(setting.help);
  const std::vector<std::string> values = setting.get(defaults);
  // The number of cores differs from machine to machine, and the help says it.
  if (!values.empty() && !setting.value.empty() && setting.name != "threads") {
    absl::StrAppend(&text, " Default: ", absl::StrJoin(values, ", "), ".");
  }
  absl::StrAppend(&text, " Variable: ", VariableOf(setting), ".");
  AppendWrapped(text, out);
}

constexpr absl::string_view kHelpHead =
    R"(ebbgated: answers whether a request may proceed, from memory, and never admits more than its limits say.

Usage: ebbgated --limits FILE [--listen ADDR]... [flags]

Examples:
  Try it on this machine:
    ebbgated --limits deploy/examples/limits.yaml
    ebbgate check api-user alice
  Serve other machines, which must show a certificate:
    ebbgated --limits limits.yaml --listen 0.0.0.0:7370 \
      --tls-cert server.pem --tls-key server.key --tls-client-ca callers-ca.pem

Every flag --x-y is also the variable EBBGATE_X_Y and the key x_y of the file that --config names.
A flag beats the variable, the variable beats the file. A TIME has units: 500ms, 10s, 1h30m. Paths are
those of the working directory.
)";

constexpr absl::string_view kHelpFlagsOnly =
    R"(  --config FILE
      Settings as YAML, such as --print-config prints. Variable: EBBGATE_CONFIG.
  --version
      Print the version, and exit.
  -h, --help
      Print this, and exit.

Signals: SIGTERM and SIGINT stop gracefully, SIGHUP reads the limits again.
)";

// --- The file --------------------------------------------------------------------------------------------------------

// A scalar that YAML reads back as the same text.
std::string YamlScalar(absl::string_view text) {
  const bool plain =
      !text.empty() && (absl::ascii_isalnum(static_cast<unsigned char>(text.front())) || text.front() == '/') &&
      text.back() != ':' && !absl::EqualsIgnoreCase(text, "null") && std::all_of(text.begin(), text.end(), [](char c) {
        return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
               absl::StrContains("._-/:+@", absl::string_view(&c, 1));
      });
  return plain ? std::string(text)
               : absl::StrCat("\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"");
}

std::string SettingLine(const Setting& setting, const ServerOptions& options, const SettingSource& source) {
  const std::vector<std::string> values = setting.get(options);
  if (values.empty()) return absl::StrCat("# ", KeyOf(setting), ":  # not set");
  std::vector<std::string> scalars;
  scalars.reserve(values.size());
  for (const std::string& value : values) scalars.push_back(YamlScalar(value));
  const std::string value =
      setting.repeatable ? absl::StrCat("[", absl::StrJoin(scalars, ", "), "]") : absl::StrJoin(scalars, "");
  return absl::StrCat(KeyOf(setting), ": ", value, "  # ", source.origin);
}

}  // namespace

std::string VersionText() { return "ebbgated " EBBGATE_VERSION "\n"; }

std::string HelpText() {
  const ServerOptions defaults = DefaultServerOptions();
  std::string out(kHelpHead);
  absl::string_view group;
  for (const Setting& setting : Settings()) {
    if (setting.group != group) absl::StrAppend(&out, "\n", group = setting.group, ":\n");
    AppendSetting(setting, defaults, out);
  }
  absl::StrAppend(&out, kHelpFlagsOnly);
  return out;
}

std::string ConfigText(const ServerOptions& options, const SettingSources& sources) {
  std::string out = "# Settings of ebbgated, and where each came from.\n";
  for (const Setting& setting : Settings()) {
    if (setting.group == kActions) continue;
    absl::StrAppend(&out, SettingLine(setting, options, sources.at(setting.name)), "\n");
  }
  return out;
}

}  // namespace ebbgate

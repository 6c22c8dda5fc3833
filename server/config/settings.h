// The table of ebbgated's settings: for each its name, its help, and how it goes in and out of ServerOptions as text.
// Internal to config: server_options.cc gathers values from flags, environment and file, and puts them in through here.
#ifndef EBBGATE_SERVER_CONFIG_SETTINGS_H_
#define EBBGATE_SERVER_CONFIG_SETTINGS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/config/server_options.h"

namespace ebbgate {

struct Setting {
  absl::string_view name;  // "drain-delay": the flag without its dashes
  absl::string_view group;
  absl::string_view value;  // what stands for the value in the help, "TIME"; empty: a switch
  absl::string_view help;
  bool repeatable = false;
  // The message of an error does not name the setting. Pre: one value, or at least one if repeatable.
  absl::Status (*set)(const std::vector<std::string>& values, ServerOptions& options) = nullptr;
  // As `set` takes it; empty where nothing is set.
  std::vector<std::string> (*get)(const ServerOptions& options) = nullptr;
};

// In the order of the help.
absl::Span<const Setting> Settings();

// "EBBGATE_DRAIN_DELAY" and "drain_delay".
std::string VariableOf(const Setting& setting);
std::string KeyOf(const Setting& setting);

// The values that a setting was given, as text, and by what.
struct SettingSource {
  std::vector<std::string> values;  // none: its default holds
  std::string origin;               // "--listen", "EBBGATE_LISTEN", "server.yaml:3" or "default"
  std::string prefix;               // of an error: "--listen", "EBBGATE_LISTEN", "server.yaml:3: listen"
};
// By the setting's name; one for each.
using SettingSources = std::map<absl::string_view, SettingSource>;

// What holds if nothing is set.
ServerOptions DefaultServerOptions();

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_CONFIG_SETTINGS_H_

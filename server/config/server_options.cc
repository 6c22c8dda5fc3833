#include "server/config/server_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/config/faults.h"
#include "server/config/files.h"
#include "server/config/options_check.h"
#include "server/config/options_text.h"
#include "server/config/settings.h"
#include "server/config/text.h"
#include "server/config/yaml_fields.h"
#include "server/config/yaml_tree.h"

namespace ebbgate {
namespace {

using Getenv = std::function<const char*(const char*)>;

// Not settings: they stand on the command line only (the file also in a variable).
constexpr absl::string_view kConfig = "config";
constexpr absl::string_view kHelp = "help";
constexpr absl::string_view kVersion = "version";
constexpr const char* kConfigVariable = "EBBGATE_CONFIG";

// --- The command line ------------------------------------------------------------------------------------------------

// What it says: the values of each flag that was given.
using Flags = std::map<std::string, std::vector<std::string>, std::less<>>;

std::vector<absl::string_view> FlagNames() {
  std::vector<absl::string_view> names = {kConfig, kHelp, kVersion};
  for (const Setting& setting : Settings()) names.push_back(setting.name);
  return names;
}

absl::Status UnknownArgument(const std::string& argument) {
  if (!absl::StartsWith(argument, "-")) {
    return absl::InvalidArgumentError(
        absl::StrCat(Quote(argument), ": belongs to no flag (hint: see ebbgated --help)"));
  }
  const absl::string_view name =
      absl::string_view(argument).substr(std::min(argument.find_first_not_of('-'), argument.size()));
  const absl::string_view nearest = Nearest(name.substr(0, name.find('=')), FlagNames());
  return absl::InvalidArgumentError(
      absl::StrCat(Quote(argument), ": is no flag (hint: ",
                   nearest.empty() ? "see ebbgated --help" : absl::StrCat("did you mean --", nearest, "?"), ")"));
}

absl::StatusOr<Flags> ParseFlags(int argc, const char* const* argv) {
  CLI::App app("", "ebbgated");
  app.set_help_flag();
  app.allow_extras();
  Flags flags;
  const auto add = [&](absl::string_view name, absl::string_view value) {
    std::vector<std::string>& values = flags[std::string(name)];
    const std::string flag = absl::StrCat(name == kHelp ? "-h," : "", "--", name);
    if (value.empty()) {
      app.add_flag(flag, values)->take_all();
    } else {
      app.add_option(flag, values)->allow_extra_args(false)->take_all()->type_name(std::string(value));
    }
  };
  for (const Setting& setting : Settings()) add(setting.name, setting.value);
  add(kConfig, "FILE");
  add(kHelp, "");
  add(kVersion, "");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Error& error) {
    return absl::InvalidArgumentError(absl::StrCat(error.what(), " (hint: see ebbgated --help)"));
  }
  const std::vector<std::string> rest = app.remaining();
  if (!rest.empty()) return UnknownArgument(rest.front());
  return flags;
}

// --- The file --------------------------------------------------------------------------------------------------------

std::vector<std::string> ValuesOf(const YamlNode& node, const Setting& setting, absl::string_view path,
                                  Faults& faults) {
  std::vector<std::string> values;
  if (node.kind == YamlNode::Kind::kScalar) return {node.text};
  if (node.kind == YamlNode::Kind::kList && setting.repeatable && !node.items.empty()) {
    for (const YamlNode& item : node.items) {
      if (item.kind != YamlNode::Kind::kScalar) {
        faults.Add(item.line, path, absl::StrCat("must be a list of values, but holds ", Name(item.kind)));
        return {};
      }
      values.push_back(item.text);
    }
    return values;
  }
  faults.Add(node.line, path, absl::StrCat("must be a value, but is ", Name(node.kind)),
             "remove the line to leave it at its default");
  return values;
}

void ReadFileSettings(const YamlNode& root, Faults& faults, SettingSources& out) {
  const YamlFields fields(root, "", faults);
  std::vector<std::string> keys;
  for (const Setting& setting : Settings()) keys.push_back(KeyOf(setting));
  std::vector<absl::string_view> known(keys.begin(), keys.end());
  for (const Setting& setting : Settings()) {
    if (absl::StrContains(setting.name, '-')) known.push_back(setting.name);
  }
  fields.RefuseUnknown(known);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Setting& setting = Settings()[i];
    const YamlNode* plain = fields.Find(keys[i]);
    const YamlNode* dashed = keys[i] == setting.name ? nullptr : fields.Find(setting.name);
    if (plain != nullptr && dashed != nullptr) {
      faults.Add(dashed->line, setting.name,
                 absl::StrCat("is the same as ", keys[i], ", which stands on line ", plain->line));
    }
    const YamlNode* node = plain != nullptr ? plain : dashed;
    if (node == nullptr) continue;
    const std::string key = plain != nullptr ? keys[i] : std::string(setting.name);
    std::vector<std::string> values = ValuesOf(*node, setting, key, faults);
    if (values.empty()) continue;
    const std::string place = absl::StrCat(faults.file(), ":", node->line);
    out[setting.name] = {.values = std::move(values), .origin = place, .prefix = absl::StrCat(place, ": ", key)};
  }
}

// The settings that stand in the file; what is wrong with it is added to `errors`.
SettingSources ReadConfigFile(const std::string& path, absl::string_view origin, std::vector<std::string>& errors) {
  SettingSources result;
  // The path becomes part of messages and comments.
  const bool readable = ValidUtf8Prefix(path) == path.size() && !HasControlCharacter(path);
  const absl::StatusOr<std::string> text =
      readable ? ReadRegularFile(path, kMaxLimitsFileBytes)
               : absl::InvalidArgumentError(absl::StrCat(Quote(path), " is no path of plain text"));
  if (!text.ok()) {
    errors.push_back(absl::StrCat(origin, ": ", text.status().message()));
    return result;
  }
  Faults faults(path);
  if (const std::optional<YamlNode> root = ReadYaml(*text, faults)) ReadFileSettings(*root, faults, result);
  if (faults.count() > 0) errors.push_back(std::string(faults.ToStatus().message()));
  return result;
}

// --- All together ----------------------------------------------------------------------------------------------------

// The value of a variable, unless it is not set or empty.
std::optional<std::string> Variable(const Getenv& getenv, const std::string& name) {
  const char* value = getenv(name.c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

// Flag beats variable beats file beats default; the last has no values.
SettingSource Choose(const Setting& setting, const Flags& flags, const Getenv& getenv, SettingSources& file) {
  const std::string flag = absl::StrCat("--", setting.name);
  if (const auto given = flags.find(setting.name); !given->second.empty()) {
    return {.values = given->second, .origin = flag, .prefix = flag};
  }
  const std::string variable = VariableOf(setting);
  if (const std::optional<std::string> value = Variable(getenv, variable)) {
    std::vector<std::string> values = {*value};
    if (setting.repeatable) values = absl::StrSplit(*value, ',');
    return {.values = std::move(values), .origin = variable, .prefix = variable};
  }
  if (const auto given = file.find(setting.name); given != file.end()) return std::move(given->second);
  return {.values = {}, .origin = "default", .prefix = flag};
}

absl::Status Apply(const Setting& setting, const std::vector<std::string>& values, ServerOptions& options) {
  if (values.size() > 1 && !setting.repeatable) return absl::InvalidArgumentError("is given more than once");
  for (const std::string& value : values) {
    if (ValidUtf8Prefix(value) != value.size()) return absl::InvalidArgumentError("is not valid UTF-8");
    if (HasControlCharacter(value))
      return absl::InvalidArgumentError(absl::StrCat(Quote(value), " holds a control character"));
  }
  return setting.set(values, options);
}

absl::StatusOr<ServerOptions> Parse(int argc, const char* const* argv, const Getenv& getenv) {
  absl::StatusOr<Flags> flags = ParseFlags(argc, argv);
  if (!flags.ok()) return flags.status();
  ServerOptions options = DefaultServerOptions();
  if (!flags->at("help").empty() || !flags->at("version").empty()) {
    options.print_and_exit = flags->at("help").empty() ? VersionText() : HelpText();
    return options;
  }
  std::vector<std::string> errors;
  SettingSources file;
  const std::vector<std::string>& config = flags->at("config");
  if (config.size() > 1) errors.push_back("--config: is given more than once");
  if (!config.empty()) {
    file = ReadConfigFile(config.front(), "--config", errors);
  } else if (const std::optional<std::string> path = Variable(getenv, kConfigVariable)) {
    file = ReadConfigFile(*path, kConfigVariable, errors);
  }
  SettingSources sources;
  for (const Setting& setting : Settings()) {
    SettingSource source = Choose(setting, *flags, getenv, file);
    if (!source.values.empty()) {
      const absl::Status status = Apply(setting, source.values, options);
      if (!status.ok()) errors.push_back(absl::StrCat(source.prefix, ": ", status.message()));
    }
    sources[setting.name] = std::move(source);
  }
  // What depends on several settings, once each is right by itself.
  if (errors.empty()) errors = CheckOptions(options, sources);
  if (!errors.empty()) return absl::InvalidArgumentError(absl::StrJoin(errors, "\n"));
  if (options.print_config) options.print_and_exit = ConfigText(options, sources);
  return options;
}

}  // namespace

bool ServerOptions::reflection_on() const {
  return reflection.value_or(
      std::all_of(listen.begin(), listen.end(), [](const ListenAddress& address) { return address.is_local(); }));
}

absl::StatusOr<ServerOptions> ParseServerOptions(int argc, const char* const* argv,
                                                 const std::function<const char*(const char*)>& getenv) {
  return Parse(argc, argv, getenv);
}

}  // namespace ebbgate

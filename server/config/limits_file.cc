#include "server/config/limits_file.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/config/drift_settings.h"
#include "server/config/faults.h"
#include "server/config/files.h"
#include "server/config/text.h"
#include "server/config/yaml_fields.h"
#include "server/config/yaml_tree.h"
#include "server/limiter/bounds.h"

namespace ebbgate {
namespace {

constexpr absl::string_view kLimitKeys[] = {"name",     "algorithm",    "capacity", "refill",         "count",
                                            "window",   "time_zone",    "at_most",  "pace",           "overrides",
                                            "shadow",   "default_cost", "max_cost", "on_unavailable", "on_hold_expiry",
                                            "max_debt", "max_holds",    "drift",    "metadata"};
constexpr absl::string_view kOverrideKeys[] = {"key", "capacity", "refill", "count", "window", "at_most", "pace"};
constexpr absl::string_view kRefillKeys[] = {"tokens", "per"};
constexpr absl::string_view kAtMostKeys[] = {"count", "per", "burst"};
constexpr WindowUnit kCalendarUnits[] = {WindowUnit::kMinute, WindowUnit::kHour,  WindowUnit::kDay,
                                         WindowUnit::kWeek,   WindowUnit::kMonth, WindowUnit::kYear};

bool IsWindow(Algorithm algorithm) { return algorithm != Algorithm::kTokenBucket && algorithm != Algorithm::kGcra; }

// --- Parameters, of a limit or of an override ------------------------------------------------------------------------

std::optional<Microtokens> ReadTokens(const YamlFields& fields, absl::string_view key) {
  const std::optional<std::int64_t> tokens = fields.WholeNumber(key, 1, kMaxCapacityTokens);
  if (!tokens) return std::nullopt;
  return FromTokens(*tokens);
}

// `per`, of a refill or of at_most.
std::optional<std::int64_t> ReadPer(const YamlFields& fields) {
  std::optional<std::int64_t> per_ns = fields.DurationNs("per");
  if (!fields.Has("per")) fields.Fault("per", "is missing", "write the time in which so many come, such as per: 1s");
  if (per_ns == 0) {
    fields.Fault("per", "must be longer than 0s");
    per_ns.reset();
  }
  return per_ns;
}

void ReadRefill(const YamlFields& owner, Parameters& parameters) {
  const YamlFields fields(*owner.Find("refill"), owner.Path("refill"), owner.faults());
  if (fields.node().kind != YamlNode::Kind::kMap) return;
  fields.RefuseUnknown(kRefillKeys);
  if (!fields.Has("tokens")) fields.Fault("tokens", "is missing", "write how many tokens come back in each `per`");
  const std::optional<Microtokens> tokens = ReadTokens(fields, "tokens");
  const std::optional<std::int64_t> per_ns = ReadPer(fields);
  if (tokens && per_ns) parameters.refill = {.tokens = *tokens, .per_ns = *per_ns};
}

// count N per T with a burst of b: a bucket of b refilled by N - b per T, so that b + r*T = N.
void ReadAtMost(const YamlFields& owner, Parameters& parameters) {
  const YamlFields fields(*owner.Find("at_most"), owner.Path("at_most"), owner.faults());
  if (fields.node().kind != YamlNode::Kind::kMap) return;
  fields.RefuseUnknown(kAtMostKeys);
  for (const absl::string_view key : {"count", "burst"}) {
    if (!fields.Has(key)) fields.Fault(key, "is missing", "at_most takes all of count, per and burst");
  }
  const std::optional<Microtokens> count = ReadTokens(fields, "count");
  const std::optional<Microtokens> burst = ReadTokens(fields, "burst");
  const std::optional<std::int64_t> per_ns = ReadPer(fields);
  if (count && burst && *burst >= *count) {
    fields.Fault("burst", "must be less than count",
                 "the burst comes at once and count - burst over the whole of `per`; a tenth of count is a good start");
  } else if (count && burst && per_ns) {
    parameters.capacity = *burst;
    parameters.refill = {.tokens = *count - *burst, .per_ns = *per_ns};
  }
}

// `zone`: the limit's, for calendar windows.
void ReadWindow(const YamlFields& fields, absl::TimeZone zone, Parameters& parameters) {
  const YamlNode& node = *fields.Find("window");
  for (const WindowUnit unit : kCalendarUnits) {
    if (node.kind == YamlNode::Kind::kScalar && node.text == Name(unit)) {
      parameters.window = {.unit = unit, .length_ns = 0, .calendar = zone};
      return;
    }
  }
  if (node.kind == YamlNode::Kind::kScalar && !node.text.empty() &&
      absl::ascii_isalpha(static_cast<unsigned char>(node.text.front()))) {
    fields.Fault("window", absl::StrCat("does not know ", Quote(node.text)),
                 "minute, hour, day, week, month, year, or a length such as 60s");
    return;
  }
  const std::optional<std::int64_t> length_ns = fields.DurationNs("window");
  if (length_ns == 0) {
    fields.Fault("window", "must be longer than 0s");
  } else if (length_ns) {
    parameters.window = {.unit = WindowUnit::kLength, .length_ns = *length_ns, .calendar = absl::UTCTimeZone()};
  }
}

// Fields that the algorithm has no use for.
void RefuseForeign(const YamlFields& fields, Algorithm algorithm) {
  const auto refuse = [&](absl::string_view key, absl::string_view hint) {
    if (fields.Has(key)) fields.Fault(key, absl::StrCat("does not belong to algorithm ", Name(algorithm)), hint);
  };
  if (IsWindow(algorithm)) {
    refuse("capacity", "a window has a count");
    refuse("refill", "a window turns as a whole; write window: day, or a length such as 60s");
    refuse("at_most", "at_most is a token_bucket; leave out algorithm");
    refuse("pace", "a window has no rate to keep; token_bucket and gcra have");
    return;
  }
  refuse("count", "a bucket has a capacity; count belongs to the windows and to at_most");
  refuse("window", "a bucket has a refill: {tokens: 10, per: 1s}; windows need algorithm: fixed_window");
  if (algorithm == Algorithm::kGcra) refuse("at_most", "at_most is a token_bucket; leave out algorithm");
  if (!fields.Has("at_most")) return;
  for (const absl::string_view key : {"capacity", "refill"}) {
    if (fields.Has(key)) fields.Fault(key, "stands beside at_most, which already says it", "keep one of the two");
  }
}

void RequireFields(const YamlFields& fields, Algorithm algorithm) {
  const auto require = [&](absl::string_view key, absl::string_view hint) {
    if (!fields.Has(key)) fields.Fault(key, "is missing", hint);
  };
  if (IsWindow(algorithm)) {
    require("count", "how many tokens a window admits");
    require("window", algorithm == Algorithm::kFixedWindow
                          ? "day, or another stretch of the calendar, or a length such as 60s"
                          : "a length such as 60s");
  } else if (!fields.Has("at_most")) {
    require("capacity", "how many tokens a full bucket holds: the largest burst");
    require("refill", "how they come back, such as {tokens: 10, per: 1s}");
  }
}

// Puts what Validate says ("refill.per: must ...") where the value stands.
void AddValidation(const YamlFields& fields, const absl::Status& status) {
  absl::string_view message = status.message();
  const std::size_t colon = message.find(": ");
  const absl::string_view field = message.substr(0, colon);
  const absl::string_view top = field.substr(0, field.find('.'));
  message.remove_prefix(colon + 2);
  if (!fields.Has(top) && fields.Has("at_most"))
    return fields.Fault("at_most", absl::StrCat("the ", field, " ", message));
  const YamlNode* value = fields.Find(top);
  fields.faults().Add(value != nullptr ? value->line : fields.node().line, fields.Path(field), message);
}

// Overwrites in `parameters` (of a known algorithm) what the fields say; `whole`: they must say everything.
void ReadParameters(const YamlFields& fields, bool whole, absl::TimeZone zone, Parameters& parameters) {
  const std::size_t faults_before = fields.faults().count();
  RefuseForeign(fields, parameters.algorithm);
  if (whole) RequireFields(fields, parameters.algorithm);
  if (IsWindow(parameters.algorithm)) {
    if (const auto count = ReadTokens(fields, "count")) parameters.capacity = *count;
    if (fields.Has("window")) ReadWindow(fields, zone, parameters);
  } else if (fields.Has("at_most")) {
    ReadAtMost(fields, parameters);
  } else {
    if (const auto capacity = ReadTokens(fields, "capacity")) parameters.capacity = *capacity;
    if (fields.Has("refill")) ReadRefill(fields, parameters);
  }
  parameters.pace = fields.Switch("pace").value_or(parameters.pace);
  if (fields.faults().count() != faults_before) return;
  if (const absl::Status status = Validate(parameters); !status.ok()) AddValidation(fields, status);
}

// --- The other fields of a limit -------------------------------------------------------------------------------------

void ReadName(const YamlFields& fields, Limit& limit) {
  if (!fields.Has("name")) return fields.Fault("name", "is missing", "callers ask for a limit by its name");
  std::optional<std::string> name = fields.Text("name");
  if (!name) return;
  if (name->size() > kMaxLimitNameBytes) {
    fields.Fault("name", absl::StrCat("is longer than ", kMaxLimitNameBytes, " bytes"));
  } else if (ValidUtf8Prefix(*name) != name->size() || HasControlCharacter(*name)) {
    fields.Fault("name", absl::StrCat("holds a control character: ", Quote(*name)));
  } else {
    limit.name = *std::move(name);
  }
}

std::optional<Algorithm> ReadAlgorithm(const YamlFields& fields) {
  if (!fields.Has("algorithm")) return Algorithm::kTokenBucket;
  const std::optional<std::string> name = fields.Text("algorithm");
  if (!name) return std::nullopt;
  const std::optional<Algorithm> algorithm = AlgorithmNamed(*name);
  if (!algorithm) {
    fields.Fault("algorithm", absl::StrCat("does not know ", Quote(*name)),
                 "token_bucket, gcra, fixed_window, sliding_window or exact_window");
  }
  return algorithm;
}

// Names of the tz database only: Abseil would also read a file by its path, or take the machine's own zone.
bool IsZoneName(absl::string_view name) {
  if (!absl::ascii_isalpha(static_cast<unsigned char>(name.front())) || absl::StrContains(name, "..")) return false;
  for (const char c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && !absl::StrContains("_+-/", absl::string_view(&c, 1))) {
      return false;
    }
  }
  return name != "localtime" && name.size() <= kMaxLimitNameBytes;
}

absl::TimeZone ReadZone(const YamlFields& fields) {
  absl::TimeZone zone = absl::UTCTimeZone();
  const std::optional<std::string> name = fields.Text("time_zone");
  if (name && (!IsZoneName(*name) || !absl::LoadTimeZone(*name, &zone))) {
    fields.Fault("time_zone", absl::StrCat("does not know the zone ", Quote(*name)),
                 "a name of the tz database such as America/New_York; is the package tzdata installed?");
  }
  return zone;
}

void ReadCosts(const YamlFields& fields, Limit& limit) {
  if (const auto cost = fields.WholeNumber("default_cost", 1, kMaxCostTokens)) limit.default_cost = *cost;
  limit.max_cost = fields.WholeNumber("max_cost", 1, kMaxCostTokens);
  if (limit.max_cost && *limit.max_cost < limit.default_cost) {
    fields.Fault("max_cost", absl::StrCat("is below default_cost, which is ", limit.default_cost),
                 "as it is, every call without a cost would be refused");
  }
}

// Whether the text is `first` rather than `second`; anything else is a fault.
std::optional<bool> ReadEither(const YamlFields& fields, absl::string_view key, absl::string_view first,
                               absl::string_view second) {
  const std::optional<std::string> text = fields.Text(key);
  if (!text) return std::nullopt;
  if (*text == first || *text == second) return *text == first;
  fields.Fault(key, absl::StrCat("must be ", first, " or ", second, ", but is ", Quote(*text)));
  return std::nullopt;
}

void ReadAdvice(const YamlFields& fields, Limit& limit) {
  if (const auto allow = ReadEither(fields, "on_unavailable", "allow", "deny")) {
    limit.on_unavailable = *allow ? OnUnavailable::kAllow : OnUnavailable::kDeny;
  }
}

void ReadHolds(const YamlFields& fields, Limit& limit) {
  if (const auto spend = ReadEither(fields, "on_hold_expiry", "spend", "give_back")) {
    limit.on_hold_expiry = *spend ? OnHoldExpiry::kSpend : OnHoldExpiry::kGiveBack;
  }
  limit.max_holds = fields.WholeNumber("max_holds", 1, kMaxHoldsPerKey).value_or(limit.max_holds);
  limit.max_debt = fields.WholeNumber("max_debt", 0, kMaxCostTokens);
  if (!limit.max_debt) return;
  Microtokens largest = limit.parameters.capacity;
  for (const Override& entry : limit.overrides) largest = std::max(largest, entry.parameters.capacity);
  const std::int64_t most = kMaxCostTokens - WholeTokens(largest);
  if (*limit.max_debt > most) {
    fields.Fault("max_debt", absl::StrCat("must be at most ", most, ": with the capacity ", WholeTokens(largest),
                                          " more would not fit 64 bits"));
  }
}

void ReadMetadata(const YamlFields& fields, Limit& limit) {
  const YamlNode* node = fields.Find("metadata");
  if (node == nullptr) return;
  const YamlFields metadata(*node, fields.Path("metadata"), fields.faults());
  if (node->keys.size() > kMaxMetadataEntries) {
    return fields.Fault("metadata", absl::StrCat("has more than ", kMaxMetadataEntries, " entries"));
  }
  for (std::size_t i = 0; i < node->keys.size(); ++i) {
    const std::string& key = node->keys[i].text;
    const YamlNode& value = node->items[i];
    const std::string path = metadata.Path(PathPart(key));
    if (value.kind != YamlNode::Kind::kScalar) {
      fields.faults().Add(value.line, path, absl::StrCat("must be a text, but is ", Name(value.kind)));
    } else if (key.size() > kMaxMetadataBytes || value.text.size() > kMaxMetadataBytes) {
      fields.faults().Add(value.line, path, absl::StrCat("is longer than ", kMaxMetadataBytes, " bytes"));
    } else {
      limit.metadata.emplace_back(key, value.text);
    }
  }
}

// --- Overrides -------------------------------------------------------------------------------------------------------

// Counts and names seen so far, over the whole file.
struct Seen {
  absl::flat_hash_map<std::string, int> lines_of_names;
  std::size_t overrides = 0;
};

std::optional<std::string> ReadOverrideKey(const YamlFields& fields,
                                           absl::flat_hash_map<std::string, int>& lines_of_keys) {
  if (!fields.Has("key")) {
    fields.Fault("key", "is missing", "the key it is for, or a pattern in quotes such as \"partner-*\"");
    return std::nullopt;
  }
  std::optional<std::string> key = fields.Text("key");
  if (!key) return std::nullopt;
  if (key->size() > kMaxKeyBytes) {
    fields.Fault("key", absl::StrCat("is longer than ", kMaxKeyBytes, " bytes"));
    return std::nullopt;
  }
  const int line = fields.Find("key")->line;
  const auto [earlier, is_new] = lines_of_keys.try_emplace(*key, line);
  if (!is_new) {
    fields.Fault("key", absl::StrCat(Quote(*key), " already has an override on line ", earlier->second));
    return std::nullopt;
  }
  return key;
}

void ReadOverride(const YamlFields& fields, const Parameters& inherited, absl::TimeZone zone,
                  absl::flat_hash_map<std::string, int>& lines_of_keys, Limit& limit) {
  if (fields.node().kind != YamlNode::Kind::kMap) return;
  if (fields.Has("algorithm")) {
    return fields.Fault("algorithm", "cannot be overridden", "a limit has one algorithm; make a second limit");
  }
  fields.RefuseUnknown(kOverrideKeys);
  std::optional<std::string> key = ReadOverrideKey(fields, lines_of_keys);
  Override entry = {.key = "", .parameters = inherited, .line = fields.node().line};
  ReadParameters(fields, false, zone, entry.parameters);
  if (!key) return;
  entry.key = *std::move(key);
  limit.overrides.push_back(std::move(entry));
}

void ReadOverrides(const YamlFields& fields, Seen& seen, Limit& limit) {
  const YamlNode* list = fields.Find("overrides");
  if (list == nullptr) return;
  if (list->kind != YamlNode::Kind::kList) {
    return fields.Fault("overrides", absl::StrCat("must be a list, but is ", Name(list->kind)),
                        "begin each override with \"- key: \"");
  }
  seen.overrides += list->items.size();
  if (seen.overrides > kMaxOverrides) {
    return fields.Fault("overrides", absl::StrCat("brings all limits together beyond ", kMaxOverrides, " overrides"));
  }
  absl::flat_hash_map<std::string, int> lines_of_keys;
  for (std::size_t i = 0; i < list->items.size() && !fields.faults().full(); ++i) {
    const YamlFields entry(list->items[i], absl::StrCat(fields.Path("overrides"), "[", i, "]"), fields.faults());
    ReadOverride(entry, limit.parameters, limit.display_zone, lines_of_keys, limit);
  }
  std::size_t patterns = 0;
  for (const Override& entry : limit.overrides) patterns += entry.is_pattern() ? 1 : 0;
  if (patterns > kMaxPatternsPerLimit) {
    fields.Fault("overrides", absl::StrCat("has more than ", kMaxPatternsPerLimit, " patterns (keys with *)"),
                 "exact keys are not bounded so");
  }
}

// --- Limits ----------------------------------------------------------------------------------------------------------

void RefuseSecondName(const YamlFields& fields, const Limit& limit, Seen& seen) {
  if (limit.name.empty()) return;
  const auto [earlier, is_new] = seen.lines_of_names.try_emplace(limit.name, limit.line);
  if (is_new) return;
  fields.Fault("name", absl::StrCat(Quote(limit.name), " is already the name of the limit on line ", earlier->second),
               "give each limit a name of its own");
}

Limit ReadLimit(const YamlFields& fields, Seen& seen) {
  Limit limit;
  limit.file = fields.faults().file();
  limit.line = fields.node().line;
  if (fields.node().kind != YamlNode::Kind::kMap) return limit;
  fields.RefuseUnknown(kLimitKeys);
  ReadName(fields, limit);
  RefuseSecondName(fields, limit, seen);
  limit.display_zone = ReadZone(fields);
  if (const std::optional<Algorithm> algorithm = ReadAlgorithm(fields)) {
    limit.parameters.algorithm = *algorithm;
    const std::size_t faults_before = fields.faults().count();
    ReadParameters(fields, true, limit.display_zone, limit.parameters);
    // What an override inherits must be whole, or its faults would mislead.
    if (fields.faults().count() == faults_before) ReadOverrides(fields, seen, limit);
  }
  ReadCosts(fields, limit);
  ReadAdvice(fields, limit);
  ReadHolds(fields, limit);
  ReadDriftSettings(fields, limit.drift);
  ReadMetadata(fields, limit);
  limit.shadow = fields.Switch("shadow").value_or(false);
  return limit;
}

std::vector<Limit> ReadLimits(const YamlNode& root, Faults& faults) {
  std::vector<Limit> limits;
  const YamlFields fields(root, "", faults);
  if (root.kind != YamlNode::Kind::kMap) return limits;
  fields.RefuseUnknown({"limits"});
  const YamlNode* list = fields.Find("limits");
  if (list == nullptr) {
    fields.Fault("limits", "is missing", "the file begins with \"limits:\" and a list");
    return limits;
  }
  if (list->kind != YamlNode::Kind::kList) {
    fields.Fault("limits", absl::StrCat("must be a list, but is ", Name(list->kind)),
                 "begin each limit with \"- name: \"; [] is a list without any");
    return limits;
  }
  if (list->items.size() > kMaxLimits) {
    fields.Fault("limits", absl::StrCat("has more than ", kMaxLimits, " entries"));
    return limits;
  }
  Seen seen;
  for (std::size_t i = 0; i < list->items.size() && !faults.full(); ++i) {
    limits.push_back(ReadLimit(YamlFields(list->items[i], absl::StrCat("limits[", i, "]"), faults), seen));
  }
  return limits;
}

}  // namespace

absl::StatusOr<std::vector<Limit>> ParseLimits(absl::string_view text, absl::string_view file) {
  Faults faults(file);
  std::vector<Limit> limits;
  if (const std::optional<YamlNode> root = ReadYaml(text, faults)) limits = ReadLimits(*root, faults);
  if (absl::Status status = faults.ToStatus(); !status.ok()) return status;
  return limits;
}

absl::StatusOr<std::vector<Limit>> LoadLimits(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadRegularFile(path, kMaxLimitsFileBytes);
  if (!text.ok()) return text.status();
  return ParseLimits(*text, path);
}

}  // namespace ebbgate

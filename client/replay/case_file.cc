#include "client/replay/case_file.h"

#include <yaml-cpp/yaml.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/replay/json_text.h"
#include "server/config/duration.h"
#include "server/config/limits_file.h"

namespace ebbgate::replay {
namespace {

// Far above any case file written by hand; a larger one is a mistake.
constexpr std::size_t kMaxCaseFileBytes = 64 * 1024 * 1024;
// A case with more repetitions would not end this day.
constexpr std::int64_t kMaxTimes = 100'000'000;

// Thrown and caught within this file only.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] void Refuse(absl::string_view what) { throw Fault(std::string(what)); }

// Every member of `node` must be known: a misspelt expectation would otherwise expect nothing.
void KnowAll(const YAML::Node& node, std::initializer_list<absl::string_view> known) {
  if (!node.IsMap()) Refuse("must be an object");
  for (const auto& member : node) {
    const std::string name = member.first.Scalar();
    if (!absl::c_linear_search(known, name)) {
      Refuse(absl::StrCat("unknown member '", name, "' (known: ", absl::StrJoin(known, ", "), ")"));
    }
  }
}

std::string Text(const YAML::Node& node, const std::string& name) {
  if (!node[name].IsScalar()) Refuse(absl::StrCat(name, ": must be a text"));
  return node[name].Scalar();
}

std::string RequiredText(const YAML::Node& node, const std::string& name) {
  if (!node[name]) Refuse(absl::StrCat(name, ": is missing"));
  return Text(node, name);
}

std::optional<std::string> OptionalText(const YAML::Node& node, const std::string& name) {
  return node[name] ? std::optional(Text(node, name)) : std::nullopt;
}

std::optional<std::int64_t> OptionalNumber(const YAML::Node& node, const std::string& name) {
  if (!node[name]) return std::nullopt;
  std::int64_t value = 0;
  if (!node[name].IsScalar() || !absl::SimpleAtoi(node[name].Scalar(), &value)) {
    Refuse(absl::StrCat(name, ": must be a whole number of at most 64 bits"));
  }
  return value;
}

std::optional<bool> OptionalTruth(const YAML::Node& node, const std::string& name) {
  if (!node[name]) return std::nullopt;
  const std::string text = Text(node, name);
  if (text != "true" && text != "false") Refuse(absl::StrCat(name, ": must be true or false"));
  return text == "true";
}

std::int64_t Length(const YAML::Node& node, const std::string& name) {
  const absl::StatusOr<std::int64_t> ns = ParseDurationNs(Text(node, name));
  if (!ns.ok()) Refuse(absl::StrCat(name, ": ", ns.status().message()));
  return *ns;
}

std::optional<ExpectedWait> OptionalWait(const YAML::Node& node, const std::string& name) {
  if (!node[name]) return std::nullopt;
  if (node[name].IsNull()) return ExpectedWait{};
  return ExpectedWait{Length(node, name)};
}

// Reads the items of a list, saying in faults which one is at fault.
template <typename Read>
auto Items(const YAML::Node& list, const std::string& name, Read read) {
  if (!list.IsSequence()) Refuse(absl::StrCat(name, ": must be a list"));
  std::vector<decltype(read(list))> items;
  for (const YAML::Node& item : list) {
    try {
      items.push_back(read(item));
    } catch (const Fault& fault) {
      Refuse(absl::StrCat(name, "[", items.size(), "]: ", fault.what()));
    }
  }
  return items;
}

ExpectedCharge ReadExpectedCharge(const YAML::Node& node) {
  KnowAll(node, {"limit", "reason", "remaining", "capacity", "retry_after", "reset_after", "tightest", "reserved",
                 "actual", "given_back", "overrun", "uncovered"});
  ExpectedCharge charge;
  charge.limit = OptionalText(node, "limit");
  charge.reason = OptionalText(node, "reason");
  charge.remaining = OptionalNumber(node, "remaining");
  charge.capacity = OptionalNumber(node, "capacity");
  charge.retry_after = OptionalWait(node, "retry_after");
  charge.reset_after = OptionalWait(node, "reset_after");
  charge.tightest = OptionalTruth(node, "tightest");
  charge.reserved = OptionalNumber(node, "reserved");
  charge.actual = OptionalNumber(node, "actual");
  charge.given_back = OptionalNumber(node, "given_back");
  charge.overrun = OptionalNumber(node, "overrun");
  charge.uncovered = OptionalNumber(node, "uncovered");
  return charge;
}

Expectation ReadExpectation(const YAML::Node& node) {
  KnowAll(node, {"allowed", "granted", "reason", "retry_after", "act_after", "expires_after", "charges", "replayed",
                 "state", "repeated", "error", "allowed_count"});
  Expectation expect;
  expect.allowed = OptionalTruth(node, "allowed");
  expect.granted = OptionalTruth(node, "granted");
  expect.act_after = OptionalWait(node, "act_after");
  expect.expires_after = OptionalWait(node, "expires_after");
  expect.state = OptionalText(node, "state");
  expect.repeated = OptionalTruth(node, "repeated");
  expect.reason = OptionalText(node, "reason");
  expect.retry_after = OptionalWait(node, "retry_after");
  if (node["charges"]) expect.charges = Items(node["charges"], "charges", ReadExpectedCharge);
  expect.replayed = OptionalTruth(node, "replayed");
  expect.error = OptionalText(node, "error");
  expect.allowed_count = OptionalNumber(node, "allowed_count");
  return expect;
}

CaseCharge ReadCharge(const YAML::Node& node) {
  KnowAll(node, {"limit", "key", "cost"});
  return {RequiredText(node, "limit"), RequiredText(node, "key"), OptionalNumber(node, "cost")};
}

ShouldAllowStep ReadShouldAllow(const YAML::Node& node) {
  KnowAll(node, {"charges", "request_id", "peek"});
  ShouldAllowStep step;
  if (node["charges"]) step.charges = Items(node["charges"], "charges", ReadCharge);
  step.request_id = OptionalText(node, "request_id").value_or("");
  step.peek = OptionalTruth(node, "peek").value_or(false);
  return step;
}

ReserveStep ReadReserve(const YAML::Node& node) {
  KnowAll(node, {"charges", "max_wait", "hold_for", "request_id", "as"});
  ReserveStep step;
  if (node["charges"]) step.charges = Items(node["charges"], "charges", ReadCharge);
  if (node["max_wait"]) step.max_wait_ns = Length(node, "max_wait");
  if (node["hold_for"]) step.hold_ns = Length(node, "hold_for");
  if (step.max_wait_ns > kMaxHoldNs) Refuse("max_wait: must be at most 24h");
  if (step.hold_ns < 1 || step.hold_ns > kMaxHoldNs) Refuse("hold_for: must be above 0s and at most 24h");
  step.request_id = OptionalText(node, "request_id").value_or("");
  step.as = OptionalText(node, "as").value_or("");
  return step;
}

EndStep ReadSettle(const YAML::Node& node) {
  KnowAll(node, {"reservation", "actual"});
  EndStep step;
  step.reservation = RequiredText(node, "reservation");
  if (!node["actual"]) Refuse("actual: is missing");
  step.actual = Items(node["actual"], "actual", [](const YAML::Node& amount) {
    std::int64_t value = 0;
    if (!amount.IsScalar() || !absl::SimpleAtoi(amount.Scalar(), &value)) {
      Refuse("must be a whole number of at most 64 bits");
    }
    return value;
  });
  return step;
}

EndStep ReadCancel(const YAML::Node& node) {
  KnowAll(node, {"reservation"});
  return {RequiredText(node, "reservation"), std::nullopt};
}

absl::StatusOr<std::vector<Limit>> ReadLimits(const YAML::Node& owner, absl::string_view file) {
  if (!owner["limits"]) Refuse("limits: is missing");
  return ParseLimits(absl::StrCat("{\"limits\": ", ToJson(owner["limits"]), "}"), file);
}

// An answer's charges are those asked, in order; to expect another limit is a slip of the pen.
void CheckNames(const Expectation& expect, const std::vector<CaseCharge>& asked) {
  for (std::size_t i = 0; i < expect.charges.size() && i < asked.size(); ++i) {
    if (expect.charges[i].limit.value_or(asked[i].limit) != asked[i].limit) {
      Refuse(absl::StrCat("expect: charges[", i, "].limit: is not the limit that is asked"));
    }
  }
}

void ReadAction(const YAML::Node& node, absl::string_view file, Step& step) {
  int actions = 0;
  for (const char* kind : {"should_allow", "reserve", "settle", "cancel", "reload"}) actions += node[kind] ? 1 : 0;
  if (actions != 1) Refuse("must have one of should_allow, reserve, settle, cancel and reload");
  if (node["should_allow"]) {
    step.action = ReadShouldAllow(node["should_allow"]);
    CheckNames(step.expect, std::get<ShouldAllowStep>(step.action).charges);
  } else if (node["reserve"]) {
    step.action = ReadReserve(node["reserve"]);
    CheckNames(step.expect, std::get<ReserveStep>(step.action).charges);
  } else if (node["settle"]) {
    step.action = ReadSettle(node["settle"]);
  } else if (node["cancel"]) {
    step.action = ReadCancel(node["cancel"]);
  } else {
    step.action = ReloadStep{ReadLimits(node["reload"], file)};
  }
}

Step ReadStep(const YAML::Node& node, absl::string_view file) {
  if (!node.IsMap()) Refuse("must be an object");
  Step step;
  KnowAll(node, {"at", "about", "should_allow", "reserve", "settle", "cancel", "reload", "times", "every", "expect"});
  step.at_ns = node["at"] ? Length(node, "at") : 0;
  step.times = OptionalNumber(node, "times").value_or(1);
  if (step.times < 1 || step.times > kMaxTimes) Refuse(absl::StrCat("times: must lie between 1 and ", kMaxTimes));
  if (node["every"]) step.every_ns = Length(node, "every");
  if (Int128{step.at_ns} + Int128{step.every_ns} * step.times > kInt64Max) Refuse("every: ends beyond 64 bits");
  if (node["expect"]) step.expect = ReadExpectation(node["expect"]);
  ReadAction(node, file, step);
  return step;
}

Case ReadCase(const YAML::Node& node, absl::string_view file) {
  Case result;
  result.name = RequiredText(node, "name");
  if (node["start_wall"]) {
    absl::Time start;
    std::string why;
    if (!absl::ParseTime(absl::RFC3339_full, Text(node, "start_wall"), &start, &why)) {
      Refuse(absl::StrCat("start_wall: ", why));
    }
    result.start_wall_ns = absl::ToUnixNanos(start);
  }
  absl::StatusOr<std::vector<Limit>> limits = ReadLimits(node, file);
  if (!limits.ok()) Refuse(limits.status().message());
  result.limits = *std::move(limits);
  if (!node["steps"]) Refuse("steps: is missing");
  result.steps = Items(node["steps"], "steps", [&](const YAML::Node& step) { return ReadStep(step, file); });
  return result;
}

absl::StatusOr<Case> TryCase(const YAML::Node& node, std::size_t number, absl::string_view file) {
  const bool named = node.IsMap() && node["name"] && node["name"].IsScalar();
  const std::string where =
      absl::StrCat(file, ": case ", named ? "'" + node["name"].Scalar() + "'" : absl::StrCat(number));
  try {
    if (!node.IsMap()) Refuse("must be an object");
    return ReadCase(node, where);
  } catch (const std::exception& fault) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": ", fault.what()));
  }
}

}  // namespace

absl::StatusOr<std::vector<absl::StatusOr<Case>>> ParseCases(absl::string_view text, absl::string_view file) {
  const auto bad = [&](absl::string_view why) { return absl::InvalidArgumentError(absl::StrCat(file, ": ", why)); };
  if (text.size() > kMaxCaseFileBytes) return bad("is larger than 64 MiB");
  try {
    const YAML::Node root = YAML::Load(JoinSurrogates(text));
    if (!root.IsMap() || !root["cases"].IsDefined() || !root["cases"].IsSequence()) {
      return bad("is no case file: {\"cases\": [...]} is expected");
    }
    std::vector<absl::StatusOr<Case>> cases;
    for (const YAML::Node& node : root["cases"]) cases.push_back(TryCase(node, cases.size() + 1, file));
    return cases;
  } catch (const std::exception& error) {
    return bad(error.what());
  }
}

absl::StatusOr<std::vector<absl::StatusOr<Case>>> LoadCases(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in.is_open() || in.bad())
    return absl::NotFoundError(absl::StrCat(path, ": cannot be read: ", std::generic_category().message(errno)));
  return ParseCases(text, path);
}

}  // namespace ebbgate::replay

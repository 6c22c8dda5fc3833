#include "client/replay/account.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace ebbgate::replay {
namespace {

bool HasEnvelope(const Parameters& parameters) {
  return parameters.algorithm == Algorithm::kTokenBucket || parameters.algorithm == Algorithm::kGcra;
}

// Whole tokens and what is over: "2.5".
std::string Tokens(Int128 microtokens) {
  std::string text = absl::StrCat(static_cast<std::int64_t>(microtokens / kMicrotokensPerToken));
  const auto rest = static_cast<std::int64_t>(microtokens % kMicrotokensPerToken);
  if (rest != 0) absl::StrAppend(&text, ".", absl::Dec(rest, absl::kZeroPad6));
  return text;
}

std::string Describe(const EnvelopeViolation& violation, const std::string& limit, const std::string& key) {
  return absl::StrCat(Tokens(violation.admitted), " admitted to ", limit, " / ", key, " from ",
                      DescribeNs(violation.from_ns), " to ", DescribeNs(violation.to_ns), ", at most ",
                      Tokens(violation.bound), " may be");
}

}  // namespace

const Parameters& ParametersOf(const Limit& limit, absl::string_view key) {
  const Override* chosen = nullptr;
  for (const Override& override : limit.overrides) {
    if (!override.is_pattern() && override.key == key) return override.parameters;
    if (chosen == nullptr && override.is_pattern() && MatchesPattern(override.key, key)) chosen = &override;
  }
  return chosen == nullptr ? limit.parameters : chosen->parameters;
}

const Limit* Account::Find(absl::string_view name) const {
  const auto found = absl::c_find_if(limits_, [&](const Limit& limit) { return limit.name == name; });
  return found == limits_.end() ? nullptr : &*found;
}

std::vector<std::string> Account::Take(const CallRequest& call, const CallAnswer& answer, std::int64_t at_ns) {
  std::vector<std::string> breaches;
  if (answer.error != nullptr || !answer.allowed || answer.replayed || call.peek) return breaches;
  for (std::size_t i = 0; i < call.charges.size(); ++i) {
    const ChargeRequest& charge = call.charges[i];
    const Limit* limit = Find(charge.limit);
    if (limit == nullptr || answer.charges[i].reason != Reason::kAllowed) continue;
    const Parameters& parameters = ParametersOf(*limit, charge.key);
    const Microtokens cost = FromTokens(charge.cost.value_or(limit->default_cost));
    if (cost == 0 || !HasEnvelope(parameters)) continue;
    BucketName name(charge.limit, charge.key);
    const auto check = checks_.try_emplace(name, parameters, at_ns).first;
    if (const auto violation = check->second.Admit(at_ns, cost)) {
      breaches.push_back(Describe(*violation, name.first, name.second));
    }
  }
  return breaches;
}

void Account::Reload(const std::vector<Limit>& limits, std::int64_t at_ns) {
  limits_ = limits;
  for (auto entry = checks_.begin(); entry != checks_.end();) {
    const Limit* limit = Find(entry->first.first);
    if (limit == nullptr) {  // Removed: nobody is admitted, and if it comes back it is as it was.
      ++entry;
      continue;
    }
    const Parameters& parameters = ParametersOf(*limit, entry->first.second);
    if (HasEnvelope(parameters)) {
      entry->second.Change(parameters, at_ns);
      ++entry;
    } else {  // A window now: no such bound holds any more.
      entry = checks_.erase(entry);
    }
  }
}

}  // namespace ebbgate::replay

#include "tests/property/engine_model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/limiter/bounds.h"

namespace ebbgate::testing {
namespace {

std::string Wrong(const std::string& what, std::int64_t is, std::int64_t due) {
  return is == due ? "" : absl::StrCat(what, " is ", is, " and should be ", due, "; ");
}

std::int64_t Tokens(const mpz_class& microtokens) {
  return microtokens <= 0 ? 0 : mpz_class(microtokens / kMicrotokensPerToken).get_si();
}

mpz_class Microtokens128(std::int64_t tokens) { return mpz_class(tokens) * kMicrotokensPerToken; }

bool FollowsPattern(const std::string& pattern, const std::string& key) {
  // The patterns of these tests have one star, at the end.
  return key.compare(0, pattern.size() - 1, pattern, 0, pattern.size() - 1) == 0;
}

}  // namespace

CallRequest View(const OwnCall& call, std::vector<ChargeRequest>& charges) {
  charges.clear();
  for (const OwnCharge& charge : call.charges) {
    charges.push_back({.limit = charge.limit, .key = charge.key, .cost = charge.cost});
  }
  return {.charges = charges, .request_id = call.request_id, .peek = call.peek};
}

std::string Difference(const CallAnswer& a, const CallAnswer& b) {
  if ((a.error == nullptr) != (b.error == nullptr)) return "one is an error; ";
  if (a.error != nullptr) {
    const bool same = a.error->reason == b.error->reason && a.error->field == b.error->field;
    return same ? "" : absl::StrCat(a.error->field, " against ", b.error->field, "; ");
  }
  std::string wrong =
      Wrong("allowed", a.allowed, b.allowed) + Wrong("reason", static_cast<int>(a.reason), static_cast<int>(b.reason)) +
      Wrong("replayed", a.replayed, b.replayed) + Wrong("retry_after", a.retry_after_ns, b.retry_after_ns) +
      Wrong("charges", static_cast<std::int64_t>(a.charges.size()), static_cast<std::int64_t>(b.charges.size()));
  for (std::size_t i = 0; i < std::min(a.charges.size(), b.charges.size()); ++i) {
    const ChargeAnswer& x = a.charges[i];
    const ChargeAnswer& y = b.charges[i];
    wrong += Wrong("its reason", static_cast<int>(x.reason), static_cast<int>(y.reason)) +
             Wrong("its remaining", x.remaining, y.remaining) + Wrong("its capacity", x.capacity, y.capacity) +
             Wrong("its retry_after", x.retry_after_ns, y.retry_after_ns) +
             Wrong("its reset_after", x.reset_after_ns, y.reset_after_ns) + Wrong("tightest", x.tightest, y.tightest);
  }
  return wrong;
}

const Limit* EngineModel::Find(const std::string& name) const {
  for (const Limit& limit : limits_) {
    if (limit.name == name) return &limit;
  }
  return nullptr;
}

// An exact key wins; of patterns the first that matches.
const Parameters& EngineModel::ParametersOf(const Limit& limit, const std::string& key) {
  for (const Override& each : limit.overrides) {
    if (each.key == key) return each.parameters;
  }
  for (const Override& each : limit.overrides) {
    if (each.is_pattern() && FollowsPattern(each.key, key)) return each.parameters;
  }
  return limit.parameters;
}

std::string EngineModel::Forget(const Engine& engine, std::int64_t now_ns) {
  std::string wrong;
  latest_ns_ = std::max(latest_ns_, now_ns);
  for (auto held = held_.begin(); held != held_.end();) {
    const auto& [limit, key] = held->first;
    const absl::StatusOr<Inspection> inspection = engine.Inspect(limit, key);
    if (!inspection.ok() || inspection->known) {
      ++held;
      continue;
    }
    const mpz_class available = held->second.reference.Available(latest_ns_);
    if (available != held->second.parameters.capacity) {
      absl::StrAppend(&wrong, limit, "/", key, " was forgotten at ", available.get_str(), "; ");
    }
    held = held_.erase(held);
  }
  return wrong;
}

std::string EngineModel::Compare(const Engine& engine, std::int64_t now_ns) const {
  std::string wrong;
  for (const auto& [key, held] : held_) {
    const absl::StatusOr<Inspection> inspection = engine.Inspect(key.first, key.second);
    const mpz_class due = held.reference.Available(now_ns);
    if (inspection.ok() && due != inspection->level) {
      absl::StrAppend(&wrong, key.first, "/", key.second, " holds ", inspection->level, " and not ", due.get_str(),
                      "; ");
    }
  }
  return wrong;
}

void EngineModel::Install(const std::vector<Limit>& limits, std::int64_t now_ns) {
  limits_ = limits;
  for (auto& [key, held] : held_) {
    const Limit* limit = Find(key.first);
    if (limit == nullptr) continue;  // It may come back; until then its state is kept.
    held.parameters = ParametersOf(*limit, key.second);
    held.reference.Change(held.parameters, now_ns);
  }
}

std::optional<ErrorReason> EngineModel::Fault(const OwnCall& call) const {
  for (const OwnCharge& charge : call.charges) {
    if (charge.key.empty() || charge.limit.empty()) return ErrorReason::kInvalidField;
    if (charge.key.size() > kMaxKeyBytes) return ErrorReason::kKeyTooLong;
    if (charge.cost && (*charge.cost < 0 || *charge.cost > kMaxCostTokens)) return ErrorReason::kCostOutOfRange;
    const Limit* limit = Find(charge.limit);
    if (limit == nullptr) return ErrorReason::kUnknownLimit;
    if (limit->max_cost && charge.cost.value_or(limit->default_cost) > *limit->max_cost) {
      return ErrorReason::kCostAboveMaximum;
    }
  }
  return std::nullopt;
}

std::string EngineModel::CheckError(const OwnCall& call, ErrorReason due, const CallAnswer& answer) {
  for (const OwnCharge& charge : call.charges) {
    if (Find(charge.limit) != nullptr) ++counters_[charge.limit].failed;
  }
  if (answer.error == nullptr) return absl::StrCat("should be ", ErrorReasonName(due), "; ");
  return Wrong("error", static_cast<int>(answer.error->reason), static_cast<int>(due));
}

std::string EngineModel::Check(const OwnCall& call, std::int64_t now_ns, const CallAnswer& answer) {
  const bool once = !call.request_id.empty() && !call.peek;
  const auto seen = remembered_.find(call.request_id);
  if (once && seen != remembered_.end() && now_ns - seen->second.at_ns < dedupe_window_ns_) {
    if (!(seen->second.charges == call.charges)) return CheckError(call, ErrorReason::kRequestIdReused, answer);
    ++replays_;
    CallAnswer due = seen->second.answer;
    due.replayed = true;
    return Difference(answer, due);
  }
  if (const std::optional<ErrorReason> due = Fault(call)) return CheckError(call, *due, answer);
  const std::string wrong = CheckDecision(call, now_ns, answer);
  if (once) remembered_[call.request_id] = {call.charges, answer, now_ns};
  return wrong;
}

// The buckets of a call, in order of their first charge; costs to one bucket add up.
std::vector<EngineModel::Account> EngineModel::Open(const OwnCall& call, std::int64_t now_ns) const {
  std::vector<Account> accounts;
  for (const OwnCharge& charge : call.charges) {
    const Limit& limit = *Find(charge.limit);
    const std::int64_t cost = charge.cost.value_or(limit.default_cost);
    const Key key = {charge.limit, charge.key};
    const auto same = [&](const Account& account) { return account.key == key; };
    if (const auto found = std::find_if(accounts.begin(), accounts.end(), same); found != accounts.end()) {
      found->cost += cost;
      continue;
    }
    const Parameters& parameters = ParametersOf(limit, charge.key);
    const auto held = held_.find(key);
    const Reference reference = held != held_.end() ? held->second.reference : Reference(parameters, now_ns);
    accounts.push_back({key, &limit, parameters, reference, cost});
  }
  for (Account& account : accounts) {
    const mpz_class cost = Microtokens128(account.cost);
    account.never = cost > account.parameters.capacity;
    account.fits = cost == 0 || (!account.never && cost <= account.reference.Available(now_ns));
  }
  return accounts;
}

std::string EngineModel::CheckDecision(const OwnCall& call, std::int64_t now_ns, const CallAnswer& answer) {
  if (answer.error != nullptr) return absl::StrCat("is ", ErrorReasonName(answer.error->reason), "; ");
  std::vector<Account> accounts = Open(call, now_ns);
  bool refused = false, never = false, shadowed = false;
  for (const Account& account : accounts) {
    refused |= !account.fits && !account.limit->shadow;
    never |= account.never && !account.limit->shadow;
    shadowed |= !account.fits && account.limit->shadow;
  }
  // **All or nothing**.
  for (Account& account : accounts) {
    if (refused || call.peek || account.cost == 0 || !account.fits) continue;
    account.reference.Admit(now_ns, Microtokens128(account.cost).get_si());
    held_.insert_or_assign(account.key, Held{account.parameters, account.reference});
  }
  const Reason reason = never      ? Reason::kCostExceedsCapacity
                        : refused  ? Reason::kQuotaExceeded
                        : shadowed ? Reason::kShadowed
                                   : Reason::kAllowed;
  std::string wrong = Wrong("allowed", answer.allowed, !refused) + Wrong("replayed", answer.replayed, false) +
                      Wrong("reason", static_cast<int>(answer.reason), static_cast<int>(reason));
  std::int64_t longest_ns = kNoWait, tightest = 0;
  for (std::size_t i = 0; i < call.charges.size(); ++i) {
    const Key key = {call.charges[i].limit, call.charges[i].key};
    for (const Account& account : accounts) {
      if (account.key == key) wrong += CheckCharge(account, now_ns, answer.charges[i]);
    }
    longest_ns = std::max(longest_ns, answer.charges[i].retry_after_ns);
    tightest += answer.charges[i].tightest;
  }
  Count(call, answer, accounts);
  return wrong + Wrong("tightest charges", tightest, 1) +
         Wrong("retry_after", answer.retry_after_ns, never ? kNoWait : longest_ns);
}

std::string EngineModel::CheckCharge(const Account& account, std::int64_t now_ns, const ChargeAnswer& answer) {
  const bool refuses = !account.fits && !account.limit->shadow;
  const Reason reason = account.fits            ? Reason::kAllowed
                        : account.limit->shadow ? Reason::kShadowed
                        : account.never         ? Reason::kCostExceedsCapacity
                                                : Reason::kQuotaExceeded;
  std::string wrong = Wrong("its reason", static_cast<int>(answer.reason), static_cast<int>(reason)) +
                      Wrong("its remaining", answer.remaining, Tokens(account.reference.Available(now_ns))) +
                      Wrong("its capacity", answer.capacity, account.parameters.capacity / kMicrotokensPerToken) +
                      CheckReset(account, now_ns, answer.reset_after_ns);
  if (!refuses || account.never) return wrong + Wrong("its retry_after", answer.retry_after_ns, kNoWait);
  // **Honest wait**.
  const std::int64_t then_ns = account.reference.Counts(now_ns) + answer.retry_after_ns;
  const mpz_class cost = Microtokens128(account.cost);
  if (answer.retry_after_ns <= 0 || account.reference.Available(then_ns) < cost ||
      account.reference.Available(then_ns - 1) >= cost) {
    absl::StrAppend(&wrong, "its retry_after of ", answer.retry_after_ns, " is not when it fits; ");
  }
  return wrong;
}

std::string EngineModel::CheckReset(const Account& account, std::int64_t now_ns, std::int64_t reset_ns) {
  const std::int64_t counts_ns = account.reference.Counts(now_ns);
  if (account.parameters.algorithm == Algorithm::kFixedWindow) {
    std::int64_t into_ns = counts_ns % account.parameters.window.length_ns;
    if (into_ns < 0) into_ns += account.parameters.window.length_ns;
    return Wrong("its reset_after", reset_ns, account.parameters.window.length_ns - into_ns);
  }
  const bool full_then = account.reference.Available(counts_ns + reset_ns) == account.parameters.capacity;
  const bool full_before =
      reset_ns > 0 && account.reference.Available(counts_ns + reset_ns - 1) == account.parameters.capacity;
  return full_then && !full_before ? "" : absl::StrCat("its reset_after of ", reset_ns, " is not when it is full; ");
}

void EngineModel::Count(const OwnCall& call, const CallAnswer& answer, const std::vector<Account>& accounts) {
  for (const OwnCharge& charge : call.charges) {
    const Account& account = *std::find_if(accounts.begin(), accounts.end(), [&](const Account& each) {
      return each.key == Key{charge.limit, charge.key};
    });
    const auto cost = static_cast<std::uint64_t>(charge.cost.value_or(account.limit->default_cost));
    LimitCounters& counters = counters_[charge.limit];
    if (call.peek || cost == 0) {
      ++counters.peeked;
    } else if (!answer.allowed) {
      ++counters.denied;
    } else {
      ++counters.allowed;
      (account.fits ? counters.admitted_cost : counters.shadow_refused_cost) += cost;
    }
  }
}

}  // namespace ebbgate::testing

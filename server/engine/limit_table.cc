#include "server/engine/limit_table.h"

#include <algorithm>

#include "server/limiter/bounds.h"

namespace ebbgate {
namespace {

// A table is built a moment before it comes in force; what depends on when is given this much more.
constexpr std::int64_t kBuildSlackNs = kNsPerSecond;

bool SameOverride(const Override& a, const Override& b) {
  return a.key == b.key && a.parameters == b.parameters && a.line == b.line;
}

bool SameLimit(const Limit& a, const Limit& b) {
  return a.name == b.name && a.parameters == b.parameters && a.shadow == b.shadow && a.default_cost == b.default_cost &&
         a.max_cost == b.max_cost && a.on_unavailable == b.on_unavailable && a.on_hold_expiry == b.on_hold_expiry &&
         a.max_debt == b.max_debt && a.max_holds == b.max_holds && a.display_zone == b.display_zone &&
         a.drift == b.drift && a.metadata == b.metadata && a.file == b.file && a.line == b.line &&
         std::equal(a.overrides.begin(), a.overrides.end(), b.overrides.begin(), b.overrides.end(), SameOverride);
}

// At most this long after a change nothing that was admitted before it matters: `capacity` refilled under `parameters`,
// or the window (for sliding ones: two) gone by.
std::int64_t PaidBackNs(Microtokens capacity, const Parameters& parameters) {
  constexpr std::int64_t kDayNs = 24 * 3600 * kNsPerSecond;
  switch (parameters.algorithm) {
    case Algorithm::kTokenBucket:
    case Algorithm::kGcra:
      return Saturate(CeilDiv(static_cast<Int128>(capacity) * parameters.refill.per_ns, parameters.refill.tokens));
    default:
      break;
  }
  switch (parameters.window.unit) {
    case WindowUnit::kLength:
      return Saturate(static_cast<Int128>(parameters.window.length_ns) * 2);
    case WindowUnit::kMinute:
    case WindowUnit::kHour:
      return kDayNs;
    case WindowUnit::kDay:
      return 2 * kDayNs;
    case WindowUnit::kWeek:
      return 8 * kDayNs;
    case WindowUnit::kMonth:
      return 32 * kDayNs;
    case WindowUnit::kYear:
      return 367 * kDayNs;
  }
  return kInt64Max;
}

// Whether some key may now hold less than before. Cautious: any change of which keys follow which parameters counts.
bool MayLower(const Limit& before, const Limit& after) {
  const auto lowers = [](const Parameters& a, const Parameters& b) {
    return b.capacity < a.capacity || a.algorithm != b.algorithm || !(a.window == b.window);
  };
  if (lowers(before.parameters, after.parameters)) return true;
  const auto alike = [&](const Override& a, const Override& b) {
    return a.key == b.key && !lowers(a.parameters, b.parameters);
  };
  return !std::equal(before.overrides.begin(), before.overrides.end(), after.overrides.begin(), after.overrides.end(),
                     alike);
}

// Sets how long state is kept after a change. What an earlier change left to wait for is waited for anew, at the rate
// that holds now: it may have become slower.
void SetKeepUntil(const CompiledLimit& before, std::int64_t now_ns, CompiledLimit& after) {
  after.keep_until_ns = before.keep_until_ns;
  after.owed = now_ns < before.keep_until_ns ? before.owed : 0;
  if (MayLower(*before.config, *after.config)) {
    after.owed = std::max(after.owed, before.config->parameters.capacity);
    for (const Override& each : before.config->overrides) after.owed = std::max(after.owed, each.parameters.capacity);
  }
  if (after.owed == 0) return;
  std::int64_t paid_back_ns = PaidBackNs(after.owed, after.config->parameters);
  for (const Override& each : after.config->overrides) {
    paid_back_ns = std::max(paid_back_ns, PaidBackNs(after.owed, each.parameters));
  }
  const std::int64_t until_ns = Saturate(static_cast<Int128>(now_ns) + kBuildSlackNs + paid_back_ns);
  after.keep_until_ns = std::max(before.keep_until_ns, until_ns);
}

}  // namespace

bool SameLimits(const std::vector<Limit>& a, const std::vector<Limit>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), SameLimit);
}

std::uint32_t CompiledLimit::PolicyFor(absl::string_view key) const {
  if (const auto found = exact.find(key); found != exact.end()) return found->second;
  for (const auto& [pattern, policy] : patterns) {
    if (MatchesPattern(pattern, key)) return policy;
  }
  return base_policy;
}

// Numbers of limits that stay, or whose state stays, are kept: entries are found by them.
void LimitTable::KeepIds(const LimitTable& before, const std::function<bool(std::uint32_t)>& has_keys) {
  by_id_.resize(before.by_id_.size());
  std::size_t retired = 0;
  for (const CompiledLimit& old : before.by_id_) {
    if (old.config == nullptr || names_.contains(old.config->name)) continue;
    if (old.retired && !has_keys(old.id)) continue;
    if (++retired > kMaxLimits) {
      given_up_.push_back(old.config->name);
      continue;
    }
    CompiledLimit& kept = by_id_[old.id];
    kept.config = old.config;
    kept.retired = true;
    kept.keep_until_ns = old.keep_until_ns;
    kept.owed = old.owed;
  }
}

const CompiledLimit* LimitTable::FindHeld(absl::string_view name) const {
  if (const CompiledLimit* in_force = Find(name)) return in_force;
  const auto held = std::find_if(by_id_.begin(), by_id_.end(), [&](const CompiledLimit& limit) {
    return limit.config != nullptr && limit.config->name == name;
  });
  return held == by_id_.end() ? nullptr : &*held;
}

std::uint32_t LimitTable::FreeId(const LimitTable& before) {
  // A number that was in use a generation ago is not free yet: entries of that time may still carry it.
  for (std::uint32_t id = 0; id < before.by_id_.size(); ++id) {
    if (by_id_[id].config == nullptr && before.by_id_[id].config == nullptr) {
      reused_ids_.push_back(id);
      return id;
    }
  }
  by_id_.emplace_back();
  return static_cast<std::uint32_t>(by_id_.size() - 1);
}

void LimitTable::Compile(CompiledLimit& limit, const PlacementKey& process_key) {
  limit.ownership_seed = OwnershipSeed(limit.config->name);
  limit.placement_key = DerivePlacementKey(process_key, limit.id);
  limit.base_policy = static_cast<std::uint32_t>(policies_.size());
  policies_.push_back({.parameters = limit.config->parameters, .override_index = -1});
  for (std::size_t i = 0; i < limit.config->overrides.size(); ++i) {
    const Override& each = limit.config->overrides[i];
    const auto policy = static_cast<std::uint32_t>(policies_.size());
    policies_.push_back({.parameters = each.parameters, .override_index = static_cast<int>(i)});
    if (each.is_pattern()) {
      limit.patterns.emplace_back(each.key, policy);
    } else {
      limit.exact.emplace(each.key, policy);
    }
  }
}

std::shared_ptr<LimitTable> LimitTable::Build(const std::shared_ptr<const LimitTable>& before,
                                              std::vector<Limit> limits, const PlacementKey& process_key,
                                              std::int64_t now_ns, const std::function<bool(std::uint32_t)>& has_keys) {
  auto table = std::make_shared<LimitTable>();
  table->generation_ = before->generation_ + 1;
  table->previous = before;
  auto shared = std::make_shared<const std::vector<Limit>>(std::move(limits));
  table->limits_ = shared;
  absl::flat_hash_map<absl::string_view, const CompiledLimit*> known;
  for (const CompiledLimit& old : before->by_id_) {
    if (old.config != nullptr) known.emplace(old.config->name, &old);
  }
  for (const Limit& limit : *shared) table->names_.emplace(limit.name, 0);
  table->KeepIds(*before, has_keys);
  for (const Limit& limit : *shared) {
    const auto old = known.find(limit.name);
    const std::uint32_t id = old != known.end() ? old->second->id : table->FreeId(*before);
    CompiledLimit& compiled = table->by_id_[id];
    compiled.config = std::shared_ptr<const Limit>(shared, &limit);
    compiled.id = id;
    if (old != known.end()) SetKeepUntil(*old->second, now_ns, compiled);
    table->names_[limit.name] = id;
  }
  for (std::uint32_t id = 0; id < table->by_id_.size(); ++id) {
    CompiledLimit& compiled = table->by_id_[id];
    compiled.id = id;
    if (compiled.config != nullptr) table->Compile(compiled, process_key);
  }
  return table;
}

}  // namespace ebbgate

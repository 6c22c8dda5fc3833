#include "server/engine/decision.h"

#include <algorithm>

namespace ebbgate {
namespace {

// The charge closest to refusal: of refused ones the longest wait (for ever is longest), else the least share left.
bool Tighter(const ChargeAnswer& a, const ChargeAnswer& b) {
  const auto refused = [](const ChargeAnswer& x) {
    return x.reason == Reason::kQuotaExceeded || x.reason == Reason::kCostExceedsCapacity;
  };
  if (refused(a) != refused(b)) return refused(a);
  if (refused(a)) {
    if (a.reason != b.reason) return a.reason == Reason::kCostExceedsCapacity;
    return a.retry_after_ns > b.retry_after_ns;
  }
  return static_cast<Int128>(a.remaining) * b.capacity < static_cast<Int128>(b.remaining) * a.capacity;
}

}  // namespace

void Ledger::Settle(Shard& shard, Entry& entry) {
  shard.AssertHeld();
  const auto generation = static_cast<std::uint8_t>(limits_.generation());
  if (entry.generation == generation) return;
  const CompiledLimit& limit = limits_.limit(entry.limit_id);
  if (limit.config == nullptr) {  // Removed, and given up.
    events_.keys_given_up.fetch_add(1, std::memory_order_relaxed);
    // Forget reads the entry's parameters in the table that they were written under.
    const Parameters& old = limits_.previous->policy(entry.policy).parameters;
    const auto heap_bytes = static_cast<std::int64_t>(HeapBytes(old, entry.state));
    Free(old, entry.state);
    store_.budget().Return(0, heap_bytes);
    const CompiledLimit& old_limit = limits_.previous->limit(entry.limit_id);
    shard.Remove(PlacementHash(old_limit.placement_key, entry.key()), entry);
    return;
  }
  const Parameters& from = limits_.previous->policy(entry.policy).parameters;
  const std::uint32_t policy = limit.PolicyFor(entry.key());
  const Parameters& to = limits_.policy(policy).parameters;
  if (!(from == to)) {
    const auto before_bytes = static_cast<std::int64_t>(HeapBytes(from, entry.state));
    Advance(from, limits_.installed_at, entry.state);
    Convert(from, to, limits_.installed_at, entry.state);
    store_.budget().Return(0, before_bytes - static_cast<std::int64_t>(HeapBytes(to, entry.state)));
  }
  entry.policy = policy;
  entry.generation = generation;
}

Entry* Ledger::Find(const ResolvedCharge& charge) {
  Shard& shard = store_.shard(charge.shard);
  shard.AssertHeld();
  Entry* const entry = shard.Find(charge.hash, charge.limit->id, charge.key);
  if (entry != nullptr) Settle(shard, *entry);
  return entry;
}

void Ledger::Forget(Shard& shard, Entry& entry) {
  shard.AssertHeld();
  const Parameters& parameters = limits_.policy(entry.policy).parameters;
  const auto heap_bytes = static_cast<std::int64_t>(HeapBytes(parameters, entry.state));
  Free(parameters, entry.state);
  store_.budget().Return(0, heap_bytes);
  shard.Remove(PlacementHash(limits_.limit(entry.limit_id).placement_key, entry.key()), entry);
}

void Ledger::ExpireSome(Shard& shard, std::uint64_t& cursor, int steps, std::int64_t min_idle_ns) {
  shard.AssertHeld();
  shard.Sweep(cursor, steps, [&](Entry& entry) {
    Settle(shard, entry);
    if (!entry.in_use || moment_.mono_ns - entry.state.last_ns < min_idle_ns) return;
    if (moment_.mono_ns < limits_.limit(entry.limit_id).keep_until_ns) return;
    const Parameters& parameters = limits_.policy(entry.policy).parameters;
    BucketState state = entry.state;
    Advance(parameters, moment_, state);
    if (!IsFull(parameters, moment_, state)) return;
    Forget(shard, entry);
    events_.keys_expired.fetch_add(1, std::memory_order_relaxed);
  });
}

Ledger::Account& Ledger::Open(const ResolvedCharge& charge) {
  for (std::size_t i = 0; i < accounts_used_; ++i) {
    Account& known = accounts_[i];
    if (known.charge->limit == charge.limit && known.charge->hash == charge.hash && known.charge->key == charge.key) {
      known.cost = Saturate(static_cast<Int128>(known.cost) + charge.cost);
      return known;
    }
  }
  Account& account = accounts_[accounts_used_++];
  account.charge = &charge;
  account.shard = &store_.shard(charge.shard);
  account.cost = charge.cost;
  account.granted_bytes = 0;
  account.added = false;
  account.entry = Find(charge);
  account.policy = account.entry != nullptr ? account.entry->policy : charge.limit->PolicyFor(charge.key);
  account.parameters = &limits_.policy(account.policy).parameters;
  if (account.entry == nullptr) {
    account.state = FullBucket(*account.parameters, moment_);
  } else {
    account.state = account.entry->state;
    if (moment_.mono_ns < account.state.last_ns) events_.clock_regressions.fetch_add(1, std::memory_order_relaxed);
    Advance(*account.parameters, moment_, account.state);
  }
  account.available = Available(*account.parameters, moment_, account.state);
  return account;
}

void Ledger::Weigh(Account& account) const {
  // In whole tokens first: several costs together may be more than microtokens can say.
  account.never = account.cost > WholeTokens(account.parameters->capacity);
  account.fits = account.cost == 0 || (!account.never && FromTokens(account.cost) <= account.available);
}

bool Ledger::Decide(absl::Span<const ResolvedCharge> charges, bool peek, CallAnswer& answer) {
  accounts_used_ = 0;
  refused_ = false;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    if (charges[i].limit == nullptr) {
      refused_ |= options_.unknown_limit == UnknownLimit::kDeny && charges[i].cost > 0;
    } else {
      account_of_[i] = static_cast<std::uint8_t>(&Open(charges[i]) - accounts_.data());
    }
  }
  for (std::size_t i = 0; i < accounts_used_; ++i) {
    Weigh(accounts_[i]);
    refused_ |= !accounts_[i].fits && !accounts_[i].limit().shadow;
  }
  if (!refused_ && !peek) {
    if (!MakeRoom()) return false;
    ChargeAll();
  }
  Answer(charges, answer);
  Count(charges, peek, answer);
  return true;
}

// Room for every bucket that will be charged, before anything is charged (**All or nothing**).
bool Ledger::MakeRoom() {
  for (std::size_t i = 0; i < accounts_used_; ++i) {
    Account& account = accounts_[i];
    if (!account.to_be_charged() || MakeRoomFor(account)) continue;
    if (options_.when_full == WhenFull::kDeny) {
      UndoRoom(i);
      events_.full_denied.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    account.entry = nullptr;  // Admitted without an account.
    events_.full_allowed.fetch_add(1, std::memory_order_relaxed);
  }
  return true;
}

// An entry, and memory for what its log may grow by; or nothing of either.
bool Ledger::MakeRoomFor(Account& account) {
  account.shard->AssertHeld();
  const auto growth_bytes = static_cast<std::int64_t>(GrowthBytes(*account.parameters, account.state));
  if (growth_bytes > 0 && !store_.budget().Take(0, growth_bytes)) return false;
  if (account.entry == nullptr) {
    account.entry = account.shard->Add(account.charge->hash, account.charge->limit->id, account.charge->key);
    if (account.entry == nullptr) {
      store_.budget().Return(0, growth_bytes);
      return false;
    }
    account.added = true;
    account.entry->state = account.state;
    account.entry->policy = account.policy;
    account.entry->generation = static_cast<std::uint8_t>(limits_.generation());
  }
  account.granted_bytes = growth_bytes;
  return true;
}

void Ledger::UndoRoom(std::size_t accounts) {
  for (std::size_t i = 0; i < accounts; ++i) {
    Account& account = accounts_[i];
    account.shard->AssertHeld();
    store_.budget().Return(0, account.granted_bytes);
    if (account.added) account.shard->Remove(account.charge->hash, *account.entry);
  }
}

void Ledger::ChargeAll() {
  for (std::size_t i = 0; i < accounts_used_; ++i) {
    if (accounts_[i].to_be_charged()) ChargeOne(accounts_[i]);
  }
}

void Ledger::ChargeOne(Account& account) {
  const Microtokens cost = FromTokens(account.cost);
  if (account.entry == nullptr) {
    account.available -= cost;
    return;
  }
  const Parameters& parameters = *account.parameters;
  if (account.granted_bytes == 0) {
    Charge(parameters, account.state, cost);
  } else {  // The log may have needed less than it was granted.
    const std::size_t before_bytes = HeapBytes(parameters, account.state);
    Charge(parameters, account.state, cost);
    const auto grown_bytes = static_cast<std::int64_t>(HeapBytes(parameters, account.state) - before_bytes);
    store_.budget().Return(0, account.granted_bytes - grown_bytes);
  }
  account.entry->state = account.state;
  account.available = Available(parameters, moment_, account.state);
}

ChargeAnswer Ledger::AnswerOne(const Account& account) const {
  ChargeAnswer answer;
  const Parameters& parameters = *account.parameters;
  answer.on_unavailable = account.limit().on_unavailable;
  answer.remaining = WholeTokens(account.available);
  answer.capacity = WholeTokens(parameters.capacity);
  answer.reset_after_ns = ResetNs(parameters, moment_, account.state);
  if (account.fits) return answer;
  if (account.limit().shadow) {
    answer.reason = Reason::kShadowed;
  } else if (account.never) {
    answer.reason = Reason::kCostExceedsCapacity;
  } else {
    answer.reason = Reason::kQuotaExceeded;
    answer.retry_after_ns = WaitNs(parameters, moment_, account.state, FromTokens(account.cost));
  }
  return answer;
}

// A limit that is not configured holds nothing: it refuses for ever, or lets everything pass.
ChargeAnswer Ledger::AnswerUnknown(const ResolvedCharge& charge) const {
  ChargeAnswer answer;
  if (options_.unknown_limit == UnknownLimit::kDeny && charge.cost > 0) answer.reason = Reason::kCostExceedsCapacity;
  return answer;
}

void Ledger::Answer(absl::Span<const ResolvedCharge> charges, CallAnswer& answer) const {
  answer.error = nullptr;
  answer.allowed = !refused_;
  answer.reason = refused_ ? Reason::kQuotaExceeded : Reason::kAllowed;
  answer.retry_after_ns = kNoWait;
  answer.charges.resize(charges.size());
  std::size_t tightest = 0;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    ChargeAnswer& each = answer.charges[i];
    each = charges[i].limit == nullptr ? AnswerUnknown(charges[i]) : AnswerOne(accounts_[account_of_[i]]);
    if (Tighter(each, answer.charges[tightest])) tightest = i;
    if (each.reason == Reason::kShadowed && !refused_) answer.reason = Reason::kShadowed;
    if (each.reason == Reason::kCostExceedsCapacity) answer.reason = Reason::kCostExceedsCapacity;
    answer.retry_after_ns = std::max(answer.retry_after_ns, each.retry_after_ns);
  }
  if (answer.reason == Reason::kCostExceedsCapacity) answer.retry_after_ns = kNoWait;
  answer.charges[tightest].tightest = true;
}

void Ledger::Count(absl::Span<const ResolvedCharge> charges, bool peek, const CallAnswer& answer) {
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const ResolvedCharge& charge = charges[i];
    if (charge.limit == nullptr) continue;
    const Account& account = accounts_[account_of_[i]];
    account.shard->AssertHeld();
    Tally& tally = account.shard->tally(charge.limit->id);
    if (peek || charge.cost == 0) {
      ++tally.peeked;
      continue;
    }
    const auto cost = static_cast<std::uint64_t>(charge.cost);
    const bool shadow_refused = answer.charges[i].reason == Reason::kShadowed;
    tally.shadow_refused += shadow_refused;
    if (answer.allowed) {
      ++tally.allowed;
      (shadow_refused ? tally.shadow_refused_cost : tally.admitted_cost) += cost;
      continue;
    }
    ++tally.denied;
    tally.refused_quota += answer.charges[i].reason == Reason::kQuotaExceeded;
    tally.refused_never += answer.charges[i].reason == Reason::kCostExceedsCapacity;
  }
}

}  // namespace ebbgate

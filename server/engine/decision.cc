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

auto CountExpired(Tally& tally) {
  return [&tally](const Promise& hold) {
    ++tally.holds_expired;
    if (hold.on_expiry == OnHoldExpiry::kGiveBack) {
      tally.given_back_cost += static_cast<std::uint64_t>(WholeTokens(hold.cost));
    }
  };
}

}  // namespace

void Ledger::Settle(Shard& shard, Entry& entry) {
  shard.AssertHeld();
  if (IsSettled(entry)) return;
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
    Promises* const promises = shard.FindPromises(entry);
    if (promises != nullptr) {
      promises->BringUpTo(from, limits_.installed_at, entry.state, CountExpired(shard.tally(entry.limit_id)));
    }
    Advance(from, limits_.installed_at, entry.state);
    if (promises != nullptr) promises->Cap(from, entry.state);
    Convert(from, to, limits_.installed_at, entry.state);
    if (promises != nullptr) {
      promises->Convert(from, to);
      promises->Cap(to, entry.state);
    }
    store_.budget().Return(0, before_bytes - static_cast<std::int64_t>(HeapBytes(to, entry.state)));
  }
  entry.policy = policy;
  entry.generation = static_cast<std::uint8_t>(limits_.generation());
}

Entry* Ledger::Find(const ResolvedCharge& charge) {
  Shard& shard = store_.shard(charge.shard);
  shard.AssertHeld();
  Entry* const entry = shard.Find(charge.hash, charge.limit->id, charge.key, charge.guess);
  if (entry != nullptr && !IsSettled(*entry)) Settle(shard, *entry);
  return entry;
}

Promises* Ledger::BringUp(Shard& shard, Entry& entry) {
  shard.AssertHeld();
  Promises* const promises = shard.FindPromises(entry);
  if (promises == nullptr) return nullptr;
  const Parameters& parameters = limits_.policy(entry.policy).parameters;
  const auto before_bytes = static_cast<std::int64_t>(HeapBytes(parameters, entry.state));
  promises->BringUpTo(parameters, moment_, entry.state, CountExpired(shard.tally(entry.limit_id)));
  store_.budget().TakeAnyway(static_cast<std::int64_t>(HeapBytes(parameters, entry.state)) - before_bytes);
  if (!promises->empty()) return promises;
  shard.RemovePromises(entry);
  return nullptr;
}

void Ledger::MakeFull(Entry& entry) {
  const Parameters& parameters = limits_.policy(entry.policy).parameters;
  store_.budget().Return(0, static_cast<std::int64_t>(HeapBytes(parameters, entry.state)));
  Free(parameters, entry.state);
  entry.state = FullBucket(parameters, moment_);
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
    if (BringUp(shard, entry) != nullptr) return;
    const Parameters& parameters = limits_.policy(entry.policy).parameters;
    if (!MayForget(parameters, moment_, entry.state)) return;
    Forget(shard, entry);
    events_.keys_expired.fetch_add(1, std::memory_order_relaxed);
  });
}

// --- Steps of a decision ---------------------------------------------------------------------------------------------

inline void Ledger::Open(const ResolvedCharge& charge, Account& account) {
  account.charge = &charge;
  account.shard = &store_.shard(charge.shard);
  account.cost = charge.cost;
  account.granted_bytes = 0;
  account.added = false;
  account.entry = Find(charge);
  account.promises = nullptr;
  if (account.entry != nullptr) {
    if (account.entry->has_promises) account.promises = BringUp(*account.shard, *account.entry);
    account.policy = account.entry->policy;
    account.parameters = &limits_.policy(account.policy).parameters;
    account.state = account.entry->state;
    if (moment_.mono_ns < account.state.last_ns) events_.clock_regressions.fetch_add(1, std::memory_order_relaxed);
    Advance(*account.parameters, moment_, account.state);
  } else {
    account.policy = charge.limit->PolicyFor(charge.key);
    account.parameters = &limits_.policy(account.policy).parameters;
    account.state = FullBucket(*account.parameters, moment_);
  }
  account.available = Available(*account.parameters, moment_, account.state);
}

inline void Ledger::Weigh(Account& account) const {
  // Costs that add up to more than microtokens can say are above every capacity.
  account.never = account.cost > kMaxCostTokens || FromTokens(account.cost) > account.parameters->capacity;
  account.fits = account.cost == 0 ||
                 (!account.never && Needed(*account.parameters, FromTokens(account.cost)) <= account.available &&
                  (account.promises == nullptr ||
                   account.promises->Fits(*account.parameters, moment_, account.state, FromTokens(account.cost))));
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

void Ledger::TakeRoomBack(Account& account) {
  account.shard->AssertHeld();
  store_.budget().Return(0, account.granted_bytes);
  if (account.added) account.shard->Remove(account.charge->hash, *account.entry);
}

inline void Ledger::ChargeOne(Account& account) {
  const Microtokens cost = FromTokens(account.cost);
  if (account.entry == nullptr) {  // Admitted without an account.
    account.available -= cost;
    return;
  }
  const Parameters& parameters = *account.parameters;
  if (account.promises != nullptr) account.promises->Cap(parameters, account.state);
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

// What could be taken now, for people who count in whole tokens.
inline Microtokens Ledger::Spendable(const Account& account) const {
  if (account.promises != nullptr) {
    return account.promises->LargestCost(*account.parameters, moment_, account.state);
  }
  return account.available >= Needed(*account.parameters, 0) ? account.available : 0;
}

// **Honest wait** of an account that does not fit and is not for ever.
inline std::int64_t Ledger::WaitOf(const Account& account) const {
  const Microtokens cost = FromTokens(account.cost);
  if (account.promises == nullptr) {
    return WaitNs(*account.parameters, moment_, account.state, Needed(*account.parameters, cost));
  }
  const std::int64_t now_ns = account.state.last_ns;
  return account.promises->EarliestNs(*account.parameters, moment_, account.state, cost, now_ns) - now_ns;
}

inline void Ledger::AnswerOne(const Account& account, ChargeAnswer& answer) const {
  const Parameters& parameters = *account.parameters;
  answer.reason = Reason::kAllowed;
  answer.tightest = false;
  answer.on_unavailable = account.limit().on_unavailable;
  answer.remaining = WholeTokens(Spendable(account));
  answer.capacity = WholeTokens(parameters.capacity);
  answer.retry_after_ns = kNoWait;
  answer.reset_after_ns = account.promises == nullptr ? ResetNs(parameters, moment_, account.state)
                                                      : account.promises->ResetNs(parameters, moment_, account.state);
  if (account.fits) return;
  if (account.limit().shadow) {
    answer.reason = Reason::kShadowed;
  } else if (account.never) {
    answer.reason = Reason::kCostExceedsCapacity;
  } else {
    answer.reason = Reason::kQuotaExceeded;
    answer.retry_after_ns = WaitOf(account);
  }
}

inline void Ledger::CountOne(const ResolvedCharge& charge, Account& account, bool peek, bool allowed, Reason reason) {
  account.shard->AssertHeld();
  Tally& tally = account.shard->tally(charge.limit->id);
  if (peek || charge.cost == 0) {
    ++tally.peeked;
    return;
  }
  const auto cost = static_cast<std::uint64_t>(charge.cost);
  if (reason == Reason::kAllowed && allowed) {  // Nearly every call.
    ++tally.allowed;
    tally.admitted_cost += cost;
    return;
  }
  const bool shadow_refused = reason == Reason::kShadowed;
  tally.shadow_refused += shadow_refused;
  if (allowed) {
    ++tally.allowed;
    (shadow_refused ? tally.shadow_refused_cost : tally.admitted_cost) += cost;
    return;
  }
  ++tally.denied;
  tally.refused_quota += reason == Reason::kQuotaExceeded;
  tally.refused_never += reason == Reason::kCostExceedsCapacity;
  tally.refused_debt += reason == Reason::kTooMuchDebt;
  tally.refused_holds += reason == Reason::kTooManyHolds;
}

// --- Whole decisions -------------------------------------------------------------------------------------------------

bool Ledger::Decide(absl::Span<const ResolvedCharge> charges, bool peek, CallAnswer& answer) {
  if (answer.charges.size() != charges.size()) answer.charges.resize(charges.size());
  if (charges.size() == 1 && charges[0].limit != nullptr) return DecideSingle(charges[0], peek, answer);
  return DecideSeveral(charges, peek, answer);
}

// Nearly every call: the steps one after the other, without the loops.
bool Ledger::DecideSingle(const ResolvedCharge& charge, bool peek, CallAnswer& answer) {
  Account& account = accounts_[0];
  accounts_used_ = 1;
  Open(charge, account);
  Weigh(account);
  const bool allowed = !Refuses(account);
  if (allowed && !peek) {
    if (!HasRoom(account) && !MakeRoomForAll()) return false;
    if (account.to_be_charged()) ChargeOne(account);
  }
  ChargeAnswer& only = answer.charges[0];
  AnswerOne(account, only);
  only.tightest = true;
  answer.allowed = allowed;
  answer.reason = only.reason;
  answer.retry_after_ns = only.retry_after_ns;
  CountOne(charge, account, peek, allowed, only.reason);
  return true;
}

bool Ledger::DecideSeveral(absl::Span<const ResolvedCharge> charges, bool peek, CallAnswer& answer) {
  OpenAll(charges);
  if (!refused_ && !peek) {
    if (!MakeRoomForAll()) return false;
    for (std::size_t i = 0; i < accounts_used_; ++i) {
      if (accounts_[i].to_be_charged()) ChargeOne(accounts_[i]);
    }
  }
  AnswerAll(charges, answer);
  // When each fits alone need not be when all fit, where promises lie between.
  if (answer.reason == Reason::kQuotaExceeded && PromisesAny()) {
    answer.retry_after_ns = EarliestTogether() - moment_.mono_ns;
  }
  CountAll(charges, peek, answer);
  return true;
}

void Ledger::CountAll(absl::Span<const ResolvedCharge> charges, bool peek, const CallAnswer& answer) {
  for (std::size_t i = 0; i < charges.size(); ++i) {
    if (charges[i].limit == nullptr) continue;
    CountOne(charges[i], accounts_[account_of_[i]], peek, answer.allowed, answer.charges[i].reason);
  }
}

bool Ledger::PromisesAny() const {
  return std::any_of(accounts_.begin(), accounts_.begin() + static_cast<std::ptrdiff_t>(accounts_used_),
                     [](const Account& account) { return account.promises != nullptr; });
}

// Charges to one bucket share an account: their costs add up.
void Ledger::OpenAll(absl::Span<const ResolvedCharge> charges) {
  accounts_used_ = 0;
  refused_ = false;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const ResolvedCharge& charge = charges[i];
    if (charge.limit == nullptr) {
      refused_ |= options_.unknown_limit == UnknownLimit::kDeny && charge.cost > 0;
      continue;
    }
    std::size_t at = 0;
    const auto same = [&](const ResolvedCharge& other) {
      return other.limit == charge.limit && other.hash == charge.hash && other.key == charge.key;
    };
    while (at < accounts_used_ && !same(*accounts_[at].charge)) ++at;
    account_of_[i] = static_cast<std::uint8_t>(at);
    if (at == accounts_used_) {
      Open(charge, accounts_[accounts_used_++]);
    } else {
      accounts_[at].cost = Saturate(static_cast<Int128>(accounts_[at].cost) + charge.cost);
    }
  }
  for (std::size_t i = 0; i < accounts_used_; ++i) {
    Weigh(accounts_[i]);
    refused_ |= Refuses(accounts_[i]);
  }
}

// Room for every bucket that will be charged, before anything is charged (**All or nothing**).
bool Ledger::MakeRoomForAll() {
  for (std::size_t i = 0; i < accounts_used_; ++i) {
    if (HasRoom(accounts_[i])) continue;
    if (options_.when_full == WhenFull::kDeny) {
      for (std::size_t j = 0; j < i; ++j) TakeRoomBack(accounts_[j]);
      events_.full_denied.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    accounts_[i].entry = nullptr;  // Admitted without an account.
    events_.full_allowed.fetch_add(1, std::memory_order_relaxed);
  }
  return true;
}

// A limit that is not configured holds nothing: it refuses for ever, or lets everything pass.
void Ledger::AnswerUnknown(const ResolvedCharge& charge, ChargeAnswer& answer) const {
  answer = ChargeAnswer{};
  if (options_.unknown_limit == UnknownLimit::kDeny && charge.cost > 0) answer.reason = Reason::kCostExceedsCapacity;
}

void Ledger::AnswerAll(absl::Span<const ResolvedCharge> charges, CallAnswer& answer) const {
  answer.allowed = !refused_;
  answer.reason = refused_ ? Reason::kQuotaExceeded : Reason::kAllowed;
  answer.retry_after_ns = kNoWait;
  std::size_t tightest = 0;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    ChargeAnswer& each = answer.charges[i];
    if (charges[i].limit == nullptr) {
      AnswerUnknown(charges[i], each);
    } else {
      AnswerOne(accounts_[account_of_[i]], each);
    }
    if (Tighter(each, answer.charges[tightest])) tightest = i;
    if (each.reason == Reason::kShadowed && !refused_) answer.reason = Reason::kShadowed;
    if (each.reason == Reason::kCostExceedsCapacity) answer.reason = Reason::kCostExceedsCapacity;
    answer.retry_after_ns = std::max(answer.retry_after_ns, each.retry_after_ns);
  }
  if (answer.reason == Reason::kCostExceedsCapacity) answer.retry_after_ns = kNoWait;
  answer.charges[tightest].tightest = true;
}

}  // namespace ebbgate

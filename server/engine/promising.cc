// The ledger's part of reservations: when may work begin that has to wait, and how a hold ends.
#include <algorithm>

#include "server/engine/decision.h"

namespace ebbgate {

// The earliest time, not before another one, that suits one account. A bucket whose time is ahead of this call's takes
// the call's for its own (**One clock**).
std::int64_t Ledger::EarliestOf(const Account& account, std::int64_t not_before_ns) const {
  const Parameters& parameters = *account.parameters;
  const Microtokens cost = FromTokens(account.cost);
  const std::int64_t last_ns = account.state.last_ns;
  const std::int64_t at_ns = account.promises != nullptr
                                 ? account.promises->EarliestNs(parameters, moment_, account.state, cost, not_before_ns)
                                 : Saturate(static_cast<Int128>(last_ns) +
                                            WaitNs(parameters, moment_, account.state, Needed(parameters, cost)));
  return at_ns <= last_ns ? not_before_ns : std::max(at_ns, not_before_ns);
}

std::int64_t Ledger::LastActNs() const {
  std::int64_t last_ns = moment_.mono_ns;
  for (std::size_t i = 0; i < accounts_used_; ++i) {
    if (accounts_[i].promises != nullptr) last_ns = std::max(last_ns, accounts_[i].promises->last_act_ns());
  }
  return last_ns;
}

// The earliest time that suits every account that can refuse: each in turn moves it on to the next time that suits
// itself, until none does. Ends, because behind all promises a bucket to which a time suits is suited by any later one.
std::int64_t Ledger::EarliestTogether() const {
  std::int64_t at_ns = moment_.mono_ns;
  for (int round = 1;; ++round) {
    const std::int64_t before_ns = at_ns;
    for (std::size_t i = 0; i < accounts_used_; ++i) {
      if (Hinders(accounts_[i])) at_ns = EarliestOf(accounts_[i], at_ns);
    }
    if (at_ns == before_ns) return at_ns;
    if (round == kMaxSearchRounds) at_ns = std::max(at_ns, LastActNs());
  }
}

// Why an account cannot be part of a reservation that acts at `act_ns`; kAllowed if it can.
Reason Ledger::WhyNot(const Account& account, const ReserveTerms& terms, std::int64_t act_ns) const {
  if (account.cost == 0) return Reason::kAllowed;
  if (account.never) return Reason::kCostExceedsCapacity;
  const Int128 latest_ns = static_cast<Int128>(moment_.mono_ns) + terms.max_wait_ns;
  if (act_ns > latest_ns) {  // The call as a whole comes too late, perhaps on account of others.
    return EarliestOf(account, moment_.mono_ns) > latest_ns ? Reason::kQuotaExceeded : Reason::kAllowed;
  }
  // Others chose the time; a limit in shadow mode takes part only if it suits.
  if (account.limit().shadow && EarliestOf(account, act_ns) != act_ns) return Reason::kQuotaExceeded;
  if (act_ns > moment_.mono_ns) {
    const Parameters& parameters = *account.parameters;
    const Int128 owed = account.promises != nullptr ? account.promises->Owed(parameters, moment_, account.state)
                                                    : -static_cast<Int128>(account.available);
    if (owed + FromTokens(account.cost) > MaxDebt(account.limit(), parameters)) return Reason::kTooMuchDebt;
  }
  const bool many =
      account.promises != nullptr && account.promises->size() >= static_cast<std::size_t>(account.limit().max_holds);
  return many ? Reason::kTooManyHolds : Reason::kAllowed;
}

void Ledger::Judge(absl::Span<const ResolvedCharge> charges, const ReserveTerms& terms, std::int64_t act_ns) {
  refused_ = std::any_of(charges.begin(), charges.end(), [&](const ResolvedCharge& charge) {
    return charge.limit == nullptr && options_.unknown_limit == UnknownLimit::kDeny && charge.cost > 0;
  });
  for (std::size_t i = 0; i < accounts_used_; ++i) {
    Account& account = accounts_[i];
    account.refusal = WhyNot(account, terms, act_ns);
    account.fits = account.refusal == Reason::kAllowed;
    refused_ |= Refuses(account);
  }
  if (refused_ || act_ns - moment_.mono_ns <= terms.max_wait_ns) return;
  // Each alone would be in time, all together would not: the promises of one lie where another has room.
  for (std::size_t i = 0; i < accounts_used_; ++i) {
    if (!Hinders(accounts_[i])) continue;
    accounts_[i].refusal = Reason::kQuotaExceeded;
    accounts_[i].fits = false;
    refused_ = true;
  }
}

void Ledger::Hold(Account& account, const ReserveTerms& terms, const Reserved& reserved) {
  account.shard->AssertHeld();
  const Parameters& parameters = *account.parameters;
  if (account.entry == nullptr) {  // Admitted without an account.
    account.available -= FromTokens(account.cost);
    return;
  }
  account.promises = &account.shard->AddPromises(*account.entry);
  const Promise promise = {.hold = terms.hold,
                           .act_ns = reserved.act_ns,
                           .expires_ns = reserved.expires_ns,
                           .cost = FromTokens(account.cost),
                           .on_expiry = account.limit().on_hold_expiry};
  const auto before_bytes = static_cast<std::int64_t>(HeapBytes(parameters, account.state));
  if (reserved.act_ns <= moment_.mono_ns) {
    account.promises->TakeNow(parameters, promise, account.state);
    account.entry->state = account.state;
  } else {
    account.promises->TakeLater(promise);
  }
  const auto grown_bytes = static_cast<std::int64_t>(HeapBytes(parameters, account.state)) - before_bytes;
  store_.budget().Return(0, account.granted_bytes - grown_bytes);
  account.available = Available(parameters, moment_, account.state);
  ++account.shard->tally(account.charge->limit->id).holds_opened;
}

std::uint32_t Ledger::HeldOf(absl::Span<const ResolvedCharge> charges) const {
  std::uint32_t held = 0;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    if (charges[i].limit == nullptr) continue;
    const Account& account = accounts_[account_of_[i]];
    if (account.to_be_charged() && account.entry != nullptr) held |= std::uint32_t{1} << i;
  }
  return held;
}

// What AnswerAll says of a refusal, in the terms of a reservation.
void Ledger::ExplainRefusal(absl::Span<const ResolvedCharge> charges, std::int64_t retry_after_ns,
                            CallAnswer& answer) const {
  bool never = false, too_long = false, debt = false;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    ChargeAnswer& each = answer.charges[i];
    const bool mine = charges[i].limit != nullptr && each.reason == Reason::kQuotaExceeded;
    if (mine) each.reason = accounts_[account_of_[i]].refusal;
    if (each.reason == Reason::kTooMuchDebt || each.reason == Reason::kTooManyHolds) each.retry_after_ns = kNoWait;
    never |= each.reason == Reason::kCostExceedsCapacity;
    too_long |= each.reason == Reason::kQuotaExceeded;
    debt |= each.reason == Reason::kTooMuchDebt;
  }
  answer.reason = never      ? Reason::kCostExceedsCapacity
                  : too_long ? Reason::kQuotaExceeded
                  : debt     ? Reason::kTooMuchDebt
                             : Reason::kTooManyHolds;
  answer.retry_after_ns = answer.reason == Reason::kQuotaExceeded ? retry_after_ns : kNoWait;
}

bool Ledger::Reserve(absl::Span<const ResolvedCharge> charges, const ReserveTerms& terms, CallAnswer& answer,
                     Reserved& reserved) {
  answer.charges.resize(charges.size());
  OpenAll(charges);
  const std::int64_t act_ns = EarliestTogether();
  Judge(charges, terms, act_ns);
  if (!refused_) {
    if (!MakeRoomForAll()) return false;
    reserved = {.act_ns = act_ns, .expires_ns = Saturate(static_cast<Int128>(act_ns) + terms.hold_ns)};
    for (std::size_t i = 0; i < accounts_used_; ++i) {
      if (accounts_[i].to_be_charged()) Hold(accounts_[i], terms, reserved);
    }
    reserved.held = HeldOf(charges);
  }
  AnswerAll(charges, answer);
  if (refused_)
    ExplainRefusal(charges, Saturate(static_cast<Int128>(act_ns) - moment_.mono_ns - terms.max_wait_ns), answer);
  CountAll(charges, /*peek=*/false, answer);
  return true;
}

HoldEnd Ledger::EndHold(const ResolvedCharge& charge, std::uint64_t hold, std::int64_t actual) {
  Shard& shard = store_.shard(charge.shard);
  shard.AssertHeld();
  Entry* const entry = Find(charge);
  Promises* const promises = entry != nullptr ? BringUp(shard, *entry) : nullptr;
  if (promises == nullptr) return {};
  const Parameters& parameters = limits_.policy(entry->policy).parameters;
  BucketState state = entry->state;
  Advance(parameters, moment_, state);
  const auto before_bytes = static_cast<std::int64_t>(HeapBytes(parameters, state));
  const HoldEnd end = promises->End(parameters, moment_, hold, FromTokens(std::min(actual, kMaxCostTokens)),
                                    MaxDebt(*charge.limit->config, parameters), state);
  if (end.found) entry->state = state;
  store_.budget().TakeAnyway(static_cast<std::int64_t>(HeapBytes(parameters, state)) - before_bytes);
  if (promises->empty()) shard.RemovePromises(*entry);
  return end;
}

}  // namespace ebbgate

#include "server/limiter/promises.h"

#include <algorithm>
#include <cstring>

namespace ebbgate {

// A bucket to try acts on, moved forward through time. Copies share nothing.
class Promises::Trial {
 public:
  // Of a state that was advanced to the moment.
  Trial(const Parameters& parameters, const Moment& moment, const BucketState& state)
      : parameters_(parameters), moment_(moment), state_(Clone(parameters, state)) {}
  Trial(const Trial& other) : Trial(other.parameters_, other.moment_, other.state_) {}
  Trial& operator=(const Trial&) = delete;
  ~Trial() { Free(parameters_, state_); }

  void AdvanceTo(std::int64_t at_ns) {
    moment_.mono_ns = at_ns;
    Advance(parameters_, moment_, state_);
  }
  void Take(Microtokens cost) { Charge(parameters_, state_, cost); }
  void Act(const Promise& act) {
    AdvanceTo(act.act_ns);
    Take(act.cost);
  }

  std::int64_t now_ns() const { return state_.last_ns; }
  Microtokens available() const { return Available(parameters_, moment_, state_); }
  Microtokens needed(Microtokens cost) const { return Needed(parameters_, cost); }
  bool Fits(Microtokens cost) const { return needed(cost) <= available(); }
  // When `cost` fits if nothing else comes.
  std::int64_t FitsAtNs(Microtokens cost) const {
    return Saturate(static_cast<Int128>(now_ns()) + WaitNs(parameters_, moment_, state_, needed(cost)));
  }
  std::int64_t ResetNs() const { return ebbgate::ResetNs(parameters_, moment_, state_); }

  // Nothing that comes can tell the two apart. May say no of two that are alike.
  bool SameAs(const Trial& other) const { return std::memcmp(&state_, &other.state_, sizeof(state_)) == 0; }

 private:
  const Parameters& parameters_;
  Moment moment_;
  BucketState state_;
};

// --- Time passes -----------------------------------------------------------------------------------------------------

void Promises::BringUpTo(const Parameters& parameters, const Moment& moment, BucketState& state,
                         const std::function<void(const Promise&)>& expired) {
  for (;;) {
    const auto back = FirstToGiveBack(moment.mono_ns);
    const std::int64_t back_ns = back != holds_.end() ? back->expires_ns : kInt64Max;
    if (!acts_.empty() && acts_.front().act_ns <= std::min(moment.mono_ns, back_ns)) {
      Act(parameters, moment, state);
    } else if (back != holds_.end()) {
      const Moment then = {.mono_ns = back_ns, .wall = moment.wall};
      Advance(parameters, then, state);
      Cap(parameters, state);
      TakeBack(parameters, then, back, back->cost, state);
      expired(*back);
      Remove(back);
    } else {
      break;
    }
  }
  DropSpent(moment.mono_ns, expired);
}

// The first act is due.
void Promises::Act(const Parameters& parameters, const Moment& moment, BucketState& state) {
  const Hold act = acts_.front();
  acts_.pop_front();
  promised_ -= act.cost;
  Advance(parameters, {.mono_ns = act.act_ns, .wall = moment.wall}, state);
  Cap(parameters, state);
  Charge(parameters, state, act.cost);
  if (!act.settled) AddHold(parameters, state, act);
}

// A hold that has acted just now.
void Promises::AddHold(const Parameters& parameters, const BucketState& state, Hold hold) {
  hold.act_ns = state.last_ns;  // Where a charge lies in a window is told by the bucket's time.
  hold.room = Missing(parameters, state);
  next_expiry_ns_ = std::min(next_expiry_ns_, hold.expires_ns);
  holds_.push_back(hold);
}

void Promises::Cap(const Parameters& parameters, const BucketState& state) {
  if (!holds_.empty()) holds_.back().room = std::min(holds_.back().room, Missing(parameters, state));
}

// Of the holds that have expired and are to be given back, the one that expired first.
std::vector<Promises::Hold>::iterator Promises::FirstToGiveBack(std::int64_t now_ns) {
  auto first = holds_.end();
  if (now_ns < next_expiry_ns_) return first;
  for (auto hold = holds_.begin(); hold != holds_.end(); ++hold) {
    if (hold->on_expiry != OnHoldExpiry::kGiveBack || hold->expires_ns > now_ns) continue;
    if (first == holds_.end() || hold->expires_ns < first->expires_ns) first = hold;
  }
  return first;
}

void Promises::DropSpent(std::int64_t now_ns, const std::function<void(const Promise&)>& expired) {
  if (now_ns < next_expiry_ns_) return;
  next_expiry_ns_ = kInt64Max;
  auto kept = holds_.begin();
  for (const Hold& hold : holds_) {
    if (hold.expires_ns <= now_ns) {
      expired(hold);
      if (kept != holds_.begin()) (kept - 1)->room = std::min((kept - 1)->room, hold.room);
    } else {
      next_expiry_ns_ = std::min(next_expiry_ns_, hold.expires_ns);
      *kept++ = hold;
    }
  }
  holds_.erase(kept, holds_.end());
}

// Those before it keep what they may give back together with it, now without it.
void Promises::Remove(std::vector<Hold>::iterator hold) {
  if (hold != holds_.begin()) (hold - 1)->room = std::min((hold - 1)->room, hold->room);
  holds_.erase(hold);
}

// --- Looking ahead ---------------------------------------------------------------------------------------------------

// The first act from `next` on that would have found its cost and misses it if `cost` is taken at `at_ns`; size of
// acts_ if there is none. `before` is the bucket after the act before `next`. Pre: act `next` is not before `at_ns`.
std::size_t Promises::FirstSpoiled(const Trial& before, std::size_t next, std::int64_t at_ns, Microtokens cost) const {
  if (next == acts_.size()) return next;
  Trial without = before;
  without.AdvanceTo(at_ns);
  Trial with = without;
  with.Take(cost);
  for (; next < acts_.size(); ++next) {
    const Hold& act = acts_[next];
    without.AdvanceTo(act.act_ns);
    with.AdvanceTo(act.act_ns);
    if (with.SameAs(without)) return acts_.size();
    const Microtokens found = with.available();
    if (found < with.needed(act.cost) && found < without.available()) return next;
    without.Take(act.cost);
    with.Take(act.cost);
  }
  return next;
}

bool Promises::Fits(const Parameters& parameters, const Moment& moment, const BucketState& state,
                    Microtokens cost) const {
  const Trial now(parameters, moment, state);
  return cost == 0 || (now.Fits(cost) && FirstSpoiled(now, 0, now.now_ns(), cost) == acts_.size());
}

std::int64_t Promises::EarliestNs(const Parameters& parameters, const Moment& moment, const BucketState& state,
                                  Microtokens cost, std::int64_t not_before_ns) const {
  Trial trial(parameters, moment, state);
  std::size_t next = 0;
  while (next < acts_.size() && acts_[next].act_ns <= not_before_ns) trial.Act(acts_[next++]);
  trial.AdvanceTo(not_before_ns);
  for (;;) {
    const std::int64_t at_ns = trial.FitsAtNs(cost);
    std::size_t spoiled = next;
    if (next < acts_.size() && at_ns < acts_[next].act_ns) {
      spoiled = FirstSpoiled(trial, next, at_ns, cost);
      if (spoiled == acts_.size()) return at_ns;
    }
    if (next == acts_.size()) return at_ns;
    while (next <= spoiled) trial.Act(acts_[next++]);
  }
}

Microtokens Promises::LargestCost(const Parameters& parameters, const Moment& moment, const BucketState& state) const {
  const Trial now(parameters, moment, state);
  const Microtokens there = now.available();
  if (there < kMicrotokensPerToken || there < now.needed(0)) return 0;
  // What the acts leave: if all were taken now, an act that has `spare` would lack `lack`, so `lack - spare` must stay.
  Int128 most = there;
  Trial without = now;
  Trial with = now;
  with.Take(there);
  for (const Hold& act : acts_) {
    without.AdvanceTo(act.act_ns);
    with.AdvanceTo(act.act_ns);
    const Int128 lack = static_cast<Int128>(without.available()) - with.available();
    if (lack <= 0) break;
    const Int128 spare = static_cast<Int128>(without.available()) - without.needed(act.cost);
    most = std::min(most, there - lack + std::max<Int128>(0, spare));
    without.Act(act);
    with.Act(act);
  }
  // Exact for buckets up to a fraction of a microtoken; a sliding window, whose past weighs ever less, may leave more.
  const std::int64_t guess = WholeTokens(Saturate(most));
  std::int64_t fits = 0;
  std::int64_t too_many = WholeTokens(there) + 1;
  const auto try_tokens = [&](std::int64_t tokens) {
    (Fits(parameters, moment, state, FromTokens(tokens)) ? fits : too_many) = tokens;
  };
  if (guess > 0) try_tokens(guess);
  if (guess + 1 < too_many) try_tokens(guess + 1);
  while (too_many - fits > 1) try_tokens(fits + (too_many - fits) / 2);
  return FromTokens(fits);
}

std::int64_t Promises::ResetNs(const Parameters& parameters, const Moment& moment, const BucketState& state) const {
  Trial trial(parameters, moment, state);
  for (const Hold& act : acts_) trial.Act(act);
  return Saturate(static_cast<Int128>(trial.now_ns()) - state.last_ns + trial.ResetNs());
}

Microtokens Promises::Owed(const Parameters& parameters, const Moment& moment, const BucketState& state) const {
  return Saturate(promised_ - Available(parameters, moment, state));
}

// --- Promises come and go --------------------------------------------------------------------------------------------

void Promises::TakeNow(const Parameters& parameters, const Promise& promise, BucketState& state) {
  Cap(parameters, state);
  Charge(parameters, state, promise.cost);
  AddHold(parameters, state, Hold{promise});
}

void Promises::TakeLater(const Promise& promise) {
  const auto later = [](const Hold& a, const Hold& b) { return a.act_ns < b.act_ns; };
  const Hold act{promise};
  acts_.insert(std::upper_bound(acts_.begin(), acts_.end(), act, later), act);
  promised_ += promise.cost;
}

// Gives back `unspent` of a hold that acted, as far as it may be.
Microtokens Promises::TakeBack(const Parameters& parameters, const Moment& moment, std::vector<Hold>::iterator hold,
                               Microtokens unspent, BucketState& state) {
  Int128 grains = static_cast<Int128>(unspent) * Grain(parameters);
  for (auto each = hold; each != holds_.end(); ++each) grains = std::min(grains, each->room);
  if (grains <= 0) return 0;
  for (auto each = hold; each != holds_.end(); ++each) each->room -= grains;
  return GiveBack(parameters, moment, hold->act_ns, grains, state);
}

Microtokens Promises::ChargeOverrun(const Parameters& parameters, const Moment& moment, Microtokens overrun,
                                    Microtokens max_debt, BucketState& state) {
  const Int128 room = static_cast<Int128>(max_debt) - Owed(parameters, moment, state);
  const auto covered = static_cast<Microtokens>(std::clamp<Int128>(room, 0, overrun));
  if (covered > 0) {
    Cap(parameters, state);
    Charge(parameters, state, covered);
  }
  return overrun - covered;
}

HoldEnd Promises::End(const Parameters& parameters, const Moment& moment, std::uint64_t hold, Microtokens actual,
                      Microtokens max_debt, BucketState& state) {
  const auto is_it = [hold](const Hold& each) { return each.hold == hold && !each.settled; };
  HoldEnd end;
  Microtokens cost = 0;
  // An act still to come took nothing yet: it takes less when its turn comes, or does not come at all.
  if (const auto act = std::find_if(acts_.begin(), acts_.end(), is_it); act != acts_.end()) {
    cost = act->cost;
    promised_ -= act->cost - std::min(act->cost, actual);
    act->cost = std::min(act->cost, actual);
    act->settled = true;
    if (act->cost == 0) acts_.erase(act);
    end.found = true;
  } else if (const auto held = std::find_if(holds_.begin(), holds_.end(), is_it); held != holds_.end()) {
    cost = held->cost;
    Cap(parameters, state);
    if (actual < cost) end.returned = TakeBack(parameters, moment, held, cost - actual, state);
    Remove(held);
    end.found = true;
  }
  if (end.found && actual > cost) {
    end.uncovered = ChargeOverrun(parameters, moment, actual - cost, max_debt, state);
  }
  return end;
}

void Promises::Convert(const Parameters& from, const Parameters& to) {
  const auto refills = [](const Parameters& p) { return p.algorithm <= Algorithm::kGcra; };
  const bool same_window = from.algorithm == to.algorithm && from.window == to.window;
  if (refills(from) != refills(to) || (!refills(from) && !same_window)) return ForgetReturnable();
  const std::int64_t old_grain = Grain(from), grain = Grain(to);
  for (Hold& hold : holds_) {
    const Int128 whole = hold.room / old_grain;
    const Int128 part = hold.room - whole * old_grain;
    hold.room = whole * grain + part * grain / old_grain;
  }
}

void Promises::ForgetReturnable() {
  for (Hold& hold : holds_) hold.room = 0;
}

}  // namespace ebbgate

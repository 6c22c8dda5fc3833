// What one bucket has promised to reservations: acts that are still to come, and holds whose price is not known yet.
//
// An act takes its cost at its time and not before. So a bucket's state says at every moment what has really been
// admitted, **Envelope** holds at the moments when work is done, and tokens that lie idle before an act's turn may go
// to others as long as every act to come still finds its cost.
//
// When may one more act (t, c) happen? When c fits at t, and no later act that would have found its cost misses it on
// that account. The search for the earliest t is one walk over the acts, because in every algorithm c leaves no more to
// a later act when it is taken later: between two acts only the first moment at which c fits need be tried, and when
// that try spoils the act at time a, so does every other moment before a. A call thus never overtakes into what was
// promised, and takes the place of a cancelled act only where it collides with nobody.
//
// Giving back: cost - actual, but never so much that others could exceed **Envelope** with it. What may be given back
// is what the bucket would hold more by now if less had been taken: for every time s since, what is given back by the
// holds that were open at s may come to no more than the bucket lacked at s to be full. (Then tokens admitted in [s, t]
// were there at s, or are given back by a hold that was open at s, together at most b, or came since: r*(t - s).) As
// holds are ordered by when they acted, those open at s are the first few of those open now, so one number a hold says
// it all: what it and those before it may give back together. Windows know what each charge still weighs.
//
// Pure, as the rest of the core. Not thread-safe: whoever holds the bucket's lock calls. A walk costs 10 to 30 ns an
// act; with exact_window each walk copies the log. The number of acts and holds is bounded by the caller.
#ifndef EBBGATE_SERVER_LIMITER_PROMISES_H_
#define EBBGATE_SERVER_LIMITER_PROMISES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <vector>

#include "server/limiter/amount.h"
#include "server/limiter/bucket.h"
#include "server/limiter/moment.h"
#include "server/limiter/parameters.h"

namespace ebbgate {

// What a hold takes of one bucket.
struct Promise {
  std::uint64_t hold = 0;  // which hold; unique among the bucket's
  std::int64_t act_ns = 0;
  std::int64_t expires_ns = 0;  // >= act_ns
  Microtokens cost = 0;
  OnHoldExpiry on_expiry = OnHoldExpiry::kSpend;
};

// What came of ending a hold.
struct HoldEnd {
  bool found = false;  // false: the bucket knows nothing of it, and nothing changed
  Microtokens returned = 0;
  Microtokens uncovered = 0;
};

class Promises {
 public:
  bool empty() const { return acts_.empty() && holds_.empty(); }
  std::size_t size() const { return acts_.size() + holds_.size(); }
  // When the last act happens; the least time if there is none.
  std::int64_t last_act_ns() const {
    return acts_.empty() ? std::numeric_limits<std::int64_t>::min() : acts_.back().act_ns;
  }

  // Charges acts that are due and ends holds that have expired, each at its own time, and tells of each end. Leaves the
  // state at the last of them, not at the moment: what nobody charged for is not to be seen.
  void BringUpTo(const Parameters& parameters, const Moment& moment, BucketState& state,
                 const std::function<void(const Promise&)>& expired);

  // What follows takes a state that was brought up and then advanced to `moment`.

  // Whether `cost` may be taken now. Pre: cost <= capacity.
  bool Fits(const Parameters& parameters, const Moment& moment, const BucketState& state, Microtokens cost) const;

  // The largest whole number of tokens that may be taken now, in microtokens.
  Microtokens LargestCost(const Parameters& parameters, const Moment& moment, const BucketState& state) const;

  // The earliest monotonic time, not before `not_before_ns` nor before now, at which `cost` may be taken. Pre: 0 < cost
  // <= capacity.
  std::int64_t EarliestNs(const Parameters& parameters, const Moment& moment, const BucketState& state,
                          Microtokens cost, std::int64_t not_before_ns) const;

  // From state.last_ns until all acts are over and the bucket is full, or its window has turned.
  std::int64_t ResetNs(const Parameters& parameters, const Moment& moment, const BucketState& state) const;

  // What the acts to come will take beyond what is there now: negative while there is more than that.
  Microtokens Owed(const Parameters& parameters, const Moment& moment, const BucketState& state) const;

  // Must be called before anything is charged: takes note of how much the bucket lacks now.
  void Cap(const Parameters& parameters, const BucketState& state);

  // Takes the cost now. Pre: it Fits.
  void TakeNow(const Parameters& parameters, const Promise& promise, BucketState& state);
  // Takes it when its time comes. Pre: act_ns is ahead, and may be (EarliestNs).
  void TakeLater(const Promise& promise);

  // Ends a hold. `actual` is what was spent: below the cost, the rest is given back; above it, the excess is charged
  // now as far as the bucket then owes at most `max_debt`. An act still to come takes `actual`, at most its cost.
  HoldEnd End(const Parameters& parameters, const Moment& moment, std::uint64_t hold, Microtokens actual,
              Microtokens max_debt, BucketState& state);

  // **Settled change**, beside Convert: call BringUpTo and Advance before, Cap after it. Promises made are kept.
  void Convert(const Parameters& from, const Parameters& to);
  // The bucket was made full by hand: nothing is left to give back.
  void ForgetReturnable();

  // Calls visit(const Promise&) for each open hold, in the order in which they begin.
  template <typename Visit>
  void ForEachOpen(const Visit& visit) const;

 private:
  struct Hold : Promise {
    bool settled = false;  // of an act to come: nobody may end it any more
    Int128 room = 0;       // of a hold that acted: what it and those before it may give back together, in grains
  };
  class Trial;

  void Act(const Parameters& parameters, const Moment& moment, BucketState& state);
  void AddHold(const Parameters& parameters, const BucketState& state, Hold hold);
  std::vector<Hold>::iterator FirstToGiveBack(std::int64_t now_ns);
  void DropSpent(std::int64_t now_ns, const std::function<void(const Promise&)>& expired);
  Microtokens TakeBack(const Parameters& parameters, const Moment& moment, std::vector<Hold>::iterator hold,
                       Microtokens unspent, BucketState& state);
  void Remove(std::vector<Hold>::iterator hold);
  Microtokens ChargeOverrun(const Parameters& parameters, const Moment& moment, Microtokens overrun,
                            Microtokens max_debt, BucketState& state);
  std::size_t FirstSpoiled(const Trial& before, std::size_t next, std::int64_t at_ns, Microtokens cost) const;

  std::deque<Hold> acts_;                    // to come, by act_ns, then by arrival
  std::vector<Hold> holds_;                  // open ones that acted, in that order
  Int128 promised_ = 0;                      // sum of acts_' costs
  std::int64_t next_expiry_ns_ = kInt64Max;  // no hold in holds_ expires before
};

template <typename Visit>
void Promises::ForEachOpen(const Visit& visit) const {
  for (const Hold& hold : holds_) visit(static_cast<const Promise&>(hold));
  for (const Hold& act : acts_) {
    if (!act.settled) visit(static_cast<const Promise&>(act));
  }
}

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_LIMITER_PROMISES_H_

// sliding_window: the two-bucket estimate. Admits when current + cost + previous * (1 - elapsed/window) <= count.
//
// Bound, the true worst case and not the folklore's "about count in any window": the estimate takes the previous
// window's admissions for evenly spread. If they came at its end, then at the fraction x into the next window count * x
// more may pass, so an interval of one window's length, from the end of one to the end of the next, can hold just under
// 2 * count. An interval t touches at most 2 + floor(t / window) windows, and each holds at most count.
//
// Windows are numbered from the epoch by a clock that never steps (WallAnchor::epoch_offset_ns): no change of time
// zone, wall clock or daylight saving can lose the previous window. Exact: compared in 128 bits, without division.
// Pure functions on a copy of the state; some 5 ns each.
#ifndef EBBGATE_SERVER_LIMITER_SLIDING_WINDOW_H_
#define EBBGATE_SERVER_LIMITER_SLIDING_WINDOW_H_

#include "server/limiter/bucket_state.h"
#include "server/limiter/moment.h"
#include "server/limiter/parameters.h"

namespace ebbgate::sliding_window {

void MakeFull(const Parameters& parameters, const Moment& moment, BucketState& state);
void Advance(const Parameters& parameters, const Moment& moment, BucketState& state);

// floor(count - current - previous * (1 - elapsed/window)).
Microtokens Available(const Parameters& parameters, const Moment& moment, const BucketState& state);

// From state.last_ns until `amount` fits. Pre: amount <= count.
std::int64_t WaitNs(const Parameters& parameters, const Moment& moment, const BucketState& state, Microtokens amount);

// From state.last_ns until nothing admitted so far weighs any more.
std::int64_t UntilFullNs(const Parameters& parameters, const Moment& moment, const BucketState& state);

inline void Charge(BucketState& state, Microtokens cost) { state.sliding_window.current += cost; }

// Takes `amount` off the count of the window in which it was charged, while that count still weighs.
void GiveBack(const Parameters& parameters, const Moment& moment, std::int64_t charged_at_ns, Microtokens amount,
              BucketState& state);

}  // namespace ebbgate::sliding_window

#endif  // EBBGATE_SERVER_LIMITER_SLIDING_WINDOW_H_

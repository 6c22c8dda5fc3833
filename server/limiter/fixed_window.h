// fixed_window: at most `count` in each window of a calendar, or of a length aligned to the epoch.
//
// Bound: count * (windows that the interval touches). Over two adjacent windows that is twice the count within a moment
// of their border; who cannot have that wants token_bucket or exact_window.
//
// **Calendar**: the wall clock is read through a WallAnchor. When it has been set back, the count is kept and belongs
// to the window that the wall showed after the step: nothing reopens, and no key is shut out beyond that window.
// Pure functions on a copy of the state; some 2 ns, and microseconds once when a window turns.
#ifndef EBBGATE_SERVER_LIMITER_FIXED_WINDOW_H_
#define EBBGATE_SERVER_LIMITER_FIXED_WINDOW_H_

#include "server/limiter/bucket_state.h"
#include "server/limiter/moment.h"
#include "server/limiter/parameters.h"

namespace ebbgate::fixed_window {

void MakeFull(const Parameters& parameters, const Moment& moment, BucketState& state);
void Advance(const Parameters& parameters, const Moment& moment, BucketState& state);

inline Microtokens Available(const Parameters& parameters, const BucketState& state) {
  return parameters.capacity - state.fixed_window.used;
}

// From state.last_ns until the window turns, when any amount up to the count fits.
inline std::int64_t UntilTurnNs(const Moment& moment, const BucketState& state) {
  return Saturate(static_cast<Int128>(state.fixed_window.end_ns) - WallAt(moment.wall, state.last_ns));
}

inline void Charge(BucketState& state, Microtokens cost) { state.fixed_window.used += cost; }

// The first part of Advance: gives a count from before the last step back to the window that the wall then showed.
void FollowStepBack(const Parameters& parameters, const Moment& moment, BucketState& stored);

// Whether a stored count belongs to the past by more than the wall clock's word: by the clock that never steps, or
// because its window's length has gone by since it was last added to. A wall clock that jumps ahead may be set back
// into the window, which then must find its count.
inline bool IsSurelyOver(const Moment& moment, const BucketState& stored) {
  const FixedWindowState& window = stored.fixed_window;
  const Int128 idle_ns = static_cast<Int128>(moment.mono_ns) - stored.last_ns;
  return window.used <= 0 || static_cast<Int128>(moment.mono_ns) + moment.wall.epoch_offset_ns >= window.end_ns ||
         idle_ns >= static_cast<Int128>(window.end_ns) - window.start_ns;
}

}  // namespace ebbgate::fixed_window

#endif  // EBBGATE_SERVER_LIMITER_FIXED_WINDOW_H_

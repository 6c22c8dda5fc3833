// The door of the decision core: one bucket, whatever its algorithm.
//
// Pure: no I/O, no threads, no clock of its own; time is an argument. A decision is made on a copy:
//
//   BucketState now = stored;                       // or MakeFull for a key never seen
//   Advance(parameters, moment, now);               // credit the time since
//   if (cost <= Available(parameters, moment, now)) {
//     Charge(parameters, now, cost);                // only when every charge of the call fits
//     stored = now;                                 // a refusal stores nothing (**Free refusal**)
//   } else {
//     wait = WaitNs(parameters, moment, now, cost); // **Honest wait**
//   }
//
// Thread-safety: none of its own; whoever holds the lock of the bucket calls.
#ifndef EBBGATE_SERVER_LIMITER_BUCKET_H_
#define EBBGATE_SERVER_LIMITER_BUCKET_H_

#include <cstddef>
#include <cstdint>

#include "server/limiter/bucket_state.h"
#include "server/limiter/moment.h"
#include "server/limiter/parameters.h"
#include "server/limiter/token_bucket.h"

namespace ebbgate {

// The algorithms beside token_bucket, whose few instructions are inlined below: nearly every decision is one of its.
namespace other_algorithms {
void Advance(const Parameters& parameters, const Moment& moment, BucketState& state);
Microtokens Available(const Parameters& parameters, const Moment& moment, const BucketState& state);
std::int64_t WaitNs(const Parameters& parameters, const Moment& moment, const BucketState& state, Microtokens cost);
std::int64_t ResetNs(const Parameters& parameters, const Moment& moment, const BucketState& state);
void Charge(const Parameters& parameters, BucketState& state, Microtokens cost);
}  // namespace other_algorithms

// A bucket that nothing was taken from, at moment.mono_ns.
BucketState FullBucket(const Parameters& parameters, const Moment& moment);

// Brings `state` forward to the moment; a moment behind state.last_ns counts as state.last_ns (**One clock**).
inline void Advance(const Parameters& parameters, const Moment& moment, BucketState& state) {
  if (parameters.algorithm == Algorithm::kTokenBucket) return token_bucket::Advance(parameters, moment, state);
  return other_algorithms::Advance(parameters, moment, state);
}

// The functions from here on take a state that was advanced to `moment`.

// The largest cost that fits now; negative in debt.
inline Microtokens Available(const Parameters& parameters, const Moment& moment, const BucketState& state) {
  if (parameters.algorithm == Algorithm::kTokenBucket) return token_bucket::Available(state);
  return other_algorithms::Available(parameters, moment, state);
}

// The exact time after which `cost` fits if nothing else comes; 0 if it fits now. Pre: 0 <= cost <= capacity (above it
// no wait helps: **Never**).
inline std::int64_t WaitNs(const Parameters& parameters, const Moment& moment, const BucketState& state,
                           Microtokens cost) {
  if (parameters.algorithm == Algorithm::kTokenBucket) return token_bucket::WaitNs(parameters, state, cost);
  return other_algorithms::WaitNs(parameters, moment, state, cost);
}

// Until the bucket is full, or the window has turned.
inline std::int64_t ResetNs(const Parameters& parameters, const Moment& moment, const BucketState& state) {
  if (parameters.algorithm == Algorithm::kTokenBucket)
    return token_bucket::WaitNs(parameters, state, parameters.capacity);
  return other_algorithms::ResetNs(parameters, moment, state);
}

// What must be available for `cost` to be admitted: the cost, or everything where work is paced.
inline Microtokens Needed(const Parameters& parameters, Microtokens cost) {
  return parameters.pace ? parameters.capacity : cost;
}

// Takes `cost` >= 0. Where it is more than Available, the bucket is in debt: a level below 0, a count above the
// window's. May allocate for exact_window only: at most GrowthBytes.
inline void Charge(const Parameters& parameters, BucketState& state, Microtokens cost) {
  if (parameters.algorithm == Algorithm::kTokenBucket) return token_bucket::Charge(state, cost);
  return other_algorithms::Charge(parameters, state, cost);
}

// Part of a charge taken back: the work turned out to cost less.
//
// The level of token_bucket and gcra is a multiple of 1/Grain of a microtoken, and Missing is what it lacks to be full
// in these. A window counts in microtokens: its grain is 1.
inline std::int64_t Grain(const Parameters& parameters) {
  const bool window = parameters.algorithm > Algorithm::kGcra;
  return window ? 1 : parameters.refill.per_ns;
}
// What may be given back without lifting the bucket above what it holds when full: below 2^126, or 2^126 for
// sliding_window and exact_window, which know what each charge still weighs.
Int128 Missing(const Parameters& parameters, const BucketState& state);
// Takes `grains` off what was charged at `charged_at_ns`, in a window as far as that charge still counts. Returns what
// became available, in microtokens, rounded down. Pre: at most Missing, and not more than the charge.
Microtokens GiveBack(const Parameters& parameters, const Moment& moment, std::int64_t charged_at_ns, Int128 grains,
                     BucketState& state);

// Whether the state cannot be told from FullBucket, so that it may be forgotten (**Forget only full**).
bool IsFull(const Parameters& parameters, const Moment& moment, const BucketState& state);

// For states at rest, as stored and not advanced: whether one may be forgotten at the moment. Full, and sure to stay
// so: a fixed window must also be over if the wall clock, having been set, is set back again. Takes note in the state
// of a step back, since an anchor tells of the last one only.
bool MayForget(const Parameters& parameters, const Moment& moment, BucketState& stored);

// **Settled change**: turns a state that was advanced under `from` into one under `to`. The level becomes
// min(level, new capacity) and its fraction is rounded down to the new grain: no sequence of changes adds tokens, and
// raising a capacity adds none. Windows that remember when work was admitted (sliding, exact) keep that memory.
void Convert(const Parameters& from, const Parameters& to, const Moment& moment, BucketState& state);

// A copy that shares nothing with the state; to be freed.
BucketState Clone(const Parameters& parameters, const BucketState& state);

// Heap memory that a state owns, that Charge may add, and the freeing of it.
std::size_t HeapBytes(const Parameters& parameters, const BucketState& state);
std::size_t GrowthBytes(const Parameters& parameters, const BucketState& state);
void Free(const Parameters& parameters, BucketState& state);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_LIMITER_BUCKET_H_

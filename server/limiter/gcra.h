// gcra: the generic cell rate algorithm, a token bucket told as one point in time.
//
// Source: ITU-T I.371, annex A (virtual scheduling), with weights: a cost c moves the theoretical arrival time (TAT) by
// c/r, and is admitted if TAT then lies at most b/r ahead of now. With b = capacity and r = refill it makes the same
// decisions as token_bucket, to the nanosecond, and keeps the same bound: b + r*t over any interval t (**Envelope**).
//
// The TAT is exact: whole nanoseconds and a fraction in units of 1/refill.tokens, since c/r = c * per_ns / tokens.
// Pure functions on a copy of the state; some 5 to 10 ns each.
#ifndef EBBGATE_SERVER_LIMITER_GCRA_H_
#define EBBGATE_SERVER_LIMITER_GCRA_H_

#include "server/limiter/bucket_state.h"
#include "server/limiter/moment.h"
#include "server/limiter/parameters.h"

namespace ebbgate::gcra {

// Time ahead of now in units of 1/refill.tokens nanoseconds. Below 2^63 * 2^63.
inline Int128 Backlog(const Parameters& parameters, const BucketState& state) {
  const Int128 ahead_ns = static_cast<Int128>(state.gcra.arrival_ns) - state.last_ns;
  return ahead_ns * parameters.refill.tokens + state.gcra.arrival_part;
}

inline void SetBacklog(const Parameters& parameters, BucketState& state, Int128 backlog) {
  const Int128 ahead_ns = FloorDiv(backlog, parameters.refill.tokens);
  state.gcra.arrival_ns = Saturate(state.last_ns + ahead_ns);
  state.gcra.arrival_part = static_cast<std::int64_t>(backlog - ahead_ns * parameters.refill.tokens);
}

inline void MakeFull(BucketState& state) { state.gcra = {.arrival_ns = state.last_ns, .arrival_part = 0}; }

inline void Advance(const Moment& moment, BucketState& state) {
  if (moment.mono_ns <= state.last_ns) return;
  state.last_ns = moment.mono_ns;
  if (state.gcra.arrival_ns < state.last_ns) MakeFull(state);
}

// floor(b - backlog * r): what token_bucket calls its level.
inline Microtokens Available(const Parameters& parameters, const BucketState& state) {
  const Int128 backlog = Backlog(parameters, state);
  if (backlog <= 0) return parameters.capacity;
  return Saturate(parameters.capacity - CeilDiv(backlog, parameters.refill.per_ns));
}

// From state.last_ns until `amount` fits: ceil(backlog/tokens + (amount - b) * per/tokens). Pre: amount <= capacity.
inline std::int64_t WaitNs(const Parameters& parameters, const BucketState& state, Microtokens amount) {
  const Int128 room = (static_cast<Int128>(parameters.capacity) - amount) * parameters.refill.per_ns;
  const Int128 excess = Backlog(parameters, state) - room;
  return excess <= 0 ? 0 : Saturate(CeilDiv(excess, parameters.refill.tokens));
}

inline void Charge(const Parameters& parameters, BucketState& state, Microtokens cost) {
  const Int128 backlog = Backlog(parameters, state);
  SetBacklog(parameters, state, (backlog > 0 ? backlog : 0) + static_cast<Int128>(cost) * parameters.refill.per_ns);
}

}  // namespace ebbgate::gcra

#endif  // EBBGATE_SERVER_LIMITER_GCRA_H_

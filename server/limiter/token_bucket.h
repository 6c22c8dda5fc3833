// token_bucket: holds `capacity` tokens, refilled evenly.
//
// Bound (**Envelope**): over any interval of length t at most b + r*t is admitted, b the capacity and r the refill
// rate. Proof in one line: tokens admitted in [s, t] were in the bucket at s (at most b) or came since (at most r*(t -
// s)).
//
// Level and remainder together are the exact rational level floor-split into microtokens and a fraction, so any way of
// splitting the elapsed time gives the same level (**Exact**). Pure functions on a copy of the state; some 5 ns each.
#ifndef EBBGATE_SERVER_LIMITER_TOKEN_BUCKET_H_
#define EBBGATE_SERVER_LIMITER_TOKEN_BUCKET_H_

#include "server/limiter/bucket_state.h"
#include "server/limiter/moment.h"
#include "server/limiter/parameters.h"

namespace ebbgate::token_bucket {

inline void MakeFull(const Parameters& parameters, TokenBucketState& state) {
  state = {.level = parameters.capacity, .remainder = 0};
}

// Credits the time since state.last_ns: T' = min(b, T + r*dt).
inline void Advance(const Parameters& parameters, const Moment& moment, BucketState& state) {
  if (moment.mono_ns <= state.last_ns) return;
  const Int128 elapsed_ns = static_cast<Int128>(moment.mono_ns) - state.last_ns;
  state.last_ns = moment.mono_ns;
  TokenBucketState& bucket = state.token_bucket;
  const Int128 missing = static_cast<Int128>(parameters.capacity) - bucket.level;
  if (missing <= 0 || elapsed_ns > kInt64Max) return MakeFull(parameters, bucket);
  // Below 2^63 * 2^63, plus a remainder below 2^63: fits.
  const Int128 gained = elapsed_ns * parameters.refill.tokens + bucket.remainder;
  const Int128 whole = FloorDiv(gained, parameters.refill.per_ns);
  if (whole >= missing) return MakeFull(parameters, bucket);
  bucket.level += static_cast<Microtokens>(whole);
  bucket.remainder = static_cast<std::int64_t>(gained - whole * parameters.refill.per_ns);
}

inline Microtokens Available(const BucketState& state) { return state.token_bucket.level; }

// From state.last_ns until `amount` is there: ceil((amount - exact level) / r). Pre: amount <= capacity.
inline std::int64_t WaitNs(const Parameters& parameters, const BucketState& state, Microtokens amount) {
  const TokenBucketState& bucket = state.token_bucket;
  const Int128 missing = static_cast<Int128>(amount) - bucket.level;
  if (missing <= 0) return 0;
  return Saturate(CeilDiv(missing * parameters.refill.per_ns - bucket.remainder, parameters.refill.tokens));
}

inline void Charge(BucketState& state, Microtokens cost) { state.token_bucket.level -= cost; }

}  // namespace ebbgate::token_bucket

#endif  // EBBGATE_SERVER_LIMITER_TOKEN_BUCKET_H_

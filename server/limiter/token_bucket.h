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

#include <algorithm>

#include "server/limiter/bucket_state.h"
#include "server/limiter/moment.h"
#include "server/limiter/parameters.h"

namespace ebbgate::token_bucket {

inline void MakeFull(const Parameters& parameters, TokenBucketState& state) {
  state = {.level = parameters.capacity, .remainder = 0};
}

// Adds `gained` units of 1/per_ns of a microtoken, remainder included, to a bucket that lacks `missing` microtokens.
template <typename Integer>
void Credit(const Parameters& parameters, Integer gained, Integer missing, TokenBucketState& bucket) {
  const Integer whole = gained / parameters.refill.per_ns;
  if (whole >= missing) return MakeFull(parameters, bucket);
  bucket.level += static_cast<Microtokens>(whole);
  bucket.remainder = static_cast<std::int64_t>(gained - whole * parameters.refill.per_ns);
}

// Credits the time since state.last_ns: T' = min(b, T + r*dt).
inline void Advance(const Parameters& parameters, const Moment& moment, BucketState& state) {
  if (moment.mono_ns <= state.last_ns) return;
  TokenBucketState& bucket = state.token_bucket;
  // In nearly every case all of it fits 64 bits, where it takes half the time; else 128 bits are enough for anything:
  // 2^63 * 2^63, plus a remainder below 2^63.
  std::int64_t elapsed_ns, missing, gained;
  if (!__builtin_sub_overflow(moment.mono_ns, state.last_ns, &elapsed_ns) &&
      !__builtin_sub_overflow(parameters.capacity, bucket.level, &missing) &&
      !__builtin_mul_overflow(elapsed_ns, parameters.refill.tokens, &gained) &&
      !__builtin_add_overflow(gained, bucket.remainder, &gained)) {
    Credit(parameters, gained, missing, bucket);
  } else {
    const Int128 long_elapsed_ns = std::min<Int128>(static_cast<Int128>(moment.mono_ns) - state.last_ns, kInt64Max);
    const Int128 long_gained = long_elapsed_ns * parameters.refill.tokens + bucket.remainder;
    Credit(parameters, long_gained, static_cast<Int128>(parameters.capacity) - bucket.level, bucket);
  }
  state.last_ns = moment.mono_ns;
}

inline Microtokens Available(const BucketState& state) { return state.token_bucket.level; }

// From state.last_ns until `amount` is there: ceil((amount - exact level) / r). Pre: amount <= capacity.
inline std::int64_t WaitNs(const Parameters& parameters, const BucketState& state, Microtokens amount) {
  const TokenBucketState& bucket = state.token_bucket;
  if (amount <= bucket.level) return 0;
  const auto [tokens, per_ns] = parameters.refill;
  // Again 64 bits nearly always do, if need be by splitting what is missing at the multiple of `tokens` next below.
  std::int64_t missing, owed, wait_ns = 0;
  if (!__builtin_sub_overflow(amount, bucket.level, &missing) &&
      (!__builtin_mul_overflow(missing, per_ns, &owed) ||
       (!__builtin_mul_overflow(missing / tokens, per_ns, &wait_ns) &&
        !__builtin_mul_overflow(missing % tokens, per_ns, &owed)))) {
    owed -= bucket.remainder;  // May fall below 0, where division rounds up by itself.
    const std::int64_t rest_ns = owed / tokens + (owed % tokens > 0 ? 1 : 0);
    if (!__builtin_add_overflow(wait_ns, rest_ns, &wait_ns)) return wait_ns;
  }
  const Int128 long_owed = (static_cast<Int128>(amount) - bucket.level) * per_ns - bucket.remainder;
  return Saturate(CeilDiv(long_owed, tokens));
}

inline void Charge(BucketState& state, Microtokens cost) { state.token_bucket.level -= cost; }

// Adds `grains`, each 1/per_ns of a microtoken. Pre: at most what is missing.
inline void GiveBack(const Parameters& parameters, Int128 grains, BucketState& state) {
  TokenBucketState& bucket = state.token_bucket;
  const Int128 gained = grains + bucket.remainder;
  const Int128 whole = FloorDiv(gained, parameters.refill.per_ns);
  bucket.level += static_cast<Microtokens>(whole);
  bucket.remainder = static_cast<std::int64_t>(gained - whole * parameters.refill.per_ns);
}

}  // namespace ebbgate::token_bucket

#endif  // EBBGATE_SERVER_LIMITER_TOKEN_BUCKET_H_

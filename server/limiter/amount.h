// Amounts of tokens, exact: whole numbers of microtokens, and 128-bit products so that nothing wraps.
#ifndef EBBGATE_SERVER_LIMITER_AMOUNT_H_
#define EBBGATE_SERVER_LIMITER_AMOUNT_H_

#include <cstdint>
#include <limits>

namespace ebbgate {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 Uint128;

// 1 token = 1,000,000 microtokens. Signed: a bucket may be in debt.
using Microtokens = std::int64_t;

inline constexpr std::int64_t kMicrotokensPerToken = 1'000'000;
inline constexpr std::int64_t kNsPerSecond = 1'000'000'000;
inline constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();

// Whole tokens in an amount, rounded down; an amount below zero counts as none.
constexpr std::int64_t WholeTokens(Microtokens amount) { return amount <= 0 ? 0 : amount / kMicrotokensPerToken; }

// Pre: 0 <= tokens <= kMaxCostTokens.
constexpr Microtokens FromTokens(std::int64_t tokens) { return tokens * kMicrotokensPerToken; }

// Quotients of non-negative numerators and positive denominators. Most numerators fit 64 bits, where the hardware
// divides several times faster.
constexpr Int128 FloorDiv(Int128 numerator, std::int64_t denominator) {
  if (numerator <= kInt64Max) return static_cast<std::int64_t>(numerator) / denominator;
  return numerator / denominator;
}
constexpr Int128 CeilDiv(Int128 numerator, std::int64_t denominator) {
  return FloorDiv(numerator + denominator - 1, denominator);
}

// The value, or the end of the range of 64 bits that it lies beyond.
constexpr std::int64_t Saturate(Int128 value) {
  if (value > kInt64Max) return kInt64Max;
  if (value < std::numeric_limits<std::int64_t>::min()) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(value);
}

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_LIMITER_AMOUNT_H_

// Random parameters, costs and pauses: small ones where the edges are, and all magnitudes up to the bounds.
#ifndef EBBGATE_TESTS_PROPERTY_HISTORY_H_
#define EBBGATE_TESTS_PROPERTY_HISTORY_H_

#include <cstdint>

#include "server/limiter/parameters.h"
#include "tests/property/random.h"

namespace ebbgate::testing {

inline constexpr Algorithm kAllAlgorithms[] = {Algorithm::kTokenBucket, Algorithm::kGcra, Algorithm::kFixedWindow,
                                               Algorithm::kSlidingWindow, Algorithm::kExactWindow};

// Readings stay within +-2^61, so that every wait after them fits 64 bits.
inline constexpr std::int64_t kLastReadingNs = std::int64_t{1} << 61;

inline bool IsBucket(Algorithm algorithm) {
  return algorithm == Algorithm::kTokenBucket || algorithm == Algorithm::kGcra;
}

// Valid, by Validate. Windows have lengths, not calendars.
Parameters RandomParameters(Random& random, Algorithm algorithm);

// In microtokens, mostly whole tokens that may fit; now and then 0, a fraction of a token, or more than the capacity.
std::int64_t RandomCost(Random& random, const Parameters& parameters);

// From nothing to the time that fills the bucket or turns the window twice, seldom far more.
std::int64_t RandomPause(Random& random, const Parameters& parameters);

std::int64_t RandomStart(Random& random);

}  // namespace ebbgate::testing

#endif  // EBBGATE_TESTS_PROPERTY_HISTORY_H_

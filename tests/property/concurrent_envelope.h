// **Envelope** for calls of many threads, whose instants are known only to lie between two readings of the clock.
#ifndef EBBGATE_TESTS_PROPERTY_CONCURRENT_ENVELOPE_H_
#define EBBGATE_TESTS_PROPERTY_CONCURRENT_ENVELOPE_H_

#include <cstdint>
#include <vector>

#include "server/limiter/parameters.h"

namespace ebbgate::testing {

// An admitted call, and the monotonic clock before and after it.
struct Spell {
  std::int64_t before_ns;
  std::int64_t after_ns;
  std::int64_t cost;  // microtokens
};

// Whether what surely was admitted within [s, t] is at most b + r * (t - s), for every s and t. Never says no wrongly.
// n log n.
bool KeepsEnvelope(std::vector<Spell> spells, std::int64_t capacity, const Rate& refill);
// The same by trying all intervals.
bool KeepsEnvelopeByForce(const std::vector<Spell>& spells, std::int64_t capacity, const Rate& refill);

}  // namespace ebbgate::testing

#endif  // EBBGATE_TESTS_PROPERTY_CONCURRENT_ENVELOPE_H_

// **Envelope** checked on every interval of a history of admissions, by the promise of each algorithm.
//
// The checks take one pass; envelope_test.cc holds them against trying every interval.
#ifndef EBBGATE_TESTS_PROPERTY_ENVELOPE_H_
#define EBBGATE_TESTS_PROPERTY_ENVELOPE_H_

#include <cstdint>
#include <vector>

#include "server/limiter/parameters.h"
#include "tests/property/reference.h"

namespace ebbgate::testing {

// What token_bucket and gcra admitted, and the changes of their parameters, in the order in which they happened.
struct BucketEvent {
  std::int64_t at_ns;
  std::int64_t cost;          // 0: a change
  std::int64_t capacity = 0;  // of a change
  Rate refill = {};           // of a change
};

// Whether over every interval [s, t] the admitted cost is at most b + the refill of s to t, b being the capacity in
// force at s: rates count for the time in which they were in force. Pre: the first event is a change (the parameters at
// the start), times do not fall.
bool KeepsEnvelope(const std::vector<BucketEvent>& events);
// The same by trying all intervals.
bool KeepsEnvelopeByForce(const std::vector<BucketEvent>& events);

// The same with b being the largest capacity in force at any time of the interval: what holds even for a key that was
// full, was forgotten, and came back after the capacity had been raised.
bool KeepsEnvelopeOfLargest(const std::vector<BucketEvent>& events);

// exact_window: in every (t - window, t] at most `count` microtokens. Pre: times do not fall.
bool KeepsExactWindow(const std::vector<Admission>& admissions, std::int64_t count, std::int64_t window_ns);
bool KeepsExactWindowByForce(const std::vector<Admission>& admissions, std::int64_t count, std::int64_t window_ns);

// fixed_window and sliding_window: at most `count` in each window aligned to the epoch.
bool KeepsEachWindow(const std::vector<Admission>& admissions, std::int64_t count, std::int64_t window_ns);

}  // namespace ebbgate::testing

#endif  // EBBGATE_TESTS_PROPERTY_ENVELOPE_H_

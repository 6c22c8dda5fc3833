#include "tests/property/envelope.h"

#include <gmpxx.h>

#include <algorithm>
#include <map>

namespace ebbgate::testing {
namespace {

mpq_class Refilled(const Rate& rate, std::int64_t from_ns, std::int64_t to_ns) {
  mpq_class refilled(mpz_class(rate.tokens) * (mpz_class(to_ns) - from_ns), rate.per_ns);
  refilled.canonicalize();
  return refilled;
}

}  // namespace

// The largest, over all starts so far, of (admitted - refilled - capacity at the start) must never be above zero.
bool KeepsEnvelope(const std::vector<BucketEvent>& events) {
  mpq_class worst = 0;
  bool started = false;
  BucketEvent terms = events.front();
  std::int64_t now_ns = terms.at_ns;
  for (const BucketEvent& event : events) {
    if (started) worst -= Refilled(terms.refill, now_ns, event.at_ns);
    now_ns = event.at_ns;
    if (event.cost == 0) {
      terms = event;
      continue;
    }
    // The best start is an earlier one, or here.
    if (!started || worst < -terms.capacity) worst = -terms.capacity;
    started = true;
    worst += event.cost;
    if (worst > 0) return false;
  }
  return true;
}

bool KeepsEnvelopeByForce(const std::vector<BucketEvent>& events) {
  BucketEvent terms_at_start = events.front();
  for (std::size_t first = 0; first < events.size(); ++first) {
    if (events[first].cost == 0) {
      terms_at_start = events[first];
      continue;
    }
    BucketEvent terms = terms_at_start;
    mpq_class allowed = terms.capacity;
    mpz_class admitted = 0;
    for (std::size_t i = first; i < events.size(); ++i) {
      if (i > first) allowed += Refilled(terms.refill, events[i - 1].at_ns, events[i].at_ns);
      if (events[i].cost == 0) terms = events[i];
      admitted += events[i].cost;
      if (admitted > allowed) return false;
    }
  }
  return true;
}

bool KeepsEnvelopeOfLargest(const std::vector<BucketEvent>& events) {
  BucketEvent terms_at_start = events.front();
  for (std::size_t first = 0; first < events.size(); ++first) {
    if (events[first].cost == 0) {
      terms_at_start = events[first];
      continue;
    }
    BucketEvent terms = terms_at_start;
    std::int64_t largest = terms.capacity;
    mpq_class refilled = 0;
    mpz_class admitted = 0;
    for (std::size_t i = first; i < events.size(); ++i) {
      if (i > first) refilled += Refilled(terms.refill, events[i - 1].at_ns, events[i].at_ns);
      if (events[i].cost == 0) terms = events[i];
      largest = std::max(largest, terms.capacity);
      admitted += events[i].cost;
      if (admitted > largest + refilled) return false;
    }
  }
  return true;
}

bool KeepsExactWindow(const std::vector<Admission>& admissions, std::int64_t count, std::int64_t window_ns) {
  Int128 sum = 0;
  std::size_t oldest = 0;
  for (const Admission& admission : admissions) {
    sum += admission.cost;
    for (; static_cast<Int128>(admissions[oldest].at_ns) + window_ns <= admission.at_ns; ++oldest) {
      sum -= admissions[oldest].cost;
    }
    if (sum > count) return false;
  }
  return true;
}

bool KeepsExactWindowByForce(const std::vector<Admission>& admissions, std::int64_t count, std::int64_t window_ns) {
  for (const Admission& last : admissions) {
    Int128 sum = 0;
    for (const Admission& admission : admissions) {
      const Int128 age_ns = static_cast<Int128>(last.at_ns) - admission.at_ns;
      if (age_ns >= 0 && age_ns < window_ns) sum += admission.cost;
    }
    if (sum > count) return false;
  }
  return true;
}

bool KeepsEachWindow(const std::vector<Admission>& admissions, std::int64_t count, std::int64_t window_ns) {
  std::map<std::int64_t, Int128> windows;
  for (const Admission& admission : admissions) {
    std::int64_t number = admission.at_ns / window_ns;
    if (number * window_ns > admission.at_ns) --number;
    if ((windows[number] += admission.cost) > count) return false;
  }
  return true;
}

}  // namespace ebbgate::testing

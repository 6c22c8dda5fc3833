// What each algorithm promises, told as plainly as possible and with none of the core's code: rationals of any size,
// and lists of everything that was admitted. Slow, and right by inspection.
#ifndef EBBGATE_TESTS_PROPERTY_REFERENCE_H_
#define EBBGATE_TESTS_PROPERTY_REFERENCE_H_

#include <gmpxx.h>

#include <cstdint>
#include <vector>

#include "server/limiter/parameters.h"

namespace ebbgate::testing {

struct Admission {
  std::int64_t at_ns;
  std::int64_t cost;  // microtokens
};

// One bucket under limits that may change. Times are monotonic and count as epoch time for windows. Single-threaded.
class Reference {
 public:
  Reference(const Parameters& parameters, std::int64_t now_ns);

  // The time that a reading counts as: never before the last admission or change.
  std::int64_t Counts(std::int64_t now_ns) const { return now_ns < last_ns_ ? last_ns_ : now_ns; }

  // The largest cost that fits at a reading, in microtokens, rounded down.
  mpz_class Available(std::int64_t now_ns) const;
  // Pre: it fits.
  void Admit(std::int64_t now_ns, std::int64_t cost);
  // **Settled change**.
  void Change(const Parameters& to, std::int64_t now_ns);

  const std::vector<Admission>& admissions() const { return admissions_; }

 private:
  mpq_class Level(std::int64_t now_ns) const;
  mpq_class WindowLevel(const Parameters& parameters, std::int64_t now_ns) const;
  mpz_class Sum(std::int64_t after_ns, std::int64_t until_ns) const;

  Parameters parameters_;
  std::int64_t last_ns_;
  // Of token_bucket and gcra: the exact level at last_ns_, in microtokens.
  mpq_class level_;
  // Of the windows: all that was admitted, and what a change counted as admitted.
  std::vector<Admission> admissions_;
};

}  // namespace ebbgate::testing

#endif  // EBBGATE_TESTS_PROPERTY_REFERENCE_H_

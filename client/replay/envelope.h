// **Envelope**, checked from outside: an account of what one key was admitted that shares no code with the buckets.
//
// For all pairs of admissions i <= j it must hold that
//   cost_i + ... + cost_j <= b + (refill between t_i and t_j)
// with b the capacity in force at t_i. With S the sum admitted and R the sum refilled so far that reads
//   S_j - R(t_j) <= b + S_before_i - R(t_i),
// so the least right side seen so far stands for all earlier i, and one comparison checks them all.
//
// Exact within one rate; each change of rate rounds in favour of the checked by less than 2 microtokens. Not
// thread-safe; constant memory.
#ifndef EBBGATE_CLIENT_REPLAY_ENVELOPE_H_
#define EBBGATE_CLIENT_REPLAY_ENVELOPE_H_

#include <cstdint>
#include <optional>

#include "server/limiter/amount.h"
#include "server/limiter/parameters.h"

namespace ebbgate::replay {

struct EnvelopeViolation {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
  Int128 admitted = 0;  // microtokens in [from, to]
  Int128 bound = 0;     // rounded down
};

class EnvelopeCheck {
 public:
  // Of token_bucket and gcra.
  EnvelopeCheck(const Parameters& parameters, std::int64_t since_ns);

  // New parameters apply from `at_ns` on.
  void Change(const Parameters& parameters, std::int64_t at_ns);

  // Takes note of an admission. A time behind an earlier one counts as that one (**One clock**).
  std::optional<EnvelopeViolation> Admit(std::int64_t at_ns, Microtokens cost);

 private:
  // whole + part / per_ns, 0 <= part < per_ns.
  struct Exact {
    Int128 whole = 0;
    std::int64_t part = 0;
    friend bool operator<(const Exact& a, const Exact& b) {
      return a.whole != b.whole ? a.whole < b.whole : a.part < b.part;
    }
  };

  void RefillUntil(std::int64_t at_ns);
  // admitted_ - refilled_
  Exact Excess() const;

  Microtokens capacity_;
  Rate rate_;
  std::int64_t now_ns_;
  Int128 admitted_ = 0;
  Exact refilled_;
  // The least b + S_before_i - R(t_i), and the i it belongs to.
  std::optional<Exact> allowance_;
  std::int64_t allowance_from_ns_ = 0;
  Int128 admitted_before_ = 0;
};

}  // namespace ebbgate::replay

#endif  // EBBGATE_CLIENT_REPLAY_ENVELOPE_H_

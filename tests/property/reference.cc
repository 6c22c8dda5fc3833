#include "tests/property/reference.h"

namespace ebbgate::testing {
namespace {

static_assert(sizeof(long) == sizeof(std::int64_t), "GMP takes numbers of 64 bits as long");

mpz_class Floor(const mpq_class& value) {
  mpz_class whole;
  mpz_fdiv_q(whole.get_mpz_t(), value.get_num_mpz_t(), value.get_den_mpz_t());
  return whole;
}

mpq_class Fraction(const mpz_class& numerator, const mpz_class& denominator) {
  mpq_class fraction(numerator, denominator);
  fraction.canonicalize();
  return fraction;
}

bool IsBucket(const Parameters& parameters) {
  return parameters.algorithm == Algorithm::kTokenBucket || parameters.algorithm == Algorithm::kGcra;
}

std::int64_t WindowNumber(std::int64_t at_ns, std::int64_t length_ns) {
  std::int64_t number = at_ns / length_ns;
  if (number * length_ns > at_ns) --number;
  return number;
}

}  // namespace

Reference::Reference(const Parameters& parameters, std::int64_t now_ns)
    : parameters_(parameters), last_ns_(now_ns), level_(parameters.capacity) {}

// Admitted in (after, until].
mpz_class Reference::Sum(std::int64_t after_ns, std::int64_t until_ns) const {
  mpz_class sum = 0;
  for (auto admission = admissions_.rbegin(); admission != admissions_.rend(); ++admission) {
    if (admission->at_ns <= after_ns) break;
    if (admission->at_ns <= until_ns) sum += admission->cost;
  }
  return sum;
}

mpq_class Reference::WindowLevel(const Parameters& parameters, std::int64_t now_ns) const {
  const std::int64_t length_ns = parameters.window.length_ns;
  if (parameters.algorithm == Algorithm::kExactWindow) {
    return mpq_class(parameters.capacity - Sum(now_ns - length_ns, now_ns));
  }
  const std::int64_t start_ns = WindowNumber(now_ns, length_ns) * length_ns;
  const mpz_class current = Sum(start_ns - 1, now_ns);
  if (parameters.algorithm == Algorithm::kFixedWindow) return mpq_class(parameters.capacity - current);
  // current + cost + previous * (1 - elapsed/window) <= count, without rounding.
  const mpz_class previous = Sum(start_ns - length_ns - 1, start_ns - 1);
  const mpz_class rest_ns = length_ns - (now_ns - start_ns);
  return parameters.capacity - current - Fraction(previous * rest_ns, length_ns);
}

mpq_class Reference::Level(std::int64_t now_ns) const {
  const std::int64_t at_ns = Counts(now_ns);
  if (!IsBucket(parameters_)) return WindowLevel(parameters_, at_ns);
  // T' = min(b, T + r * dt)
  const mpz_class elapsed_ns = mpz_class(at_ns) - last_ns_;
  const mpq_class refilled = level_ + Fraction(elapsed_ns * parameters_.refill.tokens, parameters_.refill.per_ns);
  return refilled > parameters_.capacity ? mpq_class(parameters_.capacity) : refilled;
}

mpz_class Reference::Available(std::int64_t now_ns) const { return Floor(Level(now_ns)); }

void Reference::Admit(std::int64_t now_ns, std::int64_t cost) {
  if (IsBucket(parameters_)) level_ = Level(now_ns) - cost;
  last_ns_ = Counts(now_ns);
  admissions_.push_back({last_ns_, cost});
}

void Reference::Change(const Parameters& to, std::int64_t now_ns) {
  if (to == parameters_) return;
  const mpq_class level = Level(now_ns);
  const std::int64_t at_ns = Counts(now_ns);
  const bool remembers = !IsBucket(to) && to.algorithm != Algorithm::kFixedWindow;
  if (remembers && to.algorithm == parameters_.algorithm && to.window == parameters_.window) {
    mpz_class before = Floor(level);
    if (before < 0) before = 0;
    const mpz_class after = Floor(WindowLevel(to, at_ns));
    if (after > before) admissions_.push_back({at_ns, mpz_class(after - before).get_si()});
  } else {
    // Level = min(level, new b); remainder' = floor(remainder * per' / per).
    mpz_class whole = Floor(level);
    mpq_class rest = level - whole;
    // What a window holds above a lowered count goes with the window; it is no debt to take elsewhere.
    const bool remembered = !IsBucket(parameters_) && parameters_.algorithm != Algorithm::kFixedWindow;
    if (remembered && whole < 0) whole = 0;
    if (whole >= to.capacity) {
      whole = to.capacity;
      rest = 0;
    }
    if (IsBucket(to)) {
      // A window speaks in whole microtokens: its share of one is lost.
      if (!IsBucket(parameters_)) rest = 0;
      level_ = whole + Fraction(Floor(rest * to.refill.per_ns), to.refill.per_ns);
    } else {
      admissions_.clear();
      const mpz_class spent = to.capacity - whole;
      if (spent > 0) admissions_.push_back({at_ns, spent.get_si()});
    }
  }
  parameters_ = to;
  last_ns_ = at_ns;
}

}  // namespace ebbgate::testing

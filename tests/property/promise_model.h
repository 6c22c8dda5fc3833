// What a bucket with reservations should answer, told from the whole of its history: to know a level, everything that
// ever happened is gone through again, with each hold at the cost that it turned out to have. Nothing is given back
// here, because nothing is taken that was not spent.
#ifndef EBBGATE_TESTS_PROPERTY_PROMISE_MODEL_H_
#define EBBGATE_TESTS_PROPERTY_PROMISE_MODEL_H_

#include <gmpxx.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "server/limiter/parameters.h"
#include "tests/property/reference.h"

namespace ebbgate::testing {

// One charge of a bucket. Of a hold, `cost` is what it takes of the bucket by all that is known.
struct PromisedCharge {
  std::int64_t at_ns = 0;
  Microtokens cost = 0;
  std::uint64_t hold = 0;  // 0: none
  bool open = false;
  std::int64_t expires_ns = 0;
};

// Single-threaded; asked at times that do not fall.
class PromiseModel {
 public:
  PromiseModel(const Limit& limit, std::int64_t now_ns);

  // What is there at a time, in microtokens, rounded down.
  mpz_class Available(std::int64_t at_ns) const;
  // Whether one more charge may happen: it fits, and no act to come misses its cost for it.
  bool MayHappen(std::int64_t at_ns, Microtokens cost) const;
  // The largest whole number of tokens for which MayHappen(now).
  std::int64_t Remaining(std::int64_t now_ns) const;
  // Between acts to come, the first times at which `cost` fits: whatever time suits best is among them.
  std::vector<std::int64_t> Candidates(std::int64_t now_ns, Microtokens cost) const;
  // What acts to come take beyond what is there.
  mpz_class Owed(std::int64_t now_ns) const;
  // Of buckets that refill and were never changed: everything that came is spent, held, there, or ran over.
  struct Books {
    mpq_class in, spent, held, ran_over;
  };
  Books BooksAt(std::int64_t now_ns) const;

  void Charge(const PromisedCharge& charge);
  // The hold is over, and took `cost`.
  void End(std::uint64_t hold, Microtokens cost);
  // Ends holds that have expired by then.
  void Expire(std::int64_t now_ns);
  void Change(const Limit& limit, std::int64_t now_ns);

  Microtokens Needed(Microtokens cost) const { return limit_.parameters.pace ? limit_.parameters.capacity : cost; }
  const Limit& limit() const { return limit_; }
  const std::vector<PromisedCharge>& charges() const { return charges_; }
  const PromisedCharge* Find(std::uint64_t hold) const;

 private:
  Reference Replay(const std::vector<PromisedCharge>& charges, std::int64_t until_ns) const;

  const std::int64_t start_ns_;
  const Parameters first_;
  Limit limit_;
  std::vector<PromisedCharge> charges_;  // by at_ns, then as they came
  std::vector<std::pair<std::int64_t, Parameters>> changes_;
};

}  // namespace ebbgate::testing

#endif  // EBBGATE_TESTS_PROPERTY_PROMISE_MODEL_H_

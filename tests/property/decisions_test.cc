// Random decisions of the core, each held against the exact reference. Every test is named after the invariant it
// checks, and runs for every algorithm.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "tests/property/envelope.h"
#include "tests/property/history.h"
#include "tests/property/random.h"
#include "tests/property/reference.h"
#include "tests/support/core_bucket.h"

namespace ebbgate::testing {
namespace {

struct Shape {
  bool late_readings = false;
  bool changes = false;
};

// One history: a bucket, its reference, and a twin that never hears of what was refused.
class History {
 public:
  History(std::uint64_t stream, Algorithm algorithm, Shape shape)
      : random_(Seed(), stream),
        shape_(shape),
        parameters_(RandomParameters(random_, algorithm)),
        now_ns_(RandomStart(random_)),
        bucket_(parameters_, At(now_ns_)),
        twin_(parameters_, At(now_ns_)),
        reference_(parameters_, now_ns_) {
    if (IsBucket(algorithm)) events_.push_back({now_ns_, 0, parameters_.capacity, parameters_.refill});
  }

  bool Over() const { return now_ns_ > kLastReadingNs; }

  void Step() {
    now_ns_ += hint_ns_.value_or(RandomPause(random_, parameters_));
    hint_ns_.reset();
    if (Over()) return;
    std::int64_t reading_ns = now_ns_;
    if (shape_.late_readings && random_.OneIn(5)) reading_ns -= random_.Magnitude(1, kLastReadingNs);
    if (shape_.changes && random_.OneIn(25)) Change(reading_ns);
    Decide(reading_ns, RandomCost(random_, parameters_));
  }

  void CheckEnvelope() const {
    if (!events_.empty()) {
      EXPECT_TRUE(KeepsEnvelope(events_));
      return;
    }
    if (changed_) return;  // Windows under changes are held against the reference.
    const std::int64_t count = parameters_.capacity;
    const std::int64_t window_ns = parameters_.window.length_ns;
    if (parameters_.algorithm == Algorithm::kExactWindow) {
      EXPECT_TRUE(KeepsExactWindow(reference_.admissions(), count, window_ns));
    } else {
      EXPECT_TRUE(KeepsEachWindow(reference_.admissions(), count, window_ns));
    }
  }

  std::int64_t decisions() const { return decisions_; }
  std::int64_t admitted() const { return admitted_; }
  std::int64_t refused() const { return refused_; }

 private:
  void Change(std::int64_t reading_ns) {
    const Algorithm algorithm = random_.OneIn(3) ? kAllAlgorithms[random_.Between(0, 4)] : parameters_.algorithm;
    Parameters to = RandomParameters(random_, algorithm);
    if (random_.OneIn(3)) to.window = parameters_.window;  // Only the count differs.
    if (!Validate(to).ok()) return;
    const bool same_promise = IsBucket(parameters_.algorithm) && IsBucket(to.algorithm);
    if (!same_promise) {
      // What was promised so far is checked now; from here on the reference alone speaks.
      CheckEnvelope();
      events_.clear();
      changed_ = true;
    }
    const Microtokens before = bucket_.AvailableAt(At(reading_ns));
    bucket_.Change(to, At(reading_ns));
    twin_.Change(to, At(reading_ns));
    reference_.Change(to, reading_ns);
    parameters_ = to;
    if (!events_.empty()) events_.push_back({reference_.Counts(reading_ns), 0, to.capacity, to.refill});
    // **Settled change**: nothing is added, whatever the change.
    const Microtokens after = bucket_.AvailableAt(At(reading_ns));
    ASSERT_LE(after, std::max<Microtokens>(0, before));
    ASSERT_EQ(reference_.Available(reading_ns), after);
  }

  void Decide(std::int64_t reading_ns, std::int64_t cost) {
    ++decisions_;
    const Moment moment = At(reading_ns);
    const BucketState before = bucket_.state();
    const mpz_class available = reference_.Available(reading_ns);
    const Decision decision = bucket_.Ask(moment, cost);
    ASSERT_EQ(decision.never, cost > parameters_.capacity);
    ASSERT_EQ(decision.allowed, !decision.never && (cost == 0 || cost <= available));
    if (decision.allowed && cost > 0) {
      ++admitted_;
      reference_.Admit(reading_ns, cost);
      ASSERT_EQ(twin_.Ask(moment, cost), decision);
      if (!events_.empty()) events_.push_back({reference_.Counts(reading_ns), cost});
    } else {
      ++refused_;
      // **Free refusal**.
      ASSERT_TRUE(SameBytes(bucket_.state(), before));
      ASSERT_EQ(decision.available, available);
      if (!decision.allowed && !decision.never) CheckWait(reading_ns, cost, decision.wait_ns);
    }
    ASSERT_EQ(reference_.Available(reading_ns), decision.available);
  }

  // **Honest wait**: by the reference, a nanosecond before it does not fit, and then it does.
  void CheckWait(std::int64_t reading_ns, std::int64_t cost, std::int64_t wait_ns) {
    ASSERT_GT(wait_ns, 0);
    const std::int64_t counts_ns = reference_.Counts(reading_ns);
    ASSERT_GE(reference_.Available(counts_ns + wait_ns), cost);
    ASSERT_LT(reference_.Available(counts_ns + wait_ns - 1), cost);
    // Often the next call comes just then, or just before.
    if (random_.OneIn(4) && wait_ns < kLastReadingNs) hint_ns_ = wait_ns - random_.Between(0, 1);
  }

  Random random_;
  const Shape shape_;
  Parameters parameters_;
  std::int64_t now_ns_;
  CoreBucket bucket_;
  CoreBucket twin_;
  Reference reference_;
  std::optional<std::int64_t> hint_ns_;
  // While it is a token bucket or gcra from the start: what was admitted and how it changed.
  std::vector<BucketEvent> events_;
  bool changed_ = false;
  std::int64_t decisions_ = 0, admitted_ = 0, refused_ = 0;
};

class Replay : public ::testing::TestWithParam<Algorithm> {
 protected:
  // Some `decisions` in histories of a few hundred.
  void Run(std::int64_t decisions, Shape shape) {
    std::int64_t made = 0, admitted = 0, refused = 0;
    for (int history = 0; made < static_cast<std::int64_t>(static_cast<double>(decisions) * Effort()); ++history) {
      SCOPED_TRACE(Again(Seed(), history));
      History one(static_cast<std::uint64_t>(history), GetParam(), shape);
      for (int i = 0; i < 400 && !one.Over() && !HasFailure(); ++i) one.Step();
      one.CheckEnvelope();
      ASSERT_FALSE(HasFailure());
      made += one.decisions();
      admitted += one.admitted();
      refused += one.refused();
    }
    // Histories of one kind only would prove little.
    EXPECT_GT(admitted, made / 10);
    EXPECT_GT(refused, made / 10);
    RecordProperty("decisions", std::to_string(made));
  }
};

std::string AlgorithmName(const ::testing::TestParamInfo<Algorithm>& test) {
  return std::string(Name(test.param).data(), Name(test.param).size());
}

class Exact : public Replay {};
INSTANTIATE_TEST_SUITE_P(All, Exact, ::testing::ValuesIn(kAllAlgorithms), AlgorithmName);
class OneClock : public Replay {};
INSTANTIATE_TEST_SUITE_P(All, OneClock, ::testing::ValuesIn(kAllAlgorithms), AlgorithmName);
class SettledChange : public Replay {};
INSTANTIATE_TEST_SUITE_P(All, SettledChange, ::testing::ValuesIn(kAllAlgorithms), AlgorithmName);

// Also Envelope on every interval, Honest wait, Free refusal and Never: see History.
TEST_P(Exact, DecisionsAgreeWithTheReference) { Run(1'000'000, {}); }
TEST_P(OneClock, DecisionsAtLateReadingsAgreeWithTheReference) { Run(1'000'000, {.late_readings = true}); }
TEST_P(SettledChange, DecisionsUnderChangesAgreeWithTheReference) {
  Run(1'000'000, {.late_readings = true, .changes = true});
}

// --- Invariants of single steps --------------------------------------------------------------------------------------

// Lets some time go by; false when the last reading has been reached.
bool Pass(Random& random, const Parameters& parameters, std::int64_t& now_ns) {
  now_ns += RandomPause(random, parameters);
  return now_ns < kLastReadingNs;
}

class Invariant : public ::testing::TestWithParam<Algorithm> {};

class ExactSplit : public Invariant {};
INSTANTIATE_TEST_SUITE_P(All, ExactSplit, ::testing::ValuesIn(kAllAlgorithms), AlgorithmName);

// Any way of splitting the elapsed time gives the same state, and the same decisions after it.
TEST_P(ExactSplit, ElapsedTimeInOneStepOrInMany) {
  for (int history = 0; history < Times(20'000); ++history) {
    SCOPED_TRACE(Again(Seed(), history));
    Random random(Seed(), static_cast<std::uint64_t>(history));
    const Parameters parameters = RandomParameters(random, GetParam());
    std::int64_t now_ns = RandomStart(random);
    CoreBucket bucket(parameters, At(now_ns)), often(parameters, At(now_ns));
    for (std::int64_t i = 0, next_ns = now_ns; i < 100 && Pass(random, parameters, next_ns); ++i) {
      for (std::int64_t n = random.Between(0, 5); n > 0; --n) {
        now_ns = random.Between(now_ns, next_ns);
        often.Settle(At(now_ns));
      }
      now_ns = next_ns;
      ASSERT_TRUE(SameBytes(bucket.At(At(now_ns)), often.At(At(now_ns))) || GetParam() == Algorithm::kExactWindow);
      const std::int64_t cost = RandomCost(random, parameters);
      ASSERT_EQ(bucket.Ask(At(now_ns), cost), often.Ask(At(now_ns), cost));
    }
  }
}

class HonestWait : public Invariant {};
INSTANTIATE_TEST_SUITE_P(All, HonestWait, ::testing::ValuesIn(kAllAlgorithms), AlgorithmName);

// A nanosecond early fails and on time succeeds, for every cost that is refused now: not only for the one that asked.
TEST_P(HonestWait, ANanosecondEarlyFailsAndOnTimeSucceeds) {
  std::int64_t waits = 0;
  for (int history = 0; history < Times(10'000); ++history) {
    SCOPED_TRACE(Again(Seed(), history));
    Random random(Seed(), static_cast<std::uint64_t>(history));
    const Parameters parameters = RandomParameters(random, GetParam());
    std::int64_t now_ns = RandomStart(random);
    CoreBucket bucket(parameters, At(now_ns));
    for (int i = 0; i < 60 && Pass(random, parameters, now_ns); ++i) {
      bucket.Ask(At(now_ns), RandomCost(random, parameters));
      const BucketState state = bucket.At(At(now_ns));
      const Microtokens available = Available(parameters, At(now_ns), state);
      if (available >= parameters.capacity) continue;
      const Microtokens cost = random.OneIn(3) ? available + 1 : random.Between(available + 1, parameters.capacity);
      const std::int64_t wait_ns = WaitNs(parameters, At(now_ns), state, cost);
      ASSERT_GT(wait_ns, 0);
      ASSERT_LT(bucket.AvailableAt(At(now_ns + wait_ns - 1)), cost);
      ASSERT_GE(bucket.AvailableAt(At(now_ns + wait_ns)), cost);
      ++waits;
    }
  }
  EXPECT_GT(waits, Times(10'000) * 10);
}

class FreeRefusal : public Invariant {};
INSTANTIATE_TEST_SUITE_P(All, FreeRefusal, ::testing::ValuesIn(kAllAlgorithms), AlgorithmName);

// A storm of refused calls, Never among them, leaves every bit as it was; a twin in calm weather decides the same.
TEST_P(FreeRefusal, AStormOfRefusalsChangesNothing) {
  for (int history = 0; history < Times(5'000); ++history) {
    SCOPED_TRACE(Again(Seed(), history));
    Random random(Seed(), static_cast<std::uint64_t>(history));
    const Parameters parameters = RandomParameters(random, GetParam());
    std::int64_t now_ns = RandomStart(random);
    CoreBucket stormy(parameters, At(now_ns)), calm(parameters, At(now_ns));
    for (std::int64_t i = 0, next_ns = now_ns; i < 40 && Pass(random, parameters, next_ns); ++i) {
      const BucketState before = stormy.state();
      for (int n = 0; n < 10; ++n) {
        const std::int64_t at_ns = random.Between(now_ns, next_ns);
        const Microtokens available = stormy.AvailableAt(At(at_ns));
        const Decision decision = stormy.Ask(At(at_ns), available + random.Magnitude(1, kInt64Max - available));
        ASSERT_FALSE(decision.allowed);
        ASSERT_TRUE(SameBytes(stormy.state(), before));
      }
      now_ns = next_ns;
      const std::int64_t cost = RandomCost(random, parameters);
      ASSERT_EQ(stormy.Ask(At(now_ns), cost), calm.Ask(At(now_ns), cost));
    }
  }
}

class ForgetOnlyFull : public Invariant {};
INSTANTIATE_TEST_SUITE_P(All, ForgetOnlyFull, ::testing::ValuesIn(kAllAlgorithms), AlgorithmName);

// Full is when the whole capacity fits; a bucket that was forgotten whenever it was full decides as one that never was.
TEST_P(ForgetOnlyFull, AForgottenBucketDecidesAsOneThatWasKept) {
  std::int64_t forgotten = 0;
  for (int history = 0; history < Times(20'000); ++history) {
    SCOPED_TRACE(Again(Seed(), history));
    Random random(Seed(), static_cast<std::uint64_t>(history));
    const Parameters parameters = RandomParameters(random, GetParam());
    std::int64_t now_ns = RandomStart(random);
    CoreBucket kept(parameters, At(now_ns));
    auto fresh = std::make_unique<CoreBucket>(parameters, At(now_ns));
    for (int i = 0; i < 100 && Pass(random, parameters, now_ns); ++i) {
      const bool full = kept.FullAt(At(now_ns));
      ASSERT_EQ(full, kept.AvailableAt(At(now_ns)) == parameters.capacity);
      const bool may_forget = MayForget(parameters, At(now_ns), fresh->mutable_state());
      ASSERT_EQ(may_forget, full);  // No wall clock was set here.
      if (may_forget) {
        fresh = std::make_unique<CoreBucket>(parameters, At(now_ns));
        ++forgotten;
      }
      const std::int64_t cost = RandomCost(random, parameters);
      ASSERT_EQ(kept.Ask(At(now_ns), cost), fresh->Ask(At(now_ns), cost));
      ASSERT_EQ(kept.ResetAt(At(now_ns)), fresh->ResetAt(At(now_ns)));
    }
  }
  EXPECT_GT(forgotten, Times(20'000));
}

// gcra is the token bucket told as one point in time: decision for decision, wait for wait, under changes too.
TEST(Gcra, DecidesAsTheTokenBucket) {
  for (int history = 0; history < Times(10'000); ++history) {
    SCOPED_TRACE(Again(Seed(), history));
    Random random(Seed(), static_cast<std::uint64_t>(history));
    Parameters parameters = RandomParameters(random, Algorithm::kTokenBucket);
    Parameters twin = parameters;
    twin.algorithm = Algorithm::kGcra;
    std::int64_t now_ns = RandomStart(random);
    CoreBucket token_bucket(parameters, At(now_ns)), gcra(twin, At(now_ns));
    for (int i = 0; i < 400 && Pass(random, parameters, now_ns); ++i) {
      const std::int64_t reading_ns = random.OneIn(8) ? now_ns - random.Magnitude(1, kLastReadingNs) : now_ns;
      if (random.OneIn(30)) {
        parameters = twin = RandomParameters(random, Algorithm::kTokenBucket);
        twin.algorithm = Algorithm::kGcra;
        token_bucket.Change(parameters, At(reading_ns));
        gcra.Change(twin, At(reading_ns));
      }
      const std::int64_t cost = RandomCost(random, parameters);
      ASSERT_EQ(token_bucket.Ask(At(reading_ns), cost), gcra.Ask(At(reading_ns), cost));
      ASSERT_EQ(token_bucket.ResetAt(At(reading_ns)), gcra.ResetAt(At(reading_ns)));
    }
  }
}

class SettledChain : public Invariant {};
INSTANTIATE_TEST_SUITE_P(All, SettledChain, ::testing::ValuesIn(kAllAlgorithms), AlgorithmName);

// However many changes at one instant: what could be spent before is the most that can be spent after.
TEST_P(SettledChain, NoChainOfChangesAddsTokens) {
  for (int history = 0; history < Times(20'000); ++history) {
    SCOPED_TRACE(Again(Seed(), history));
    Random random(Seed(), static_cast<std::uint64_t>(history));
    Parameters parameters = RandomParameters(random, GetParam());
    const std::int64_t now_ns = RandomStart(random);
    CoreBucket bucket(parameters, At(now_ns));
    bucket.Ask(At(now_ns), random.Between(1, parameters.capacity));
    const std::int64_t later_ns = now_ns + random.Between(0, 1000);
    Microtokens most = std::max<Microtokens>(0, bucket.AvailableAt(At(later_ns)));
    for (std::int64_t n = random.Between(1, 12); n > 0; --n) {
      parameters = RandomParameters(random, random.OneIn(2) ? GetParam() : kAllAlgorithms[random.Between(0, 4)]);
      bucket.Change(parameters, At(later_ns));
      const Microtokens now = std::max<Microtokens>(0, bucket.AvailableAt(At(later_ns)));
      ASSERT_LE(now, std::min(most, parameters.capacity));
      most = now;
    }
  }
}

}  // namespace
}  // namespace ebbgate::testing

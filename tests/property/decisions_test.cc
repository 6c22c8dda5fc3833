// Random decisions of the core, each held against the exact reference. Every test is named after the invariant it
// checks, and runs for every algorithm.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace ebbgate::testing

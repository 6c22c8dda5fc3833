// The checkers themselves: what takes one pass agrees with trying every interval, on histories that keep the promise
// and on those that just break it.
#include "tests/property/envelope.h"

#include <gtest/gtest.h>

#include "tests/property/concurrent_envelope.h"
#include "tests/property/random.h"

namespace ebbgate::testing {
namespace {

TEST(EnvelopeChecker, OnePassAgreesWithTryingEveryInterval) {
  int kept = 0, broken = 0;
  for (int history = 0; history < Times(20'000); ++history) {
    SCOPED_TRACE(Again(Seed(), history));
    Random random(Seed(), static_cast<std::uint64_t>(history));
    std::vector<BucketEvent> events;
    std::int64_t now_ns = random.Between(-100, 100);
    const auto change = [&] {
      events.push_back({now_ns, 0, random.Between(3, 30), {random.Between(1, 9), random.Between(1, 9)}});
    };
    change();
    for (std::int64_t i = random.Between(1, 25); i > 0; --i) {
      now_ns += random.Pick<std::int64_t>({0, 1, 2, 5, 11, 40});
      if (random.OneIn(8)) change();
      events.push_back({now_ns, random.Between(1, 12)});
    }
    const bool keeps = KeepsEnvelopeByForce(events);
    ++(keeps ? kept : broken);
    ASSERT_EQ(KeepsEnvelope(events), keeps);
  }
  EXPECT_GT(kept, 100);
  EXPECT_GT(broken, 100);
}

TEST(EnvelopeChecker, KnowsTheEdge) {
  // b = 4, r = 2 in 10 ns: 4 at 0, then one at 5 ns and not at 4.
  const BucketEvent start = {0, 0, 4, {2, 10}};
  EXPECT_TRUE(KeepsEnvelope({start, {0, 4}, {5, 1}}));
  EXPECT_FALSE(KeepsEnvelope({start, {0, 4}, {4, 1}}));
  // An interval that does not begin at the start: 2 at 0, 4 at 7 (half the bucket idle is not on top of a full one).
  EXPECT_FALSE(KeepsEnvelope({start, {0, 2}, {100, 5}}));
  // A raised capacity holds for what begins after it; it adds nothing to what began before.
  EXPECT_TRUE(KeepsEnvelope({start, {0, 4}, {0, 0, 100, {2, 10}}, {5, 1}}));
  EXPECT_FALSE(KeepsEnvelope({start, {0, 4}, {0, 0, 100, {2, 10}}, {5, 2}}));
}

TEST(EnvelopeChecker, TheLargestCapacityOfAnIntervalCounts) {
  const BucketEvent start = {0, 0, 4, {2, 10}};
  EXPECT_TRUE(KeepsEnvelopeOfLargest({start, {0, 4}, {0, 0, 6, {2, 10}}, {5, 3}}));
  EXPECT_FALSE(KeepsEnvelopeOfLargest({start, {0, 4}, {0, 0, 6, {2, 10}}, {5, 4}}));
  EXPECT_FALSE(KeepsEnvelopeOfLargest({start, {0, 4}, {0, 0, 1, {2, 10}}, {0, 0, 4, {1, 10}}, {10, 2}}));
}

TEST(EnvelopeChecker, SpellsAgreeWithTryingEveryInterval) {
  int kept = 0, broken = 0;
  for (int history = 0; history < Times(5'000); ++history) {
    SCOPED_TRACE(Again(Seed(), history));
    Random random(Seed(), static_cast<std::uint64_t>(history));
    std::vector<Spell> spells;
    for (std::int64_t i = random.Between(1, 20); i > 0; --i) {
      const std::int64_t before_ns = random.Between(-50, 100);
      spells.push_back({before_ns, before_ns + random.Between(0, 20), random.Between(1, 9)});
    }
    const std::int64_t capacity = random.Between(9, 50);
    const Rate refill = {random.Between(1, 9), random.Between(1, 9)};
    const bool keeps = KeepsEnvelopeByForce(spells, capacity, refill);
    ++(keeps ? kept : broken);
    ASSERT_EQ(KeepsEnvelope(spells, capacity, refill), keeps);
  }
  EXPECT_GT(kept, 100);
  EXPECT_GT(broken, 100);
}

TEST(WindowCheckers, OnePassAgreesWithTryingEveryInterval) {
  int kept = 0, broken = 0;
  for (int history = 0; history < Times(20'000); ++history) {
    SCOPED_TRACE(Again(Seed(), history));
    Random random(Seed(), static_cast<std::uint64_t>(history));
    const std::int64_t window_ns = random.Between(1, 20);
    const std::int64_t count = random.Between(3, 20);
    std::vector<Admission> admissions;
    std::int64_t now_ns = random.Between(-100, 100);
    for (std::int64_t i = random.Between(1, 25); i > 0; --i) {
      now_ns += random.Pick<std::int64_t>({0, 1, 2, 5, window_ns - 1, window_ns});
      admissions.push_back({now_ns, random.Between(1, 5)});
    }
    const bool keeps = KeepsExactWindowByForce(admissions, count, window_ns);
    ++(keeps ? kept : broken);
    ASSERT_EQ(KeepsExactWindow(admissions, count, window_ns), keeps);
    ASSERT_TRUE(!keeps || KeepsEachWindow(admissions, count, window_ns));
  }
  EXPECT_GT(kept, 100);
  EXPECT_GT(broken, 100);
}

TEST(WindowCheckers, KnowTheEdge) {
  EXPECT_TRUE(KeepsExactWindow({{0, 2}, {10, 1}}, 2, 10));
  EXPECT_FALSE(KeepsExactWindow({{0, 2}, {9, 1}}, 2, 10));
  EXPECT_TRUE(KeepsEachWindow({{9, 2}, {10, 2}}, 2, 10));
  EXPECT_FALSE(KeepsEachWindow({{-1, 2}, {-10, 1}}, 2, 10));
}

}  // namespace
}  // namespace ebbgate::testing

#include "client/replay/envelope.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace ebbgate::replay {
namespace {

Parameters Bucket(std::int64_t capacity, std::int64_t tokens, std::int64_t per_ns) {
  Parameters parameters;
  parameters.capacity = FromTokens(capacity);
  parameters.refill = {FromTokens(tokens), per_ns};
  return parameters;
}

TEST(EnvelopeTest, ExactlyTheBoundIsKept) {
  EnvelopeCheck check(Bucket(4, 2, kNsPerSecond), 0);
  EXPECT_FALSE(check.Admit(0, FromTokens(4)).has_value());
  EXPECT_FALSE(check.Admit(kNsPerSecond / 2, FromTokens(1)).has_value());
  const auto violation = check.Admit(kNsPerSecond / 2, 1);
  ASSERT_TRUE(violation.has_value());
  EXPECT_EQ(violation->from_ns, 0);
  EXPECT_EQ(violation->to_ns, kNsPerSecond / 2);
  EXPECT_TRUE(violation->admitted == FromTokens(5) + 1);
  EXPECT_TRUE(violation->bound == FromTokens(5));
}

TEST(EnvelopeTest, IntervalsNeedNotBeginAtZero) {
  EnvelopeCheck check(Bucket(10, 10, 10 * kNsPerSecond), 0);
  EXPECT_FALSE(check.Admit(0, FromTokens(1)).has_value());
  EXPECT_FALSE(check.Admit(8 * kNsPerSecond, FromTokens(10)).has_value());
  // A bucket that credits its idle time on top of full would admit this; from 0 on it is within the bound.
  EXPECT_TRUE(check.Admit(8 * kNsPerSecond, FromTokens(1)).has_value());
}

TEST(EnvelopeTest, TimeBeforeTheFirstAdmissionCountsForNothing) {
  EnvelopeCheck check(Bucket(1, 1, kNsPerSecond), 0);
  EXPECT_TRUE(check.Admit(100 * kNsPerSecond, FromTokens(2)).has_value());
}

TEST(EnvelopeTest, AFractionIsEnough) {
  // 1/3 microtoken short: 1 token each 3 s, asked 1 ns early.
  EnvelopeCheck check(Bucket(1, 1, 3 * kNsPerSecond), 0);
  EXPECT_FALSE(check.Admit(0, FromTokens(1)).has_value());
  EXPECT_TRUE(check.Admit(3 * kNsPerSecond - 1, FromTokens(1)).has_value());
}

TEST(EnvelopeTest, ALateTimeCountsAsTheLast) {
  EnvelopeCheck check(Bucket(1, 1, kNsPerSecond), 0);
  EXPECT_FALSE(check.Admit(5 * kNsPerSecond, FromTokens(1)).has_value());
  EXPECT_TRUE(check.Admit(kNsPerSecond, FromTokens(1)).has_value());
}

TEST(EnvelopeTest, AChangeOfRateIsPaidAtTheRateOfItsDay) {
  EnvelopeCheck check(Bucket(1000, 1, kNsPerSecond), 0);
  EXPECT_FALSE(check.Admit(0, FromTokens(1000)).has_value());
  check.Change(Bucket(1000, 1000, kNsPerSecond), 100 * kNsPerSecond);
  EXPECT_FALSE(check.Admit(100 * kNsPerSecond, FromTokens(100)).has_value());
  EXPECT_TRUE(check.Admit(100 * kNsPerSecond, FromTokens(1)).has_value());
}

TEST(EnvelopeTest, ALowerCapacityBindsFromItsDayOn) {
  EnvelopeCheck check(Bucket(10, 1, kNsPerSecond), 0);
  check.Change(Bucket(3, 1, kNsPerSecond), kNsPerSecond);
  EXPECT_FALSE(check.Admit(kNsPerSecond, FromTokens(3)).has_value());
  EXPECT_TRUE(check.Admit(kNsPerSecond, FromTokens(1)).has_value());
}

TEST(EnvelopeTest, TheLargestAmountsDoNotWrap) {
  EnvelopeCheck check(Bucket(9'000'000'000'000, 1'000'000'000, kNsPerSecond), 0);
  const std::int64_t century = 100LL * 366 * 24 * 3600 * kNsPerSecond;
  for (std::int64_t i = 0; i < 2; ++i) {
    EXPECT_FALSE(check.Admit(i * century, FromTokens(9'000'000'000'000)).has_value());
  }
  EXPECT_TRUE(check.Admit(century, 1).has_value());
}

// All pairs, as the definition says.
bool Breaks(const Parameters& parameters, const std::vector<std::pair<std::int64_t, Microtokens>>& admitted) {
  for (std::size_t i = 0; i < admitted.size(); ++i) {
    Int128 sum = 0;
    for (std::size_t j = i; j < admitted.size(); ++j) {
      sum += admitted[j].second;
      const Int128 elapsed_ns = admitted[j].first - admitted[i].first;
      if ((sum - parameters.capacity) * parameters.refill.per_ns > elapsed_ns * parameters.refill.tokens) return true;
    }
  }
  return false;
}

TEST(EnvelopeTest, AgreesWithAllPairsOnRandomHistories) {
  std::mt19937_64 random(7);
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  int broken = 0;
  for (int round = 0; round < 2000; ++round) {
    const Parameters parameters = Bucket(1 + below(5), 1 + below(7), 1 + below(50));
    EnvelopeCheck check(parameters, 0);
    std::vector<std::pair<std::int64_t, Microtokens>> admitted;
    std::int64_t now = 0;
    for (int i = 0; i < 30; ++i) {
      now += below(3) == 0 ? below(60) : below(4);
      admitted.emplace_back(now, 1 + below(2'000'000));
      const bool breaks = check.Admit(admitted.back().first, admitted.back().second).has_value();
      ASSERT_EQ(breaks, Breaks(parameters, admitted)) << round;
      if (breaks) {
        ++broken;
        break;
      }
    }
  }
  EXPECT_GT(broken, 200);
  EXPECT_LT(broken, 2000);
}

}  // namespace
}  // namespace ebbgate::replay

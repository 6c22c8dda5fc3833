// token_bucket and gcra make the same decisions, so they pass the same tests.
#include <gtest/gtest.h>

#include <limits>

#include "server/limiter/bounds.h"
#include "tests/support/core_bucket.h"

namespace ebbgate::testing {
namespace {

constexpr std::int64_t kMs = 1'000'000;

class Bucket : public ::testing::TestWithParam<Algorithm> {
 protected:
  Parameters Of(std::int64_t capacity, std::int64_t tokens, std::int64_t per_ns) const {
    Parameters parameters = TokenBucket(capacity, tokens, per_ns);
    parameters.algorithm = GetParam();
    return parameters;
  }
};

INSTANTIATE_TEST_SUITE_P(Both, Bucket, ::testing::Values(Algorithm::kTokenBucket, Algorithm::kGcra),
                         [](const auto& algorithm) {
                           return algorithm.param == Algorithm::kGcra ? "gcra" : "token_bucket";
                         });

TEST_P(Bucket, BoundaryTrace) {
  // b = 4, r = 2/s: five at 0, one at 0.25 s, one at 0.5 s.
  CoreBucket bucket(Of(4, 2, kSecond), At(0));
  for (int left = 3; left >= 0; --left) {
    const Decision decision = bucket.AskTokens(At(0), 1);
    EXPECT_TRUE(decision.allowed);
    EXPECT_EQ(WholeTokens(decision.available), left);
    EXPECT_EQ(bucket.ResetAt(At(0)), (4 - left) * kSecond / 2);
  }
  EXPECT_EQ(bucket.AskTokens(At(0), 1).wait_ns, 500 * kMs);
  EXPECT_EQ(bucket.AskTokens(At(250 * kMs), 1).wait_ns, 250 * kMs);
  EXPECT_TRUE(bucket.AskTokens(At(500 * kMs), 1).allowed);
}

TEST_P(Bucket, TenBeforeAndTenAfterASecondNeverMakeTwenty) {
  CoreBucket bucket(Of(10, 10, kSecond), At(0));
  EXPECT_EQ(bucket.Admitted(At(990 * kMs), 10), 10);
  EXPECT_EQ(bucket.Admitted(At(1010 * kMs), 10), 0);
  EXPECT_EQ(bucket.AskTokens(At(1010 * kMs), 1).wait_ns, 80 * kMs);
}

TEST_P(Bucket, IdleTimeIsNotCreditedOnTopOfAFullBucket) {
  CoreBucket bucket(Of(10, 1, kSecond), At(0));
  EXPECT_TRUE(bucket.AskTokens(At(0), 1).allowed);
  EXPECT_EQ(bucket.Admitted(At(8 * kSecond), 20), 10);
  EXPECT_EQ(bucket.AskTokens(At(8 * kSecond), 1).wait_ns, kSecond);
}

TEST_P(Bucket, AFractionSurvivesPolling) {
  CoreBucket bucket(Of(1, 10, kSecond), At(0));
  int admitted = 0;
  for (int i = 0; i <= 10'000; ++i) admitted += bucket.AskTokens(At(i * kMs), 1).allowed ? 1 : 0;
  EXPECT_EQ(admitted, 101);
}

TEST_P(Bucket, AnIndivisibleRateKeepsEveryBit) {
  CoreBucket bucket(Of(7, 7, 3 * kSecond), At(0));
  int admitted = 0;
  for (std::int64_t i = 0; i < 100'000; ++i) admitted += bucket.AskTokens(At(i * 77'777), 1).allowed ? 1 : 0;
  EXPECT_EQ(admitted, 25);
  const Moment end = At(100'000LL * 77'777);
  EXPECT_EQ(bucket.AskTokens(end, 7).wait_ns, 2'936'585'715);
}

TEST_P(Bucket, WeightedCostsAndTheirWaits) {
  CoreBucket bucket(Of(5, 1, kSecond), At(0));
  EXPECT_TRUE(bucket.AskTokens(At(0), 3).allowed);
  EXPECT_EQ(bucket.AskTokens(At(0), 3).wait_ns, kSecond);
  EXPECT_TRUE(bucket.AskTokens(At(0), 2).allowed);
  EXPECT_EQ(bucket.AskTokens(At(kSecond), 5).wait_ns, 4 * kSecond);
  EXPECT_TRUE(bucket.AskTokens(At(5 * kSecond), 5).allowed);
}

TEST_P(Bucket, ACostAboveCapacityNeverFitsAndTakesNothing) {
  CoreBucket bucket(Of(5, 1, kSecond), At(0));
  const Decision decision = bucket.AskTokens(At(0), 6);
  EXPECT_TRUE(decision.never);
  EXPECT_EQ(decision.wait_ns, -1);
  EXPECT_TRUE(bucket.FullAt(At(0)));
  EXPECT_TRUE(bucket.AskTokens(At(0), 5).allowed);
}

TEST_P(Bucket, AReadingBehindTheLastCountsAsTheLast) {
  CoreBucket bucket(Of(5, 5, kSecond), At(kSecond));
  EXPECT_EQ(bucket.Admitted(At(kSecond), 5), 5);
  EXPECT_EQ(bucket.AskTokens(At(600 * kMs), 1).wait_ns, 200 * kMs);
  EXPECT_EQ(bucket.AskTokens(At(std::numeric_limits<std::int64_t>::min()), 1).wait_ns, 200 * kMs);
  EXPECT_EQ(bucket.AskTokens(At(kSecond), 1).wait_ns, 200 * kMs);
  EXPECT_TRUE(bucket.AskTokens(At(1200 * kMs), 1).allowed);
  EXPECT_EQ(bucket.AskTokens(At(800 * kMs), 1).wait_ns, 200 * kMs);
  EXPECT_EQ(bucket.state().last_ns, 1200 * kMs);
}

TEST_P(Bucket, AHugePauseFillsOnce) {
  CoreBucket bucket(Of(3, 1, kSecond), At(0));
  EXPECT_EQ(bucket.Admitted(At(0), 4), 3);
  EXPECT_EQ(bucket.Admitted(At(366 * 24 * kHour), 10), 3);
  // More elapsed time at once than 64 bits hold.
  CoreBucket old(Of(3, 1, kSecond), At(std::numeric_limits<std::int64_t>::min()));
  EXPECT_EQ(old.Admitted(At(std::numeric_limits<std::int64_t>::min()), 4), 3);
  EXPECT_EQ(old.Admitted(At(std::int64_t{1} << 62), 10), 3);
}

TEST_P(Bucket, ABillionASecondStillLimits) {
  CoreBucket bucket(Of(1000, kMaxTokensPerSecond, kSecond), At(0));
  EXPECT_TRUE(bucket.AskTokens(At(0), 1000).allowed);
  EXPECT_EQ(bucket.AskTokens(At(0), 1).wait_ns, 1);
  EXPECT_TRUE(bucket.AskTokens(At(100), 100).allowed);
  EXPECT_EQ(bucket.AskTokens(At(100), 1).wait_ns, 1);
}

TEST_P(Bucket, TheLargestBucketAtTheFastestRate) {
  CoreBucket bucket(Of(kMaxCapacityTokens, kMaxTokensPerSecond, kSecond), At(0));
  EXPECT_TRUE(bucket.AskTokens(At(0), kMaxCapacityTokens).allowed);
  EXPECT_EQ(bucket.AskTokens(At(0), 1).wait_ns, 1);
  EXPECT_EQ(bucket.AskTokens(At(0), kMaxCapacityTokens).wait_ns, 9000 * kSecond);
  EXPECT_EQ(bucket.AvailableAt(At(9000 * kSecond - 1)), FromTokens(kMaxCapacityTokens) - 1'000'000);
  EXPECT_TRUE(bucket.FullAt(At(9000 * kSecond)));
}

TEST_P(Bucket, TheLargestBucketAtItsSlowestRate) {
  // Full after just 100 years, by a period so long that products come near 2^127.
  const std::int64_t tokens = 9'000'000'000'000;
  CoreBucket bucket(Of(kMaxCapacityTokens, tokens, kMaxTimeToFullNs), At(-kMaxTimeToFullNs));
  ASSERT_TRUE(Validate(bucket.parameters()).ok());
  EXPECT_TRUE(bucket.AskTokens(At(-kMaxTimeToFullNs), kMaxCapacityTokens).allowed);
  EXPECT_EQ(bucket.ResetAt(At(-kMaxTimeToFullNs)), kMaxTimeToFullNs);
  EXPECT_EQ(bucket.AskTokens(At(-kMaxTimeToFullNs), 1).wait_ns, 351'360);
  EXPECT_FALSE(bucket.FullAt(At(-1)));
  EXPECT_TRUE(bucket.FullAt(At(0)));
}

TEST_P(Bucket, TheCoarsestGrain) {
  // kMaxCostTokens a period of as many nanoseconds: one token a nanosecond, with a remainder of 63 bits.
  CoreBucket bucket(Of(kMaxCapacityTokens, kMaxCostTokens, kMaxCostTokens), At(0));
  EXPECT_TRUE(bucket.AskTokens(At(0), kMaxCapacityTokens).allowed);
  EXPECT_EQ(bucket.ResetAt(At(0)), kMaxCapacityTokens);
  EXPECT_EQ(bucket.AvailableAt(At(12'345)), FromTokens(12'345));
  EXPECT_TRUE(bucket.FullAt(At(kMaxCapacityTokens)));
}

TEST_P(Bucket, OneAYear) {
  CoreBucket bucket(Of(1, 1, kSlowestTokenNs), At(0));
  EXPECT_TRUE(bucket.AskTokens(At(0), 1).allowed);
  for (int day = 1; day < 366; ++day) {
    const Decision decision = bucket.AskTokens(At(day * 24 * kHour), 1);
    EXPECT_EQ(decision.wait_ns, (366 - day) * 24 * kHour);
  }
  EXPECT_FALSE(bucket.AskTokens(At(kSlowestTokenNs - 1), 1).allowed);
  EXPECT_TRUE(bucket.AskTokens(At(kSlowestTokenNs), 1).allowed);
}

TEST_P(Bucket, WaitsAreExactBeyond64BitsOfWhatIsOwed) {
  constexpr std::int64_t kHour = 3600 * kSecond;
  for (const std::int64_t tokens : {1, 7, 1000}) {
    const std::int64_t full_at_ns = (1000 * kHour + tokens - 1) / tokens;
    CoreBucket bucket(Of(1000, tokens, kHour), At(0));
    EXPECT_TRUE(bucket.AskTokens(At(0), 1000).allowed);
    for (const std::int64_t now_ns : {0L, 1L, 2L, 999'999'999L, 1234 * kMs + 567}) {
      EXPECT_EQ(bucket.ResetAt(At(now_ns)), full_at_ns - now_ns) << tokens << " an hour, after " << now_ns;
      EXPECT_EQ(bucket.AskTokens(At(now_ns), 1000).wait_ns, full_at_ns - now_ns);
    }
  }
}

TEST_P(Bucket, DebtIsWorkedOffAtTheRate) {
  // What a settled reservation may leave behind: 5 tokens in, 12 taken.
  CoreBucket bucket(Of(5, 1, kSecond), At(0));
  Charge(bucket.parameters(), bucket.mutable_state(), FromTokens(12));
  EXPECT_EQ(bucket.AvailableAt(At(0)), -FromTokens(7));
  EXPECT_EQ(bucket.AskTokens(At(0), 1).wait_ns, 8 * kSecond);
  EXPECT_EQ(bucket.AskTokens(At(0), 0).allowed, true);
  EXPECT_EQ(bucket.AvailableAt(At(2 * kSecond)), -FromTokens(5));
  EXPECT_EQ(bucket.AvailableAt(At(6999 * kMs)), -FromTokens(1) / 1000);
  EXPECT_EQ(bucket.AvailableAt(At(7 * kSecond)), 0);
  EXPECT_FALSE(bucket.FullAt(At(12 * kSecond - 1)));
  EXPECT_TRUE(bucket.FullAt(At(12 * kSecond)));
}

TEST_P(Bucket, DebtRoundsDownToo) {
  // A third of a token a second: after 1 ns the level is 1/3000 of a microtoken above -7 tokens: still -7.
  CoreBucket bucket(Of(5, 1, 3 * kSecond), At(0));
  Charge(bucket.parameters(), bucket.mutable_state(), FromTokens(12));
  EXPECT_EQ(bucket.AvailableAt(At(1)), -FromTokens(7));
  EXPECT_EQ(bucket.AvailableAt(At(2999)), -FromTokens(7));
  EXPECT_EQ(bucket.AvailableAt(At(3000)), -FromTokens(7) + 1);
}

TEST_P(Bucket, TheDeepestDebtOfTheLargestBucket) {
  // A whole capacity below zero is the most that signed 64 bits hold.
  CoreBucket bucket(Of(kMaxCapacityTokens, kMaxCapacityTokens, kMaxTimeToFullNs), At(0));
  Charge(bucket.parameters(), bucket.mutable_state(), FromTokens(kMaxCapacityTokens));
  Charge(bucket.parameters(), bucket.mutable_state(), FromTokens(kMaxCapacityTokens));
  EXPECT_EQ(bucket.AvailableAt(At(0)), -FromTokens(kMaxCapacityTokens));
  EXPECT_EQ(bucket.ResetAt(At(0)), 2 * kMaxTimeToFullNs);
  EXPECT_EQ(bucket.AvailableAt(At(kMaxTimeToFullNs)), 0);
  EXPECT_EQ(bucket.ResetAt(At(kMaxTimeToFullNs)), kMaxTimeToFullNs);
}

TEST_P(Bucket, WaitIsZeroForWhatFits) {
  CoreBucket bucket(Of(5, 1, kSecond), At(0));
  const BucketState state = bucket.At(At(0));
  EXPECT_EQ(WaitNs(bucket.parameters(), At(0), state, 0), 0);
  EXPECT_EQ(WaitNs(bucket.parameters(), At(0), state, FromTokens(5)), 0);
}

}  // namespace
}  // namespace ebbgate::testing

#include "server/limiter/sliding_window.h"

#include <gtest/gtest.h>

#include <limits>

#include "server/limiter/bounds.h"
#include "tests/support/core_bucket.h"

namespace ebbgate::testing {
namespace {

constexpr std::int64_t kMinute = 60 * kSecond;

Parameters Sliding(std::int64_t count, std::int64_t length_ns) {
  return WindowOf(Algorithm::kSlidingWindow, count, length_ns);
}

TEST(SlidingWindow, LateInOneMinuteAndEarlyInTheNext) {
  CoreBucket bucket(Sliding(600, kMinute), At(0));
  EXPECT_EQ(bucket.Admitted(At(55 * kSecond), 550), 550);
  // 550 * 55/60 = 504.17 still weigh: 95.83 fit.
  EXPECT_EQ(bucket.Admitted(At(65 * kSecond), 550), 95);
}

TEST(SlidingWindow, ThePreviousMinuteIsFoundAcrossAnyChangeOfTheWall) {
  // The windows follow epoch_offset_ns; what the wall does meanwhile is nothing to them.
  Moment moment = At(59 * kSecond);
  CoreBucket bucket(Sliding(600, kMinute), moment);
  EXPECT_EQ(bucket.Admitted(moment, 600), 600);
  moment.mono_ns = 60 * kSecond;
  moment.wall.offset_ns = -kHour;
  moment.wall.stepped_back_at_ns = 60 * kSecond;
  EXPECT_EQ(bucket.Admitted(moment, 100), 0);
  moment.mono_ns = 75 * kSecond;
  moment.wall.offset_ns = 10 * 366 * 24 * kHour;
  EXPECT_EQ(bucket.Admitted(moment, 600), 150);
}

TEST(SlidingWindow, TheTrueWorstCaseIsNearlyTwiceTheCount) {
  CoreBucket bucket(Sliding(100, 100 * kSecond), At(0));
  int admitted = bucket.Admitted(At(100 * kSecond - 1), 200);
  for (int second = 100; second < 200; ++second) admitted += bucket.Admitted(At(second * kSecond), 200);
  EXPECT_EQ(admitted, 100 + 99);
}

TEST(SlidingWindow, WaitsWithinTheWindowAndBeyondIt) {
  CoreBucket bucket(Sliding(10, 10 * kSecond), At(0));
  EXPECT_TRUE(bucket.AskTokens(At(9 * kSecond), 10).allowed);
  // The 10 become the previous window's; one has decayed after a second of the next.
  EXPECT_EQ(bucket.AskTokens(At(9 * kSecond), 1).wait_ns, 2 * kSecond);
  EXPECT_EQ(bucket.AskTokens(At(9 * kSecond), 10).wait_ns, 11 * kSecond);
  EXPECT_FALSE(bucket.AskTokens(At(11 * kSecond - 1), 1).allowed);
  EXPECT_TRUE(bucket.AskTokens(At(11 * kSecond), 1).allowed);
  // current 1, previous 10 of which 9 weigh: 3 fit when no more than 6 weigh.
  EXPECT_EQ(bucket.AskTokens(At(11 * kSecond), 3).wait_ns, 3 * kSecond);
  // All 10: when the 1 of now has decayed whole, at the end of the next window.
  EXPECT_EQ(bucket.AskTokens(At(11 * kSecond), 10).wait_ns, 19 * kSecond);
}

TEST(SlidingWindow, ResetIsWhenNothingWeighsAnyMore) {
  CoreBucket bucket(Sliding(10, 10 * kSecond), At(0));
  EXPECT_EQ(bucket.ResetAt(At(3 * kSecond)), 0);
  EXPECT_TRUE(bucket.AskTokens(At(3 * kSecond), 1).allowed);
  EXPECT_EQ(bucket.ResetAt(At(3 * kSecond)), 17 * kSecond);
  EXPECT_EQ(bucket.ResetAt(At(12 * kSecond)), 8 * kSecond);
  EXPECT_FALSE(bucket.FullAt(At(20 * kSecond - 1)));
  EXPECT_LT(bucket.AvailableAt(At(20 * kSecond - 1)), FromTokens(10));
  EXPECT_TRUE(bucket.FullAt(At(20 * kSecond)));
}

TEST(SlidingWindow, TheLargestCountOverTheLongestWindow) {
  CoreBucket bucket(Sliding(kMaxCapacityTokens, kMaxWindowNs), At(0));
  EXPECT_TRUE(bucket.AskTokens(At(0), kMaxCapacityTokens).allowed);
  EXPECT_EQ(bucket.ResetAt(At(0)), 2 * kMaxWindowNs);
  EXPECT_EQ(bucket.AskTokens(At(0), kMaxCapacityTokens).wait_ns, 2 * kMaxWindowNs);
  const std::int64_t wait = bucket.AskTokens(At(0), 1).wait_ns;
  EXPECT_FALSE(bucket.AskTokens(At(wait - 1), 1).allowed);
  EXPECT_TRUE(bucket.AskTokens(At(wait), 1).allowed);
}

TEST(SlidingWindow, WindowsOfANanosecond) {
  CoreBucket bucket(Sliding(2, 1), At(0));
  EXPECT_EQ(bucket.Admitted(At(0), 5), 2);
  EXPECT_EQ(bucket.Admitted(At(1), 5), 0);
  EXPECT_EQ(bucket.Admitted(At(2), 5), 2);
}

TEST(SlidingWindow, BeforeTheEpochWindowsRoundDown) {
  CoreBucket bucket(Sliding(4, 10), At(-1));
  EXPECT_EQ(bucket.Admitted(At(-1), 9), 4);
  EXPECT_EQ(bucket.Admitted(At(0), 9), 0);
  EXPECT_EQ(bucket.Admitted(At(5), 9), 2);
}

TEST(SlidingWindow, AReadingBehindTheLastCountsAsTheLast) {
  CoreBucket bucket(Sliding(4, 10 * kSecond), At(0));
  EXPECT_EQ(bucket.Admitted(At(12 * kSecond), 9), 4);
  EXPECT_EQ(bucket.Admitted(At(8 * kSecond), 9), 0);
  EXPECT_EQ(bucket.AskTokens(At(8 * kSecond), 1).wait_ns, 10'500'000'000);
}

TEST(SlidingWindow, ClocksAtTheEndsOfTheirRangeStillLimit) {
  const std::int64_t first = std::numeric_limits<std::int64_t>::min();
  CoreBucket late(Sliding(4, kSecond), At(kInt64Max, kInt64Max));
  EXPECT_EQ(late.Admitted(At(kInt64Max, kInt64Max), 9), 4);
  EXPECT_EQ(late.Admitted(At(kInt64Max, kInt64Max), 9), 0);
  CoreBucket early(Sliding(4, kSecond), At(-kSecond, first));
  EXPECT_EQ(early.Admitted(At(-kSecond, first), 9), 4);
  EXPECT_EQ(early.Admitted(At(0, first), 9), 0);
}

}  // namespace
}  // namespace ebbgate::testing

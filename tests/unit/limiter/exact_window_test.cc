#include "server/limiter/exact_window.h"

#include <gtest/gtest.h>

#include "server/limiter/bounds.h"
#include "tests/support/core_bucket.h"

namespace ebbgate::testing {
namespace {

Parameters Exactly(std::int64_t count, std::int64_t length_ns) {
  return WindowOf(Algorithm::kExactWindow, count, length_ns);
}

TEST(ExactWindow, NeverMoreThan3InAny10Seconds) {
  CoreBucket bucket(Exactly(3, 10 * kSecond), At(0));
  EXPECT_TRUE(bucket.AskTokens(At(0), 1).allowed);
  EXPECT_EQ(bucket.ResetAt(At(0)), 10 * kSecond);
  EXPECT_TRUE(bucket.AskTokens(At(4 * kSecond), 2).allowed);
  EXPECT_EQ(bucket.AskTokens(At(5 * kSecond), 1).wait_ns, 5 * kSecond);
  EXPECT_EQ(bucket.ResetAt(At(5 * kSecond)), 9 * kSecond);
  EXPECT_EQ(bucket.AskTokens(At(10 * kSecond - 1), 1).wait_ns, 1);
  EXPECT_TRUE(bucket.AskTokens(At(10 * kSecond), 1).allowed);
  EXPECT_EQ(bucket.AskTokens(At(10 * kSecond), 1).wait_ns, 4 * kSecond);
  EXPECT_EQ(bucket.AskTokens(At(14 * kSecond), 3).wait_ns, 6 * kSecond);
  EXPECT_TRUE(bucket.AskTokens(At(14 * kSecond), 2).allowed);
}

TEST(ExactWindow, AReadingBehindTheLastCountsAsTheLast) {
  CoreBucket bucket(Exactly(2, 10 * kSecond), At(0));
  EXPECT_TRUE(bucket.AskTokens(At(20 * kSecond), 1).allowed);
  EXPECT_TRUE(bucket.AskTokens(At(5 * kSecond), 1).allowed);
  EXPECT_EQ(bucket.AskTokens(At(25 * kSecond), 1).wait_ns, 5 * kSecond);
  EXPECT_EQ(bucket.ResetAt(At(25 * kSecond)), 5 * kSecond);
}

TEST(ExactWindow, ARefusalLeavesTheLogAlone) {
  CoreBucket bucket(Exactly(3, 10 * kSecond), At(0));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bucket.AskTokens(At(i * kSecond), 1).allowed);
  const BucketState before = bucket.state();
  const std::size_t bytes = HeapBytes(bucket.parameters(), bucket.state());
  EXPECT_FALSE(bucket.AskTokens(At(11 * kSecond), 3).allowed);
  EXPECT_TRUE(SameBytes(bucket.state(), before));
  EXPECT_EQ(bucket.state().exact_window.log->size(), 3);
  EXPECT_EQ(HeapBytes(bucket.parameters(), bucket.state()), bytes);
}

TEST(ExactWindow, MemoryIsToldBeforeItIsTaken) {
  const Parameters parameters = Exactly(kMaxExactWindowCount, kHour);
  CoreBucket bucket(parameters, At(0));
  EXPECT_EQ(HeapBytes(parameters, bucket.state()), 0u);
  for (std::int64_t i = 0; i < kMaxExactWindowCount; ++i) {
    const Moment moment = At(i * 100);
    const std::size_t before = HeapBytes(parameters, bucket.state());
    const std::size_t growth = GrowthBytes(parameters, bucket.At(moment));
    ASSERT_TRUE(bucket.AskTokens(moment, 1).allowed);
    ASSERT_LE(HeapBytes(parameters, bucket.state()), before + growth) << i;
  }
  // 16 bytes an admission; the ring doubles, so at most twice that.
  EXPECT_LE(HeapBytes(parameters, bucket.state()), 64u + 2 * 16 * kMaxExactWindowCount);
  EXPECT_FALSE(bucket.AskTokens(At(kHour - 1), 1).allowed);
}

TEST(ExactWindow, MemoryStaysFlatUnderSteadyUse) {
  const Parameters parameters = Exactly(5, 10);
  CoreBucket bucket(parameters, At(0));
  for (std::int64_t t = 0; t < 100; ++t) bucket.Admitted(At(t), 2);
  const std::size_t bytes = HeapBytes(parameters, bucket.state());
  for (std::int64_t t = 100; t < 10'000; ++t) bucket.Admitted(At(t), 2);
  EXPECT_EQ(HeapBytes(parameters, bucket.state()), bytes);
}

TEST(ExactWindow, AdmissionsAtOneNanosecondShareAnEntry) {
  const Parameters parameters = Exactly(10'000, kSecond);
  CoreBucket bucket(parameters, At(0));
  EXPECT_EQ(bucket.Admitted(At(7), 20'000), 10'000);
  EXPECT_EQ(bucket.state().exact_window.log->size(), 1);
  EXPECT_EQ(bucket.AskTokens(At(7), 1).wait_ns, kSecond);
}

TEST(ExactWindow, FreeLeavesAFullBucket) {
  const Parameters parameters = Exactly(3, kSecond);
  CoreBucket bucket(parameters, At(0));
  EXPECT_EQ(bucket.Admitted(At(0), 9), 3);
  Free(parameters, bucket.mutable_state());
  EXPECT_EQ(HeapBytes(parameters, bucket.state()), 0u);
  EXPECT_TRUE(bucket.FullAt(At(0)));
}

TEST(ExactWindow, TheLongestWindow) {
  CoreBucket bucket(Exactly(3, kMaxWindowNs), At(0));
  EXPECT_EQ(bucket.Admitted(At(5), 9), 3);
  EXPECT_EQ(bucket.AskTokens(At(5), 1).wait_ns, kMaxWindowNs);
  EXPECT_FALSE(bucket.FullAt(At(kMaxWindowNs + 4)));
  EXPECT_TRUE(bucket.FullAt(At(kMaxWindowNs + 5)));
}

}  // namespace
}  // namespace ebbgate::testing

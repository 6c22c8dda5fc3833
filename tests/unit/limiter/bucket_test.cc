// Changes of parameters (**Settled change**), and when a bucket may be forgotten.
#include "server/limiter/bucket.h"

#include <gtest/gtest.h>

#include <vector>

#include "server/limiter/bounds.h"
#include "tests/support/core_bucket.h"

namespace ebbgate::testing {
namespace {

constexpr Algorithm kAll[] = {Algorithm::kTokenBucket, Algorithm::kGcra, Algorithm::kFixedWindow,
                              Algorithm::kSlidingWindow, Algorithm::kExactWindow};

// Ten tokens, one a second or ten in ten seconds.
Parameters TenOf(Algorithm algorithm, std::int64_t capacity = 10) {
  if (algorithm == Algorithm::kTokenBucket) return TokenBucket(capacity, 1, kSecond);
  if (algorithm == Algorithm::kGcra) return Gcra(capacity, 1, kSecond);
  return WindowOf(algorithm, capacity, 10 * kSecond);
}

TEST(SettledChange, TheSameParametersChangeNothing) {
  for (const Algorithm algorithm : kAll) {
    const Parameters parameters = TenOf(algorithm);
    CoreBucket bucket(parameters, At(0));
    EXPECT_TRUE(bucket.AskTokens(At(1'234'567), 7).allowed);
    bucket.Settle(At(2'000'001));
    const BucketState before = bucket.state();
    for (int i = 0; i < 1000; ++i) Convert(parameters, parameters, At(2'000'001), bucket.mutable_state());
    EXPECT_TRUE(SameBytes(bucket.state(), before)) << Name(algorithm);
  }
}

TEST(SettledChange, BetweenAnyTwoAlgorithmsTheLevelStays) {
  for (const Algorithm from : kAll) {
    for (const Algorithm to : kAll) {
      CoreBucket bucket(TenOf(from), At(0));
      EXPECT_TRUE(bucket.AskTokens(At(0), 7).allowed);
      bucket.Change(TenOf(to), At(0));
      EXPECT_EQ(bucket.AvailableAt(At(0)), FromTokens(3)) << Name(from) << " to " << Name(to);
      EXPECT_FALSE(bucket.AskTokens(At(0), 4).allowed);
      EXPECT_TRUE(bucket.AskTokens(At(0), 3).allowed);
    }
  }
}

TEST(SettledChange, AFullBucketStaysFullUnderASmallerCapacityAndGainsNothingUnderALarger) {
  for (const Algorithm from : kAll) {
    for (const Algorithm to : kAll) {
      CoreBucket bucket(TenOf(from), At(0));
      bucket.Change(TenOf(to, 4), At(0));
      EXPECT_EQ(bucket.AvailableAt(At(0)), FromTokens(4)) << Name(from) << " to " << Name(to);
      EXPECT_TRUE(bucket.FullAt(At(0)));
      bucket.Change(TenOf(from, 20), At(0));
      EXPECT_EQ(bucket.AvailableAt(At(0)), FromTokens(4)) << Name(from) << " to " << Name(to) << " and back";
    }
  }
}

TEST(SettledChange, Toggle10To1To10) {
  for (const Algorithm algorithm : {Algorithm::kTokenBucket, Algorithm::kGcra, Algorithm::kFixedWindow}) {
    CoreBucket bucket(TenOf(algorithm), At(0));
    EXPECT_EQ(bucket.Admitted(At(0), 5), 5);
    bucket.Change(TenOf(algorithm, 1), At(0));
    bucket.Change(TenOf(algorithm, 10), At(0));
    EXPECT_EQ(bucket.Admitted(At(0), 10), 1) << Name(algorithm);
  }
}

TEST(SettledChange, WindowsThatRememberKeepTheirMemoryWhenTheCountIsLowered) {
  for (const Algorithm algorithm : {Algorithm::kSlidingWindow, Algorithm::kExactWindow}) {
    CoreBucket bucket(TenOf(algorithm), At(0));
    EXPECT_EQ(bucket.Admitted(At(0), 5), 5);
    bucket.Change(TenOf(algorithm, 3), At(0));
    // 5 in the window and 3 allowed: never more than 3 in any 10 s from now on.
    EXPECT_EQ(bucket.Admitted(At(9'999'999'999), 10), 0) << Name(algorithm);
    EXPECT_EQ(bucket.Admitted(At(30 * kSecond), 10), 3) << Name(algorithm);
  }
}

TEST(SettledChange, TogglingTheCountOfAWindowThatRemembersMakesNoDebt) {
  for (const Algorithm algorithm : {Algorithm::kSlidingWindow, Algorithm::kExactWindow}) {
    CoreBucket bucket(TenOf(algorithm), At(0));
    EXPECT_EQ(bucket.Admitted(At(0), 20), 10);
    for (int i = 0; i < 1000; ++i) {
      bucket.Change(TenOf(algorithm, 1), At(0));
      EXPECT_EQ(bucket.Admitted(At(0), 1), 0);
      bucket.Change(TenOf(algorithm, 10), At(0));
    }
    EXPECT_EQ(bucket.AvailableAt(At(0)), 0) << Name(algorithm);
    EXPECT_TRUE(bucket.FullAt(At(20 * kSecond))) << Name(algorithm);
    EXPECT_EQ(bucket.Admitted(At(20 * kSecond), 20), 10) << Name(algorithm);
  }
}

TEST(SettledChange, TogglingTheLargestCountDoesNotWrap) {
  const Parameters large = WindowOf(Algorithm::kSlidingWindow, kMaxCapacityTokens, 10 * kSecond);
  CoreBucket bucket(large, At(0));
  EXPECT_TRUE(bucket.AskTokens(At(0), kMaxCapacityTokens).allowed);
  for (int i = 0; i < 10; ++i) {
    bucket.Change(TenOf(Algorithm::kSlidingWindow, 1), At(0));
    EXPECT_EQ(bucket.AvailableAt(At(0)), FromTokens(1) - FromTokens(kMaxCapacityTokens));
    bucket.Change(large, At(0));
    EXPECT_EQ(bucket.AvailableAt(At(0)), 0);
  }
}

TEST(SettledChange, RaisingTheCountOfAWindowThatRemembersAddsNothing) {
  for (const Algorithm algorithm : {Algorithm::kSlidingWindow, Algorithm::kExactWindow}) {
    CoreBucket bucket(TenOf(algorithm), At(0));
    EXPECT_EQ(bucket.Admitted(At(0), 8), 8);
    bucket.Change(TenOf(algorithm, 100), At(0));
    EXPECT_EQ(bucket.AvailableAt(At(0)), FromTokens(2)) << Name(algorithm);
    EXPECT_EQ(bucket.Admitted(At(0), 100), 2) << Name(algorithm);
    EXPECT_EQ(bucket.Admitted(At(20 * kSecond), 200), 100) << Name(algorithm);
  }
}

TEST(SettledChange, TimeIsPaidAtTheRateOfItsDay) {
  for (const Algorithm algorithm : {Algorithm::kTokenBucket, Algorithm::kGcra}) {
    Parameters slow = TokenBucket(1000, 1, kSecond);
    Parameters fast = TokenBucket(1000, 1000, kSecond);
    slow.algorithm = fast.algorithm = algorithm;
    CoreBucket bucket(slow, At(0));
    EXPECT_TRUE(bucket.AskTokens(At(0), 1000).allowed);
    bucket.Change(fast, At(100 * kSecond));
    EXPECT_EQ(bucket.AskTokens(At(100 * kSecond), 101).wait_ns, 1'000'000);
    EXPECT_TRUE(bucket.AskTokens(At(100 * kSecond), 100).allowed);
    EXPECT_TRUE(bucket.AskTokens(At(101 * kSecond), 1000).allowed);
  }
}

TEST(SettledChange, TheFractionIsRoundedDownToTheNewGrain) {
  // At 1 token in 7 s, 1 ns brings 10^6 / 7*10^9 of a microtoken: a remainder of 10^6 in units of 1/(7*10^9).
  CoreBucket bucket(TokenBucket(10, 1, 7 * kSecond), At(0));
  EXPECT_TRUE(bucket.AskTokens(At(0), 10).allowed);
  bucket.Settle(At(5));
  EXPECT_EQ(bucket.state().token_bucket.remainder, 5'000'000);
  // floor(5*10^6 * 3 / (7*10^9)) = 0 at the grain of 3 ns; at 3 s it is floor(5*10^6 * 3 / 7).
  CoreBucket coarse(TokenBucket(10, 1, 7 * kSecond), At(0));
  EXPECT_TRUE(coarse.AskTokens(At(0), 10).allowed);
  coarse.Change(TokenBucket(10, 1, 3), At(5));
  EXPECT_EQ(coarse.state().token_bucket.remainder, 0);
  bucket.Change(TokenBucket(10, 1, 3 * kSecond), At(5));
  EXPECT_EQ(bucket.state().token_bucket.remainder, 2'142'857);
  EXPECT_EQ(bucket.state().token_bucket.level, 0);
  // And back: what was lost in rounding stays lost.
  bucket.Change(TokenBucket(10, 1, 7 * kSecond), At(5));
  EXPECT_EQ(bucket.state().token_bucket.remainder, 4'999'999);
}

TEST(SettledChange, TheSameRateWrittenOtherwiseKeepsTheWholeFraction) {
  for (const Algorithm algorithm : {Algorithm::kTokenBucket, Algorithm::kGcra}) {
    Parameters once = TokenBucket(10, 1, 7 * kSecond);
    Parameters thrice = TokenBucket(10, 3, 21 * kSecond);
    once.algorithm = thrice.algorithm = algorithm;
    CoreBucket bucket(once, At(0));
    CoreBucket twin(once, At(0));
    EXPECT_TRUE(bucket.AskTokens(At(0), 10).allowed);
    EXPECT_TRUE(twin.AskTokens(At(0), 10).allowed);
    for (int i = 1; i < 100; ++i) bucket.Change(i % 2 == 0 ? once : thrice, At(i * 1'111));
    EXPECT_EQ(bucket.AskTokens(At(111'100), 10).wait_ns, twin.AskTokens(At(111'100), 10).wait_ns);
  }
}

TEST(SettledChange, DebtIsNeitherForgivenNorDeepened) {
  const Algorithm without_window[] = {Algorithm::kTokenBucket, Algorithm::kGcra, Algorithm::kFixedWindow};
  for (const Algorithm from : {Algorithm::kTokenBucket, Algorithm::kGcra}) {
    for (const Algorithm to : without_window) {
      CoreBucket bucket(TenOf(from), At(0));
      Charge(bucket.parameters(), bucket.mutable_state(), FromTokens(14));
      bucket.Change(TenOf(to, 5), At(0));
      EXPECT_EQ(bucket.AvailableAt(At(0)), -FromTokens(4)) << Name(from) << " to " << Name(to);
      bucket.Change(TenOf(from, 50), At(0));
      EXPECT_EQ(bucket.AvailableAt(At(0)), -FromTokens(4)) << Name(from) << " to " << Name(to) << " and back";
    }
  }
}

TEST(SettledChange, WhatAWindowHoldsAboveALoweredCountIsNoDebtElsewhere) {
  for (const Algorithm from : {Algorithm::kSlidingWindow, Algorithm::kExactWindow}) {
    for (const Algorithm to : kAll) {
      if (to == from) continue;
      CoreBucket bucket(TenOf(from, 1000), At(0));
      EXPECT_EQ(bucket.Admitted(At(0), 1000), 1000);
      bucket.Change(TenOf(from, 2), At(0));
      EXPECT_EQ(bucket.AvailableAt(At(0)), -FromTokens(998)) << Name(from);
      // min(level, new b) of nothing is nothing: at a token a second, 2 are back after 2 s and not after 1,000.
      bucket.Change(TenOf(to, 2), At(0));
      EXPECT_EQ(bucket.AvailableAt(At(0)), 0) << Name(from) << " to " << Name(to);
      EXPECT_TRUE(bucket.FullAt(At(20 * kSecond))) << Name(from) << " to " << Name(to);
    }
  }
}

TEST(SettledChange, AChangeAtALateReadingCountsFromTheLast) {
  for (const Algorithm from : kAll) {
    for (const Algorithm to : kAll) {
      CoreBucket bucket(TenOf(from), At(0));
      EXPECT_TRUE(bucket.AskTokens(At(5 * kSecond), 10).allowed);
      bucket.Change(TenOf(to), At(kSecond));
      EXPECT_EQ(bucket.state().last_ns, 5 * kSecond);
      EXPECT_FALSE(bucket.AskTokens(At(5 * kSecond), 1).allowed) << Name(from) << " to " << Name(to);
    }
  }
}

TEST(SettledChange, AnotherWindowStartsWithTheLevelOfTheOld) {
  for (const Algorithm algorithm : {Algorithm::kFixedWindow, Algorithm::kSlidingWindow, Algorithm::kExactWindow}) {
    CoreBucket bucket(WindowOf(algorithm, 10, 10 * kSecond), At(0));
    EXPECT_EQ(bucket.Admitted(At(0), 6), 6);
    bucket.Change(WindowOf(algorithm, 10, 3600 * kSecond), At(kSecond));
    EXPECT_EQ(bucket.AvailableAt(At(kSecond)), FromTokens(4)) << Name(algorithm);
    EXPECT_EQ(bucket.Admitted(At(11 * kSecond), 10), 4) << Name(algorithm);
  }
}

TEST(IsFull, ExactlyWhenTheWholeCapacityFits) {
  for (const Algorithm algorithm : kAll) {
    CoreBucket bucket(TenOf(algorithm), At(0));
    EXPECT_TRUE(bucket.FullAt(At(0))) << Name(algorithm);
    EXPECT_TRUE(bucket.AskTokens(At(kSecond), 1).allowed);
    const std::int64_t until = bucket.ResetAt(At(kSecond));
    EXPECT_GT(until, 0);
    EXPECT_FALSE(bucket.FullAt(At(kSecond))) << Name(algorithm);
    EXPECT_FALSE(bucket.FullAt(At(kSecond + until - 1))) << Name(algorithm);
    EXPECT_TRUE(bucket.FullAt(At(kSecond + until))) << Name(algorithm);
    EXPECT_EQ(bucket.AvailableAt(At(kSecond + until)), FromTokens(10)) << Name(algorithm);
  }
}

TEST(IsFull, OneMicrotokenShortIsNotFull) {
  for (const Algorithm algorithm : kAll) {
    CoreBucket bucket(TenOf(algorithm), At(0));
    EXPECT_TRUE(bucket.Ask(At(0), 1).allowed);
    EXPECT_FALSE(bucket.FullAt(At(0))) << Name(algorithm);
  }
}

}  // namespace
}  // namespace ebbgate::testing

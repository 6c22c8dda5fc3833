#include "server/limiter/promises.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/core_bucket.h"

namespace ebbgate {
namespace {

using testing::Gcra;
using testing::kSecond;
using testing::TokenBucket;
using testing::WindowOf;

Moment At(std::int64_t mono_ns) { return testing::At(mono_ns); }

// A bucket with its promises, asked at times that do not fall.
class Promised {
 public:
  explicit Promised(const Parameters& parameters) : parameters_(parameters), state_(FullBucket(parameters, At(0))) {}
  ~Promised() { Free(parameters_, state_); }
  Promised(const Promised&) = delete;
  Promised& operator=(const Promised&) = delete;

  void To(std::int64_t now_ns) {
    now_ = At(now_ns);
    promises_.BringUpTo(parameters_, now_, state_, [this](const Promise& hold) { expired_.push_back(hold.hold); });
    Advance(parameters_, now_, state_);
  }
  std::int64_t Reserve(std::uint64_t hold, std::int64_t tokens, std::int64_t hold_ns = 1000 * kSecond,
                       OnHoldExpiry on_expiry = OnHoldExpiry::kSpend) {
    const std::int64_t act_ns = Earliest(tokens);
    const Promise promise = {hold, act_ns, act_ns + hold_ns, FromTokens(tokens), on_expiry};
    if (act_ns <= now_.mono_ns) {
      promises_.TakeNow(parameters_, promise, state_);
    } else {
      promises_.TakeLater(promise);
    }
    return act_ns;
  }
  HoldEnd End(std::uint64_t hold, std::int64_t actual, std::int64_t max_debt = 1000) {
    return promises_.End(parameters_, now_, hold, FromTokens(actual), FromTokens(max_debt), state_);
  }
  void Take(std::int64_t tokens) {
    promises_.Cap(parameters_, state_);
    Charge(parameters_, state_, FromTokens(tokens));
  }
  std::int64_t Earliest(std::int64_t tokens, std::int64_t not_before_ns = 0) const {
    return promises_.EarliestNs(parameters_, now_, state_, FromTokens(tokens), not_before_ns);
  }
  bool Fits(std::int64_t tokens) const { return promises_.Fits(parameters_, now_, state_, FromTokens(tokens)); }
  std::int64_t Largest() const { return WholeTokens(promises_.LargestCost(parameters_, now_, state_)); }
  Microtokens Level() const { return Available(parameters_, now_, state_); }
  std::int64_t Reset() const { return promises_.ResetNs(parameters_, now_, state_); }
  Microtokens Owed() const { return promises_.Owed(parameters_, now_, state_); }
  const Promises& promises() const { return promises_; }
  const std::vector<std::uint64_t>& expired() const { return expired_; }

 private:
  const Parameters parameters_;
  Moment now_ = At(0);
  BucketState state_;
  Promises promises_;
  std::vector<std::uint64_t> expired_;
};

TEST(Promises, ABucketWithoutAnyAnswersAsWithoutThem) {
  Promised bucket(TokenBucket(5, 1, kSecond));
  bucket.Take(3);
  EXPECT_TRUE(bucket.promises().empty());
  EXPECT_TRUE(bucket.Fits(2));
  EXPECT_FALSE(bucket.Fits(3));
  EXPECT_EQ(bucket.Largest(), 2);
  EXPECT_EQ(bucket.Earliest(4), 2 * kSecond);
  EXPECT_EQ(bucket.Earliest(4, 9 * kSecond), 9 * kSecond);
  EXPECT_EQ(bucket.Reset(), 3 * kSecond);
  EXPECT_EQ(bucket.Owed(), FromTokens(-2));
}

TEST(Promises, ActsHappenAtTheirTimes) {
  for (const Parameters& parameters : {TokenBucket(2, 1, kSecond), Gcra(2, 1, kSecond)}) {
    Promised bucket(parameters);
    EXPECT_EQ(bucket.Reserve(1, 2), 0);
    EXPECT_EQ(bucket.Reserve(2, 2), 2 * kSecond);
    EXPECT_EQ(bucket.Reserve(3, 1), 3 * kSecond);
    EXPECT_EQ(bucket.Owed(), FromTokens(3));
    EXPECT_EQ(bucket.Reset(), 5 * kSecond);
    bucket.To(2 * kSecond - 1);
    EXPECT_EQ(bucket.Level(), 1'999'999);
    EXPECT_EQ(bucket.Largest(), 0);
    bucket.To(2 * kSecond);
    EXPECT_EQ(bucket.Level(), 0);
    bucket.To(10 * kSecond);
    EXPECT_EQ(bucket.Level(), FromTokens(2));
    EXPECT_EQ(bucket.promises().size(), 3u);
  }
}

TEST(Promises, NothingIsSeenOfBringingUpTo) {
  Promised once(TokenBucket(7, 3, 1'000'000'007)), often(TokenBucket(7, 3, 1'000'000'007));
  for (Promised* bucket : {&once, &often}) {
    bucket->Reserve(1, 7, 5 * kSecond, OnHoldExpiry::kGiveBack);
    bucket->Reserve(2, 5);
    bucket->Reserve(3, 6, 2 * kSecond);
  }
  for (std::int64_t now_ns = 0; now_ns < 20 * kSecond; now_ns += 77'777'777) {
    often.To(now_ns);
    ASSERT_GE(often.Level(), 0);
  }
  once.To(20 * kSecond);
  often.To(20 * kSecond);
  EXPECT_EQ(once.Level(), often.Level());
  EXPECT_EQ(once.expired(), often.expired());
}

TEST(Promises, HoldsEndInTheOrderInWhichTheyExpire) {
  Promised bucket(TokenBucket(9, 1, 1000 * kSecond));
  bucket.Reserve(1, 3, 30 * kSecond, OnHoldExpiry::kGiveBack);
  bucket.Reserve(2, 3, 10 * kSecond, OnHoldExpiry::kGiveBack);
  bucket.Reserve(3, 3, 20 * kSecond);
  bucket.To(20 * kSecond - 1);
  EXPECT_EQ(bucket.expired(), std::vector<std::uint64_t>{2});
  EXPECT_EQ(bucket.Largest(), 3);
  bucket.To(40 * kSecond);
  EXPECT_EQ(bucket.expired().size(), 3u);
  EXPECT_EQ(bucket.Largest(), 6);
  EXPECT_FALSE(bucket.End(3, 0).found);
}

// A doomed act, which an overrun left without its cost, is no reason to refuse what does not make it worse.
TEST(Promises, OnlyWhatHarmsAnActIsRefused) {
  Promised window(WindowOf(Algorithm::kFixedWindow, 4, 10 * kSecond));
  EXPECT_EQ(window.Reserve(1, 4), 0);
  EXPECT_EQ(window.Reserve(2, 4), 10 * kSecond);
  EXPECT_EQ(window.Reserve(3, 1), 20 * kSecond);
  EXPECT_EQ(window.End(1, 0).returned, FromTokens(4));
  EXPECT_TRUE(window.Fits(4));  // In this window, which no act is of.
  EXPECT_EQ(window.Largest(), 4);
  EXPECT_EQ(window.Earliest(4, 10 * kSecond), 30 * kSecond);
  EXPECT_EQ(window.Earliest(3, 10 * kSecond), 20 * kSecond);
}

TEST(Promises, LaterHoldsDoNotGetWhatAnEarlierOneGotBack) {
  Promised bucket(TokenBucket(10, 1, kSecond));
  bucket.Reserve(1, 4);
  bucket.Reserve(2, 6);
  bucket.To(3 * kSecond);
  bucket.Take(3);
  // At 3 s the bucket lacked 7 to be full: that much may come back, whoever is first.
  EXPECT_EQ(bucket.End(1, 0).returned, FromTokens(4));
  EXPECT_EQ(bucket.End(2, 0).returned, FromTokens(3));
  EXPECT_EQ(bucket.Level(), FromTokens(7));
}

TEST(Promises, AnOverrunIsCoveredAsFarAsTheBucketMayOwe) {
  Promised bucket(TokenBucket(10, 1, kSecond));
  bucket.Reserve(1, 8);
  EXPECT_EQ(bucket.Reserve(2, 5), 3 * kSecond);  // owes 3
  const HoldEnd end = bucket.End(1, 14, /*max_debt=*/7);
  EXPECT_EQ(end.uncovered, FromTokens(2));
  EXPECT_EQ(bucket.Level(), FromTokens(-2));
  EXPECT_EQ(bucket.Owed(), FromTokens(7));
  bucket.To(3 * kSecond);
  EXPECT_EQ(bucket.Level(), FromTokens(-4));  // What was promised happens all the same.
}

TEST(Promises, AChangeOfRateKeepsWhatMayBeGivenBack) {
  const Parameters from = TokenBucket(10, 1, 3 * kSecond), to = Gcra(10, 1, 7 * kSecond);
  BucketState state = FullBucket(from, At(0));
  Promises promises;
  promises.TakeNow(from, {.hold = 1, .act_ns = 0, .expires_ns = 1000 * kSecond, .cost = FromTokens(4)}, state);
  Advance(from, At(kSecond), state);
  promises.Cap(from, state);
  Convert(from, to, At(kSecond), state);
  promises.Convert(from, to);
  promises.Cap(to, state);
  const HoldEnd end = promises.End(to, At(kSecond), 1, 0, 0, state);
  EXPECT_TRUE(end.found);
  // 6 1/3 were there and 3 2/3 come back; a third of a microtoken is no multiple of the new grain.
  EXPECT_GE(Available(to, At(kSecond), state), FromTokens(10) - 1);
}

TEST(GiveBack, IsExactInEveryAlgorithm) {
  for (const Algorithm algorithm : {Algorithm::kFixedWindow, Algorithm::kSlidingWindow, Algorithm::kExactWindow}) {
    Promised window(WindowOf(algorithm, 10, 10 * kSecond));
    window.To(4 * kSecond);
    window.Reserve(1, 6);
    window.Reserve(2, 3);
    window.To(9 * kSecond);
    EXPECT_EQ(window.End(1, 2).returned, FromTokens(4)) << Name(algorithm);
    EXPECT_EQ(window.Largest(), 5) << Name(algorithm);
    window.To(14 * kSecond);
    // Of another window; six tenths of its weight; just gone.
    const std::int64_t weighs = algorithm == Algorithm::kSlidingWindow ? 3 : 0;
    EXPECT_EQ(window.Level(), FromTokens(10 - weighs)) << Name(algorithm);
    EXPECT_EQ(window.End(2, 0).returned, algorithm == Algorithm::kSlidingWindow ? 1'800'000 : 0) << Name(algorithm);
  }
}

TEST(Clone, SharesNothing) {
  const Parameters parameters = WindowOf(Algorithm::kExactWindow, 10, 10 * kSecond);
  BucketState state = FullBucket(parameters, At(0));
  Charge(parameters, state, FromTokens(4));
  BucketState copy = Clone(parameters, state);
  Charge(parameters, copy, FromTokens(3));
  EXPECT_EQ(Available(parameters, At(0), state), FromTokens(6));
  EXPECT_EQ(Available(parameters, At(0), copy), FromTokens(3));
  Free(parameters, state);
  EXPECT_EQ(Available(parameters, At(0), copy), FromTokens(3));
  Free(parameters, copy);
}

TEST(MaxDebt, IsWhatTheLimitSaysWithinReason) {
  Limit limit;
  limit.parameters = TokenBucket(5, 1, kSecond);
  EXPECT_EQ(MaxDebt(limit, limit.parameters), FromTokens(5000));
  limit.max_debt = 3;
  EXPECT_EQ(MaxDebt(limit, limit.parameters), FromTokens(3));
  limit.max_debt = 0;
  EXPECT_EQ(MaxDebt(limit, limit.parameters), 0);
  limit.max_debt = kMaxCostTokens;
  limit.parameters = TokenBucket(kMaxCapacityTokens, 1'000'000'000, kSecond);
  EXPECT_EQ(MaxDebt(limit, limit.parameters), FromTokens(kMaxCostTokens - kMaxCapacityTokens));
  limit.parameters = TokenBucket(1, 1, kSlowestTokenNs);
  EXPECT_EQ(MaxDebt(limit, limit.parameters), FromTokens(100));  // A hundred years.
}

}  // namespace
}  // namespace ebbgate

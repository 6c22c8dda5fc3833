#include "server/limiter/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "server/limiter/bounds.h"
#include "tests/support/core_bucket.h"

namespace ebbgate::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Fault(const Parameters& parameters) { return std::string(Validate(parameters).message()); }

TEST(Validate, CapacityAtItsEdges) {
  // At 10^9 a second even the largest capacity is full soon.
  EXPECT_TRUE(Validate(TokenBucket(1, 1, kSecond)).ok());
  EXPECT_TRUE(Validate(TokenBucket(kMaxCapacityTokens, kMaxTokensPerSecond, kSecond)).ok());
  EXPECT_THAT(Fault(TokenBucket(kMaxCapacityTokens + 1, kMaxTokensPerSecond, kSecond)), StartsWith("capacity: "));
  EXPECT_THAT(Fault(TokenBucket(0, 1, kSecond)), StartsWith("capacity: "));
  EXPECT_THAT(Fault(TokenBucket(-1, 1, kSecond)), StartsWith("capacity: "));
  Parameters fraction = TokenBucket(1, 1, kSecond);
  fraction.capacity -= 1;
  EXPECT_FALSE(Validate(fraction).ok());
}

TEST(Validate, CountAtItsEdges) {
  for (const Algorithm algorithm : {Algorithm::kFixedWindow, Algorithm::kSlidingWindow}) {
    EXPECT_TRUE(Validate(WindowOf(algorithm, 1, kSecond)).ok());
    EXPECT_TRUE(Validate(WindowOf(algorithm, kMaxCapacityTokens, kSecond)).ok());
    EXPECT_THAT(Fault(WindowOf(algorithm, kMaxCapacityTokens + 1, kSecond)), StartsWith("count: "));
    EXPECT_THAT(Fault(WindowOf(algorithm, 0, kSecond)), StartsWith("count: "));
  }
  EXPECT_TRUE(Validate(WindowOf(Algorithm::kExactWindow, kMaxExactWindowCount, kSecond)).ok());
  EXPECT_THAT(Fault(WindowOf(Algorithm::kExactWindow, kMaxExactWindowCount + 1, kSecond)), StartsWith("count: "));
}

TEST(Validate, TheSlowestRateIsOneInALeapYear) {
  EXPECT_TRUE(Validate(TokenBucket(1, 1, kSlowestTokenNs)).ok());
  EXPECT_THAT(Fault(TokenBucket(1, 1, kSlowestTokenNs + 1)), StartsWith("refill: is slower"));
  EXPECT_TRUE(Validate(Gcra(1, 10, 10 * kSlowestTokenNs)).ok());
  EXPECT_FALSE(Validate(Gcra(1, 10, 10 * kSlowestTokenNs + 1)).ok());
}

TEST(Validate, TheFastestRateIsABillionASecond) {
  EXPECT_TRUE(Validate(TokenBucket(1, kMaxTokensPerSecond, kSecond)).ok());
  EXPECT_THAT(Fault(TokenBucket(1, kMaxTokensPerSecond + 1, kSecond)), StartsWith("refill: is faster"));
  EXPECT_THAT(Fault(TokenBucket(1, kMaxTokensPerSecond, kSecond - 1)), StartsWith("refill: is faster"));
  EXPECT_TRUE(Validate(TokenBucket(1, 1, 1)).ok());
  EXPECT_FALSE(Validate(TokenBucket(1, 2, 1)).ok());
  EXPECT_TRUE(Validate(TokenBucket(1, kMaxCostTokens, kMaxCostTokens)).ok());
}

TEST(Validate, AtMostAHundredYearsToFull) {
  EXPECT_TRUE(Validate(TokenBucket(100, 1, kSlowestTokenNs)).ok());
  EXPECT_THAT(Fault(TokenBucket(101, 1, kSlowestTokenNs)), StartsWith("refill: takes more than 100 years"));
  // 9*10^12 tokens in just 100 years, and a nanosecond more a period.
  const std::int64_t per_ns = kMaxTimeToFullNs / 9'000;
  EXPECT_TRUE(Validate(TokenBucket(kMaxCapacityTokens, 1'000'000'000, per_ns)).ok());
  EXPECT_FALSE(Validate(TokenBucket(kMaxCapacityTokens, 1'000'000'000, per_ns + 1)).ok());
}

TEST(Validate, NothingComesBackIsRefused) {
  EXPECT_THAT(Fault(TokenBucket(1, 0, kSecond)), StartsWith("refill.tokens: "));
  EXPECT_THAT(Fault(TokenBucket(1, -1, kSecond)), StartsWith("refill.tokens: "));
  EXPECT_THAT(Fault(TokenBucket(1, 1, 0)), StartsWith("refill.per: "));
  EXPECT_THAT(Fault(TokenBucket(1, 1, -1)), StartsWith("refill.per: "));
}

TEST(Validate, WindowsAtTheirEdges) {
  for (const Algorithm algorithm : {Algorithm::kFixedWindow, Algorithm::kSlidingWindow, Algorithm::kExactWindow}) {
    EXPECT_TRUE(Validate(WindowOf(algorithm, 1, 1)).ok());
    EXPECT_TRUE(Validate(WindowOf(algorithm, 1, kMaxWindowNs)).ok());
    EXPECT_THAT(Fault(WindowOf(algorithm, 1, kMaxWindowNs + 1)), StartsWith("window: "));
    EXPECT_THAT(Fault(WindowOf(algorithm, 1, 0)), StartsWith("window: "));
    EXPECT_THAT(Fault(WindowOf(algorithm, 1, -1)), StartsWith("window: "));
  }
}

TEST(Validate, OnlyFixedWindowFollowsACalendar) {
  Parameters parameters = CalendarWindow(5, WindowUnit::kDay, absl::UTCTimeZone());
  EXPECT_TRUE(Validate(parameters).ok());
  for (const Algorithm algorithm : {Algorithm::kSlidingWindow, Algorithm::kExactWindow}) {
    parameters.algorithm = algorithm;
    EXPECT_THAT(Fault(parameters), HasSubstr("fixed_window"));
  }
}

TEST(Names, AlgorithmsGoThereAndBack) {
  for (const Algorithm algorithm : {Algorithm::kTokenBucket, Algorithm::kGcra, Algorithm::kFixedWindow,
                                    Algorithm::kSlidingWindow, Algorithm::kExactWindow}) {
    EXPECT_EQ(AlgorithmNamed(Name(algorithm)), algorithm);
  }
  EXPECT_EQ(AlgorithmNamed("token_bucket"), Algorithm::kTokenBucket);
  EXPECT_EQ(AlgorithmNamed("gcra"), Algorithm::kGcra);
  EXPECT_EQ(AlgorithmNamed("Token_Bucket"), std::nullopt);
  EXPECT_EQ(AlgorithmNamed(""), std::nullopt);
  EXPECT_EQ(Name(WindowUnit::kMonth), "month");
}

TEST(Describe, SaysWhatPeopleWouldSay) {
  EXPECT_EQ(Describe(TokenBucket(4, 2, kSecond)), "capacity 4, refill 2 per 1s");
  Parameters paced = TokenBucket(4, 2, kSecond);
  paced.pace = true;
  EXPECT_EQ(Describe(paced), "capacity 4, refill 2 per 1s, paced");
  EXPECT_EQ(Describe(WindowOf(Algorithm::kExactWindow, 3, 90 * kSecond)), "3 per 90s");
  EXPECT_EQ(Describe(CalendarWindow(1000, WindowUnit::kDay, absl::UTCTimeZone())), "1000 per day in UTC");
  EXPECT_EQ(DescribeNs(0), "0s");
  EXPECT_EQ(DescribeNs(1), "1ns");
  EXPECT_EQ(DescribeNs(1'500'000'000), "1500ms");
  EXPECT_EQ(DescribeNs(2'000), "2us");
  EXPECT_EQ(DescribeNs(60 * kSecond), "1m");
  EXPECT_EQ(DescribeNs(366 * 24 * kHour), "8784h");
}

// The definition, told recursively.
bool Matches(absl::string_view pattern, absl::string_view key) {
  if (pattern.empty()) return key.empty();
  if (pattern[0] == '*') return Matches(pattern.substr(1), key) || (!key.empty() && Matches(pattern, key.substr(1)));
  return !key.empty() && pattern[0] == key[0] && Matches(pattern.substr(1), key.substr(1));
}

TEST(MatchesPattern, KnownCases) {
  EXPECT_TRUE(MatchesPattern("partner-*", "partner-7"));
  EXPECT_TRUE(MatchesPattern("partner-*", "partner-"));
  EXPECT_FALSE(MatchesPattern("partner-*", "partner"));
  EXPECT_FALSE(MatchesPattern("partner-*", "a-partner-7"));
  EXPECT_TRUE(MatchesPattern("*", ""));
  EXPECT_TRUE(MatchesPattern("**", "x"));
  EXPECT_TRUE(MatchesPattern("", ""));
  EXPECT_FALSE(MatchesPattern("", "x"));
  EXPECT_TRUE(MatchesPattern("a*b*c", "a-b-b-c"));
  EXPECT_FALSE(MatchesPattern("a*b*c", "a-c-b"));
  EXPECT_TRUE(MatchesPattern("*a", "aaa"));
  EXPECT_TRUE(MatchesPattern("a\n*", "a\nb"));
}

TEST(MatchesPattern, AgreesWithTheDefinitionOnAllShortTexts) {
  // Every pattern of up to 5 and every key of up to 6 of few letters: where greed goes wrong, it does so early.
  std::vector<std::string> patterns = {""};
  for (std::size_t i = 0; patterns[i].size() < 5; ++i) {
    for (const char c : {'a', 'b', '*'}) patterns.push_back(patterns[i] + c);
  }
  std::vector<std::string> keys = {""};
  for (std::size_t i = 0; keys[i].size() < 6; ++i) {
    for (const char c : {'a', 'b'}) keys.push_back(keys[i] + c);
  }
  for (const std::string& pattern : patterns) {
    for (const std::string& key : keys) {
      ASSERT_EQ(MatchesPattern(pattern, key), Matches(pattern, key)) << pattern << " against " << key;
    }
  }
}

TEST(MatchesPattern, ManyStarsOnALongKeyEndSoon) {
  // Exponential for the definition; some 10^5 steps here.
  std::string pattern;
  for (int i = 0; i < 60; ++i) pattern += "*a";
  EXPECT_FALSE(MatchesPattern(pattern + "*b", std::string(kMaxKeyBytes, 'a')));
  EXPECT_TRUE(MatchesPattern(pattern + "*", std::string(kMaxKeyBytes, 'a')));
}

}  // namespace
}  // namespace ebbgate::testing

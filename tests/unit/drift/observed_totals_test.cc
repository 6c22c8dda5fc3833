#include "server/drift/observed_totals.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/limiter/bounds.h"
#include "tests/support/durations.h"

namespace ebbgate {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kHour;
using testing::kSecond;
using ::testing::Pair;

constexpr std::int64_t kWatchedAt = 1'793'512'800 * kSecond;  // wall
constexpr std::int64_t kNow = kHour;                          // monotonic

class Totals {
 public:
  Totals() { totals_.Watch(0, kWatchedAt); }

  // `start_s`: seconds after the limit came to be watched.
  Totals& Add(absl::string_view instance, std::int64_t start_s, std::int64_t total, std::int64_t now_ns = kNow,
              absl::string_view reporter = "billing", WatchedNumber limit = 0) {
    const ObservedTotal one{.limit = limit, .total = total};
    status_ = totals_.Add({.reporter = reporter,
                           .instance = instance,
                           .start_wall_ns = kWatchedAt + start_s * kSecond,
                           .totals = {&one, 1}},
                          now_ns);
    return *this;
  }

  std::int64_t Sum(WatchedNumber limit = 0) const { return static_cast<std::int64_t>(totals_.Sum(limit)); }
  std::vector<std::pair<std::string, int>> Reporters() const {
    std::vector<std::pair<std::string, int>> sums;
    totals_.ForEachReporter(
        0, [&](const std::string& name, Uint128 sum) { sums.emplace_back(name, static_cast<int>(sum)); });
    return sums;
  }

  ObservedTotals totals_;
  absl::Status status_;
};

TEST(ObservedTotals, OnlyTheHighestTotalOfAStartMatters) {
  Totals totals;
  EXPECT_EQ(totals.Add("a", 1, 100).Sum(), 100);
  EXPECT_EQ(totals.Add("a", 1, 100).Sum(), 100);  // repeated
  EXPECT_EQ(totals.Add("a", 1, 250).Sum(), 250);  // one was lost
  EXPECT_EQ(totals.Add("a", 1, 180).Sum(), 250);  // overtaken
  EXPECT_EQ(totals.Add("a", 1, 260).Sum(), 260);
}

TEST(ObservedTotals, ARestartCountsBesideWhatWasBefore) {
  Totals totals;
  totals.Add("a", 1, 100).Add("a", 60, 7);
  EXPECT_EQ(totals.Sum(), 107);
  EXPECT_EQ(totals.Add("a", 1, 110).Sum(), 117);  // a late report of the earlier start
  EXPECT_EQ(totals.Add("a", 30, 50).Sum(), 167);  // a start in between, of which all reports came late
  EXPECT_EQ(totals.Add("a", 60, 9).Sum(), 169);
}

TEST(ObservedTotals, InstancesAndReportersAddUp) {
  Totals totals;
  totals.Add("a", 1, 100).Add("b", 1, 10).Add("a", 1, 1, kNow, "gateway");
  EXPECT_EQ(totals.Sum(), 111);
  EXPECT_THAT(totals.Reporters(), ElementsAre(Pair("billing", 110), Pair("gateway", 1)));
}

TEST(ObservedTotals, AProcessThatCountedBeforeTheWatchCountsFromItsFirstReport) {
  Totals totals;
  EXPECT_EQ(totals.Add("old", -1, 1'000'000).Sum(), 0);
  EXPECT_EQ(totals.Add("old", -1, 1'000'030).Sum(), 30);
  EXPECT_EQ(totals.Add("old", -1, 999'999).Sum(), 30);
  EXPECT_EQ(totals.Add("same moment", 0, 5).Sum(), 35);
}

TEST(ObservedTotals, WhatASilentInstanceCountedStaysCounted) {
  Totals totals;
  totals.Add("a", 1, 100).Add("b", 1, 10, kNow + kSecond);
  totals.totals_.Age(kNow + kInstanceIdleNs);
  EXPECT_EQ(totals.totals_.instances(), 1u);
  EXPECT_EQ(totals.totals_.totals(), 1u);
  EXPECT_EQ(totals.Sum(), 110);
  EXPECT_THAT(totals.Reporters(), ElementsAre(Pair("billing", 110)));
  // It comes back: not counted twice, and on from there.
  EXPECT_EQ(totals.Add("a", 1, 120).Sum(), 110);
  EXPECT_EQ(totals.Add("a", 1, 125).Sum(), 115);
  // It comes back as a new process.
  EXPECT_EQ(totals.Add("a", 5000, 3).Sum(), 118);
  totals.totals_.Age(kNow + 10 * kInstanceIdleNs);
  EXPECT_EQ(totals.totals_.reporters(), 0u);
  EXPECT_EQ(totals.totals_.totals(), 0u);
  EXPECT_THAT(totals.Reporters(), IsEmpty());
  EXPECT_EQ(totals.Sum(), 118);
}

TEST(ObservedTotals, OfTooManyStartsTheEarliestIsForgottenAndNotCountedTwice) {
  Totals totals;
  for (int start = 1; start <= 6; ++start) totals.Add("a", start * 10, 100);
  EXPECT_EQ(totals.Sum(), 600);
  EXPECT_EQ(totals.totals_.totals(), kMaxStartsPerInstance);
  EXPECT_EQ(totals.Add("a", 10, 100).Sum(), 600);
  EXPECT_EQ(totals.Add("a", 20, 500).Sum(), 600);
  EXPECT_EQ(totals.Add("a", 30, 101).Sum(), 601);  // one of the four kept
}

TEST(ObservedTotals, AForgottenLimitComesBackEmpty) {
  Totals totals;
  totals.totals_.Watch(1, kWatchedAt);
  totals.Add("a", 1, 100).Add("a", 1, 40, kNow, "billing", 1);
  totals.totals_.Forget({0});
  EXPECT_EQ(totals.Sum(), 0);
  EXPECT_EQ(totals.Sum(1), 40);
  EXPECT_EQ(totals.totals_.totals(), 1u);
  // The same process goes on counting: from its next report on.
  totals.totals_.Watch(0, kWatchedAt + 100 * kSecond);
  EXPECT_EQ(totals.Add("a", 1, 150).Sum(), 0);
  EXPECT_EQ(totals.Add("a", 1, 160).Sum(), 10);
}

TEST(ObservedTotals, BoundedInReportersAndInstances) {
  Totals totals;
  for (std::size_t i = 0; i < kMaxReporters; ++i) {
    EXPECT_TRUE(totals.Add("a", 1, 1, kNow, absl::StrCat("reporter", i)).status_.ok());
  }
  EXPECT_EQ(totals.Add("a", 1, 1, kNow, "one more").status_.code(), absl::StatusCode::kResourceExhausted);
  for (std::size_t i = kMaxReporters; i < kMaxReportingInstances; ++i) {
    ASSERT_TRUE(totals.Add(absl::StrCat("i", i), 1, 1, kNow + kSecond, "reporter0").status_.ok());
  }
  EXPECT_EQ(totals.Add("one more", 1, 1, kNow, "reporter0").status_.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(totals.Sum(), static_cast<std::int64_t>(kMaxReportingInstances));
  EXPECT_TRUE(totals.Add("a", 1, 2, kNow + kSecond, "reporter0").status_.ok());  // who is known goes on
  totals.totals_.Age(kNow + kInstanceIdleNs);                                    // all but those of reporter0
  EXPECT_TRUE(totals.Add("one more", 2, 1, kNow, "one more").status_.ok());
}

TEST(ObservedTotals, NothingWraps) {
  Totals totals;
  for (int i = 0; i < 4; ++i) totals.Add(absl::StrCat("i", i), 1, kInt64Max);
  EXPECT_EQ(totals.totals_.Sum(0), Uint128{4} * kInt64Max);
}

}  // namespace
}  // namespace ebbgate

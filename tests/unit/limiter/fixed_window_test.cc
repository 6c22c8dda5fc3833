#include "server/limiter/fixed_window.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "server/limiter/wall_clock.h"
#include "tests/support/core_bucket.h"

namespace ebbgate::testing {
namespace {

constexpr std::int64_t kDay = 24 * kHour;

std::int64_t Utc(const std::string& text) {
  absl::Time time;
  std::string error;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, text, &time, &error)) << error;
  return absl::ToUnixNanos(time);
}

Parameters NewYorkDay(std::int64_t count) {
  absl::TimeZone zone;
  EXPECT_TRUE(absl::LoadTimeZone("America/New_York", &zone));
  return CalendarWindow(count, WindowUnit::kDay, zone);
}

TEST(FixedWindow, AFullMinuteWaitsForTheNext) {
  CoreBucket bucket(WindowOf(Algorithm::kFixedWindow, 2, 60 * kSecond), At(30 * kSecond));
  EXPECT_EQ(bucket.Admitted(At(30 * kSecond), 3), 2);
  EXPECT_EQ(bucket.AskTokens(At(60 * kSecond - 1), 1).wait_ns, 1);
  EXPECT_EQ(bucket.ResetAt(At(60 * kSecond - 1)), 1);
  EXPECT_EQ(bucket.Admitted(At(60 * kSecond), 3), 2);
}

TEST(FixedWindow, CostsAddUpToTheCount) {
  CoreBucket bucket(WindowOf(Algorithm::kFixedWindow, 10, 60 * kSecond), At(0));
  EXPECT_TRUE(bucket.AskTokens(At(0), 7).allowed);
  EXPECT_EQ(bucket.AskTokens(At(kSecond), 4).wait_ns, 59 * kSecond);
  EXPECT_TRUE(bucket.AskTokens(At(kSecond), 3).allowed);
  EXPECT_TRUE(bucket.AskTokens(At(kSecond), 11).never);
}

TEST(FixedWindow, ADayOf25HoursResetsOnceAtLocalMidnight) {
  const std::int64_t start = Utc("2026-11-01T03:59:59Z");
  CoreBucket bucket(NewYorkDay(3), At(0, start));
  EXPECT_EQ(bucket.Admitted(At(0, start), 5), 3);
  EXPECT_EQ(bucket.Admitted(At(kSecond, start), 5), 3);
  EXPECT_EQ(bucket.Admitted(At(7201 * kSecond, start), 2), 0);
  EXPECT_EQ(bucket.Admitted(At(90'000 * kSecond, start), 2), 0);
  EXPECT_EQ(bucket.Admitted(At(90'001 * kSecond, start), 5), 3);
}

TEST(FixedWindow, ADayOf23Hours) {
  const std::int64_t start = Utc("2026-03-08T05:00:00Z");
  CoreBucket bucket(NewYorkDay(3), At(0, start));
  EXPECT_EQ(bucket.Admitted(At(0, start), 5), 3);
  EXPECT_EQ(bucket.AskTokens(At(82'799 * kSecond, start), 1).wait_ns, kSecond);
  EXPECT_EQ(bucket.Admitted(At(82'800 * kSecond, start), 5), 3);
}

TEST(FixedWindow, TheLargestCount) {
  CoreBucket bucket(WindowOf(Algorithm::kFixedWindow, 9'000'000'000'000, kSecond), At(0));
  EXPECT_TRUE(bucket.AskTokens(At(0), 9'000'000'000'000).allowed);
  EXPECT_EQ(bucket.AskTokens(At(0), 9'000'000'000'000).wait_ns, kSecond);
  EXPECT_EQ(bucket.AskTokens(At(0), 1).wait_ns, kSecond);
}

TEST(FixedWindow, AReadingBehindTheLastCountsAsTheLast) {
  CoreBucket bucket(WindowOf(Algorithm::kFixedWindow, 2, 60 * kSecond), At(0));
  EXPECT_EQ(bucket.Admitted(At(59 * kSecond), 2), 2);
  EXPECT_EQ(bucket.Admitted(At(60 * kSecond), 2), 2);
  // A reading of the minute before is not the minute before.
  EXPECT_EQ(bucket.AskTokens(At(59 * kSecond), 1).wait_ns, 60 * kSecond);
}

// A wall clock that the system's administrator plays with, followed after 10 s.
class SteppedWall : public ::testing::Test {
 protected:
  SteppedWall() : clock_(0, start_) {}

  Moment Now() const {
    Moment moment;
    moment.mono_ns = mono_ns_;
    moment.wall = clock_.Anchor();
    return moment;
  }
  void Pass(std::int64_t ns) {
    mono_ns_ += ns;
    clock_.Observe(mono_ns_, start_ + mono_ns_ + error_ns_);
  }
  // The step, and the 11 s until it is believed.
  void StepTo(std::int64_t error_ns) {
    error_ns_ = error_ns;
    Pass(kSecond);
    Pass(10 * kSecond);
  }
  std::int64_t WallNow() const { return WallAt(Now().wall, mono_ns_); }

  const std::int64_t start_ = Utc("2026-06-10T12:00:00Z");
  std::int64_t mono_ns_ = 0;
  std::int64_t error_ns_ = 0;
  AnchoredWallClock clock_;
  const Parameters day_ = CalendarWindow(5, WindowUnit::kDay, absl::UTCTimeZone());
};

TEST_F(SteppedWall, AStepBackReopensNothing) {
  CoreBucket bucket(day_, Now());
  Pass(13 * kHour);  // 01:00 on the 11th.
  EXPECT_EQ(bucket.Admitted(Now(), 9), 5);
  StepTo(-2 * kHour);  // 23:00 on the 10th.
  EXPECT_EQ(WallNow() / kDay, start_ / kDay);
  EXPECT_EQ(bucket.Admitted(Now(), 9), 0);
}

TEST_F(SteppedWall, AStepBackShutsOutNoLongerThanTheWindowItLeadsTo) {
  CoreBucket bucket(day_, Now());
  Pass(13 * kHour);
  EXPECT_EQ(bucket.Admitted(Now(), 9), 5);
  StepTo(-2 * kHour);
  // It is 23:00:11 on the 10th, and the count now belongs to the 10th.
  EXPECT_EQ(bucket.AskTokens(Now(), 1).wait_ns, kHour - 11 * kSecond);
  Pass(kHour - 11 * kSecond - 1);
  EXPECT_EQ(bucket.AskTokens(Now(), 1).wait_ns, 1);
  Pass(1);
  EXPECT_EQ(bucket.Admitted(Now(), 9), 5);
}

TEST_F(SteppedWall, AnIdleKeyIsNotShutOutWhenItsWindowComesRoundAgain) {
  CoreBucket bucket(day_, Now());
  Pass(13 * kHour);
  EXPECT_EQ(bucket.Admitted(Now(), 9), 5);
  StepTo(-2 * kHour);
  // Nobody asks until the 11th has come again: the count was the 10th's.
  Pass(kHour);
  EXPECT_EQ(bucket.Admitted(Now(), 9), 5);
}

TEST_F(SteppedWall, AnIdleKeyKeepsItsCountWhileTheWindowAfterTheStepLasts) {
  CoreBucket bucket(day_, Now());
  Pass(13 * kHour);
  EXPECT_EQ(bucket.Admitted(Now(), 9), 5);
  StepTo(-2 * kHour);
  Pass(kHour - 11 * kSecond - 1);
  EXPECT_EQ(bucket.Admitted(Now(), 9), 0);
}

TEST_F(SteppedWall, AStepBackWithinTheWindowChangesNothing) {
  CoreBucket bucket(day_, Now());
  EXPECT_EQ(bucket.Admitted(Now(), 9), 5);
  StepTo(-3 * kHour);
  EXPECT_EQ(bucket.Admitted(Now(), 9), 0);
  Pass(15 * kHour);
  EXPECT_EQ(bucket.Admitted(Now(), 9), 5);
}

TEST_F(SteppedWall, AKeyFirstSeenAfterTheStepKnowsNothingOfIt) {
  Pass(13 * kHour);
  StepTo(-2 * kHour);
  CoreBucket bucket(day_, Now());
  EXPECT_EQ(bucket.Admitted(Now(), 9), 5);
  Pass(kHour);
  EXPECT_EQ(bucket.Admitted(Now(), 9), 5);
}

TEST_F(SteppedWall, YearsBackAndYearsForward) {
  CoreBucket bucket(day_, Now());
  EXPECT_EQ(bucket.Admitted(Now(), 9), 5);
  StepTo(-10 * 366 * kDay);
  EXPECT_EQ(bucket.Admitted(Now(), 9), 0);
  EXPECT_LE(bucket.AskTokens(Now(), 1).wait_ns, kDay);
  StepTo(10 * 366 * kDay);
  EXPECT_EQ(bucket.Admitted(Now(), 9), 5);
  StepTo(0);
  EXPECT_EQ(bucket.Admitted(Now(), 9), 0);
  EXPECT_LE(bucket.AskTokens(Now(), 1).wait_ns, kDay);
}

TEST_F(SteppedWall, UntilAStepIsBelievedNothingChanges) {
  CoreBucket bucket(day_, Now());
  EXPECT_EQ(bucket.Admitted(Now(), 9), 5);
  error_ns_ = 30 * kDay;
  Pass(kSecond);
  Pass(9 * kSecond);
  EXPECT_EQ(bucket.Admitted(Now(), 9), 0);
}

TEST_F(SteppedWall, TwoStepsBackWithTheOldWindowBetweenThem) {
  CoreBucket bucket(day_, Now());
  Pass(13 * kHour);
  EXPECT_EQ(bucket.Admitted(Now(), 9), 5);  // Labelled the 11th.
  StepTo(-2 * kHour);                       // 23:00 on the 10th: counts for the 10th.
  // An anchor tells of one step only, so whoever keeps the bucket brings it up to date between two.
  bucket.Settle(Now());
  Pass(2 * kHour);                     // 01:00 on the 11th: the 10th is over.
  StepTo(-2 * kHour - 600 * kSecond);  // 00:50 on the 11th.
  EXPECT_EQ(bucket.Admitted(Now(), 9), 5);
}

TEST(FixedWindow, AWallClockAtTheEndOfItsRangeStillLimits) {
  const Moment moment = At(0, kInt64Max);
  for (const WindowUnit unit : {WindowUnit::kLength, WindowUnit::kMinute, WindowUnit::kDay, WindowUnit::kYear}) {
    Parameters parameters = CalendarWindow(5, unit, absl::UTCTimeZone());
    if (unit == WindowUnit::kLength) parameters.window.length_ns = kSecond;
    CoreBucket bucket(parameters, moment);
    EXPECT_EQ(bucket.Admitted(moment, 9), 5);
    EXPECT_EQ(bucket.Admitted(At(kSecond, kInt64Max), 9), 0);
    EXPECT_EQ(bucket.AskTokens(At(kSecond, kInt64Max), 1).wait_ns, 1);
  }
}

TEST(FixedWindow, AWallClockAtTheStartOfItsRangeStillLimits) {
  const std::int64_t first = std::numeric_limits<std::int64_t>::min();
  CoreBucket bucket(CalendarWindow(5, WindowUnit::kDay, absl::UTCTimeZone()), At(-kSecond, first));
  EXPECT_EQ(bucket.Admitted(At(-kSecond, first), 9), 5);
  EXPECT_EQ(bucket.Admitted(At(0, first), 9), 0);
}

}  // namespace
}  // namespace ebbgate::testing

// **Calendar** in the engine: quotas of a calendar while somebody sets the system's clock and the engine forgets what
// it can.
#include <gtest/gtest.h>

#include "server/engine/engine.h"
#include "server/limiter/manual_time.h"
#include "tests/support/limits.h"

namespace ebbgate::testing {
namespace {

constexpr std::int64_t kDay = 24 * kHour;
// 2026-06-10T12:00:00Z.
constexpr std::int64_t kNoon = 1'781'092'800 * kSecond;

Limit DailyFive() {
  Limit limit = Windowed("daily", Algorithm::kFixedWindow, 5, 0);
  limit.parameters.window.unit = WindowUnit::kDay;
  return limit;
}

class WallSteps : public ::testing::Test {
 protected:
  WallSteps() { engine_.InstallLimits({DailyFive()}); }

  // Lets time go by with upkeep once a second, or a hundred times if that is long.
  void Pass(std::int64_t ns) {
    const std::int64_t step_ns = std::max(kSecond, ns / 100);
    for (; ns > 0; ns -= step_ns) {
      time_.Advance(std::min(ns, step_ns));
      engine_.Maintain();
    }
  }
  // Sets the wall clock, and waits until that is believed.
  void Step(std::int64_t ns) {
    time_.StepWall(ns);
    Pass(15 * kSecond);
  }
  int Allowed(int n) { return AllowedOf(engine_, "daily", "k", n); }
  void PassUntil(std::int64_t wall_ns) { Pass(wall_ns - time_.WallNs()); }

  ManualTime time_{kNoon, 1000 * kSecond};
  Engine engine_{{}, time_};
};

TEST_F(WallSteps, AJumpAheadAndBackReopensNothingForAKeyThatWasIdle) {
  PassUntil(kNoon + 11 * kHour + 30 * 60 * kSecond);  // 23:30
  EXPECT_EQ(Allowed(9), 5);
  Step(kHour);  // 00:30 on the next day, until it is undone
  Step(-kHour);
  EXPECT_EQ(Allowed(9), 0);
  PassUntil(kNoon + 12 * kHour - kSecond);
  EXPECT_EQ(Allowed(9), 0);
  PassUntil(kNoon + 12 * kHour);
  EXPECT_EQ(Allowed(9), 5);
  EXPECT_EQ(engine_.Counters().wall_steps_forward, 1u);
  EXPECT_EQ(engine_.Counters().wall_steps_back, 1u);
}

TEST_F(WallSteps, AJumpAheadAndBackReopensNothingForAKeyThatWasUsed) {
  PassUntil(kNoon + 11 * kHour + 30 * 60 * kSecond);
  EXPECT_EQ(Allowed(9), 5);
  Step(kHour);
  EXPECT_EQ(Allowed(9), 5);
  Step(-kHour);
  EXPECT_EQ(Allowed(9), 0);
  PassUntil(kNoon + 12 * kHour);
  EXPECT_EQ(Allowed(9), 5);
}

TEST_F(WallSteps, AJumpAheadAndBackReopensNothingAfterAnEarlierStepBack) {
  PassUntil(kNoon + 11 * kHour);
  EXPECT_EQ(Allowed(9), 5);
  Step(-60 * kSecond);
  Step(2 * kHour);
  Step(-2 * kHour);
  EXPECT_EQ(Allowed(9), 0);
}

TEST_F(WallSteps, TwoStepsBackShutNoIdleKeyOut) {
  PassUntil(kNoon + 13 * kHour);  // 01:00
  EXPECT_EQ(Allowed(9), 5);
  Step(-2 * kHour);  // 23:00: the count is the 10th's
  Pass(2 * kHour);   // 01:00: that day is over
  Step(-600 * kSecond);
  EXPECT_EQ(Allowed(9), 5);
}

TEST_F(WallSteps, ATenYearsJumpKeepsIdleKeysForNoMoreThanAWindow) {
  EXPECT_EQ(Allowed(9), 5);
  Step(10 * 366 * kDay);
  EXPECT_EQ(Allowed(9), 5);
  Step(10 * 366 * kDay);
  EXPECT_EQ(AllowedOf(engine_, "daily", "another", 9), 5);
  Pass(2 * kDay);
  EXPECT_EQ(engine_.Counters().keys, 0u);
}

TEST_F(WallSteps, TenYearsBackShutNobodyOutBeyondADay) {
  EXPECT_EQ(Allowed(9), 5);
  Step(-10 * 366 * kDay);
  EXPECT_EQ(Allowed(9), 0);
  Pass(kDay);
  EXPECT_EQ(Allowed(9), 5);
}

}  // namespace
}  // namespace ebbgate::testing

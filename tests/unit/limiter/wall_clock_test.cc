#include "server/limiter/wall_clock.h"

#include <gtest/gtest.h>

#include <limits>
#include <thread>
#include <vector>

#include "server/limiter/manual_time.h"
#include "tests/support/core_bucket.h"

namespace ebbgate::testing {
namespace {

constexpr std::int64_t kStart = 1'793'500'000 * kSecond;  // In October 2026.

// A wall clock beside a monotonic one that started at 0, looked at once a second.
class Watched {
 public:
  explicit Watched(std::int64_t hold_ns = 10 * kSecond) : clock_(0, kStart, hold_ns) {}

  // Lets `seconds` go by while the system's clock is off by `error_ns`.
  void Pass(int seconds, std::int64_t error_ns) {
    for (int i = 0; i < seconds; ++i) {
      mono_ns_ += kSecond;
      clock_.Observe(mono_ns_, kStart + mono_ns_ + error_ns);
    }
  }

  // How far what the windows see is from the clock at the start.
  std::int64_t Error() const { return clock_.Anchor().offset_ns - kStart; }
  const AnchoredWallClock& clock() const { return clock_; }
  std::int64_t mono_ns() const { return mono_ns_; }

 private:
  std::int64_t mono_ns_ = 0;
  AnchoredWallClock clock_;
};

TEST(AnchoredWallClock, StartsWhereTheSystemsClocksAre) {
  const AnchoredWallClock clock(50, kStart);
  const WallAnchor anchor = clock.Anchor();
  EXPECT_EQ(anchor.offset_ns, kStart - 50);
  EXPECT_EQ(anchor.epoch_offset_ns, kStart - 50);
  EXPECT_EQ(anchor.stepped_back_at_ns, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(WallAt(anchor, 51), kStart + 1);
}

TEST(AnchoredWallClock, AStepIsFollowedWhenItHasHeldAndNotBefore) {
  for (const std::int64_t step : {kHour, -kHour, 10 * 366 * 24 * kHour, -(kWallStepToleranceNs + 1)}) {
    Watched watched;
    watched.Pass(5, 0);
    watched.Pass(10, step);  // Seen for 9 s.
    EXPECT_EQ(watched.Error(), 0) << step;
    watched.Pass(1, step);
    EXPECT_EQ(watched.Error(), step);
    EXPECT_EQ(watched.clock().steps_forward(), step > 0 ? 1 : 0);
    EXPECT_EQ(watched.clock().steps_back(), step < 0 ? 1 : 0);
    watched.Pass(60, step);
    EXPECT_EQ(watched.clock().steps_forward() + watched.clock().steps_back(), 1);
  }
}

TEST(AnchoredWallClock, AStepThatIsTakenBackInTimeIsForgotten) {
  Watched watched;
  for (int i = 0; i < 20; ++i) {
    watched.Pass(9, kHour);
    watched.Pass(1, 0);
  }
  EXPECT_EQ(watched.Error(), 0);
  EXPECT_EQ(watched.clock().steps_forward(), 0);
}

TEST(AnchoredWallClock, AFlappingClockIsNotBelieved) {
  Watched watched;
  for (int i = 0; i < 100; ++i) {
    watched.Pass(6, kHour);
    watched.Pass(6, 2 * kHour);
    watched.Pass(6, -kHour);
  }
  EXPECT_EQ(watched.Error(), 0);
  EXPECT_EQ(watched.clock().steps_forward() + watched.clock().steps_back(), 0);
}

TEST(AnchoredWallClock, TheHoldCountsFromTheLastChangeOfMind) {
  Watched watched;
  watched.Pass(8, kHour);
  watched.Pass(10, 2 * kHour);
  EXPECT_EQ(watched.Error(), 0);
  watched.Pass(1, 2 * kHour);
  EXPECT_EQ(watched.Error(), 2 * kHour);
}

TEST(AnchoredWallClock, NoiseIsNoStep) {
  Watched watched;
  for (int i = 0; i < 50; ++i) watched.Pass(1, i % 2 == 0 ? kWallStepToleranceNs : -kWallStepToleranceNs);
  watched.Pass(100, kWallStepToleranceNs);
  EXPECT_EQ(watched.Error(), 0);
  EXPECT_EQ(watched.clock().steps_forward() + watched.clock().steps_back(), 0);
}

TEST(AnchoredWallClock, ADriftIsFollowedInSmallSteps) {
  Watched watched;
  // 1 ms a second, a bad quartz: after 1,000 s it is a second off.
  for (int i = 1; i <= 1000; ++i) watched.Pass(1, i * 1'000'000);
  EXPECT_NEAR(static_cast<double>(watched.Error()), 1e9, 0.12e9);
  EXPECT_GE(watched.clock().steps_forward(), 5);
  EXPECT_EQ(watched.clock().steps_back(), 0);
}

TEST(AnchoredWallClock, AStepBackIsRememberedWithWhenAndWhere) {
  Watched watched;
  watched.Pass(1, -kHour);
  watched.Pass(10, -kHour);
  const WallAnchor anchor = watched.clock().Anchor();
  EXPECT_EQ(anchor.stepped_back_at_ns, 11 * kSecond);
  EXPECT_EQ(anchor.stepped_back_to_wall_ns, kStart + 11 * kSecond - kHour);
  // A later step forward does not undo that.
  watched.Pass(11, 0);
  EXPECT_EQ(watched.Error(), 0);
  EXPECT_EQ(watched.clock().Anchor().stepped_back_at_ns, 11 * kSecond);
}

TEST(AnchoredWallClock, SlidingWindowsAreNumberedByAClockThatNeverSteps) {
  Watched watched;
  watched.Pass(20, kHour);
  watched.Pass(20, -kHour);
  EXPECT_EQ(watched.Error(), -kHour);
  EXPECT_EQ(watched.clock().Anchor().epoch_offset_ns, kStart);
}

TEST(AnchoredWallClock, WithoutAHoldAStepIsFollowedAtOnce) {
  Watched watched(/*hold_ns=*/0);
  watched.Pass(1, kHour);
  EXPECT_EQ(watched.Error(), kHour);
}

TEST(AnchoredWallClock, AbsurdWallClocksSaturate) {
  AnchoredWallClock clock(0, kStart, 0);
  clock.Observe(-kSecond, kInt64Max);
  EXPECT_EQ(clock.Anchor().offset_ns, kInt64Max);
  EXPECT_EQ(WallAt(clock.Anchor(), 5), kInt64Max - 1);
  clock.Observe(kSecond, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(WallAt(clock.Anchor(), -5), std::numeric_limits<std::int64_t>::min());
}

// Each step k moves the wall to -k hours at monotonic k seconds: any mixture of two steps breaks the relation.
TEST(AnchoredWallClock, ReadersBesideAWriterNeverSeeHalfAStep) {
  AnchoredWallClock clock(0, 0, 0);
  constexpr std::int64_t kSteps = 20'000;
  std::atomic<bool> done = false;
  std::atomic<int> torn = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!done.load()) {
        const WallAnchor anchor = clock.Anchor();
        if (anchor.offset_ns == 0) continue;
        const std::int64_t step = -anchor.offset_ns / kHour;
        const bool whole = anchor.stepped_back_at_ns == step * kSecond &&
                           anchor.stepped_back_to_wall_ns == step * kSecond - step * kHour;
        if (!whole) torn.fetch_add(1);
      }
    });
  }
  for (std::int64_t k = 1; k <= kSteps; ++k) clock.Observe(k * kSecond, k * kSecond - k * kHour);
  done.store(true);
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(torn.load(), 0);
  EXPECT_EQ(clock.steps_back(), kSteps);
}

TEST(SystemTime, RunsForward) {
  const std::int64_t before = SystemTime().MonotonicNs();
  EXPECT_GE(SystemTime().MonotonicNs(), before);
  EXPECT_GT(SystemTime().WallNs(), 1'500'000'000 * kSecond);
}

TEST(ManualTime, MovesOnlyWhenMoved) {
  ManualTime time(/*wall_ns=*/1000, /*mono_ns=*/10);
  time.Advance(5);
  EXPECT_EQ(time.MonotonicNs(), 15);
  EXPECT_EQ(time.WallNs(), 1005);
  time.StepWall(-100);
  EXPECT_EQ(time.MonotonicNs(), 15);
  EXPECT_EQ(time.WallNs(), 905);
  time.MoveTo(12);
  EXPECT_EQ(time.MonotonicNs(), 12);
  EXPECT_EQ(time.WallNs(), 902);
}

}  // namespace
}  // namespace ebbgate::testing

// Reservations on each kind of limit, and through changes of it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/engine/reservations_fixture.h"

namespace ebbgate::testing {
namespace {

// --- Pace, windows, changes ------------------------------------------------------------------------------------------

TEST_F(ReservationsTest, PaceSpacesWorkEvenly) {
  for (const Algorithm algorithm : {Algorithm::kTokenBucket, Algorithm::kGcra}) {
    At(0);
    Limit limit = Bucket("L", 100, 10, kSecond, algorithm);
    limit.parameters.pace = true;
    Make({limit});
    Granted(1, kHour, 0);
    Granted(5, kHour, 100 * kMs);
    Granted(1, kHour, 600 * kMs);
    EXPECT_EQ(Remaining(), 0);
    EXPECT_EQ(Ask(*engine_, "L", "k", 1).retry_after_ns, 700 * kMs);
    At(699 * kMs);
    EXPECT_FALSE(Ask(*engine_, "L", "k", 1).allowed);
    At(700 * kMs);
    EXPECT_EQ(Remaining(), 100);
    EXPECT_TRUE(Ask(*engine_, "L", "k", 1).allowed);
    EXPECT_FALSE(Ask(*engine_, "L", "k", 1).allowed);
    EXPECT_EQ(Ask(*engine_, "L", "k", 1).retry_after_ns, 100 * kMs);
  }
}

// A backlog of q at rate r waits q / r.
TEST_F(ReservationsTest, ALeakyQueueTellsPlaceAndWait) {
  Make({Bucket("L", 1, 100, kSecond)});
  for (int q = 0; q < 500; ++q) Granted(1, kHour, q * 10 * kMs);
  EXPECT_EQ(engine_->Inspect("L", "k")->open_holds, 500u);
  EXPECT_EQ(engine_->Inspect("L", "k")->holds.size(), kMaxHoldsShown);
}

TEST_F(ReservationsTest, AFixedWindowPromisesFromTheNext) {
  Make({Windowed("L", Algorithm::kFixedWindow, 3, 60 * kSecond)});
  At(50 * kSecond);
  Granted(2, 0, 0);
  const std::string id = Granted(2, 20 * kSecond, 10 * kSecond);
  EXPECT_TRUE(Ask(*engine_, "L", "k", 1).allowed);  // Of this window; the promise is of the next.
  EXPECT_FALSE(Ask(*engine_, "L", "k", 1).allowed);
  At(60 * kSecond);
  EXPECT_EQ(Remaining(), 1);
  Cancel(id);
  EXPECT_EQ(Remaining(), 3);
}

// A hold of the window before has nothing left to give back in this one.
TEST_F(ReservationsTest, AFixedWindowTakesBackOnlyWhatStillCounts) {
  Make({Windowed("L", Algorithm::kFixedWindow, 3, 60 * kSecond)});
  At(50 * kSecond);
  const std::string id = Granted(3, 0, 0);
  At(61 * kSecond);
  EXPECT_TRUE(Ask(*engine_, "L", "k", 2).allowed);
  Cancel(id);
  EXPECT_EQ(Remaining(), 1);
}

TEST_F(ReservationsTest, SlidingAndExactWindowsTakeBackWhatStillWeighs) {
  Make({Windowed("L", Algorithm::kSlidingWindow, 10, 60 * kSecond)});
  At(0);
  const std::string sliding = Granted(8, 0, 0);
  At(90 * kSecond);  // Half of the 8 still weigh.
  EXPECT_EQ(Remaining(), 6);
  Cancel(sliding);
  EXPECT_EQ(Remaining(), 10);
  Make({Windowed("L", Algorithm::kExactWindow, 10, 60 * kSecond)});
  const std::string exact = Granted(8, 0, 0);
  const std::string gone = Granted(2, 0, 0);
  At(149 * kSecond);
  EXPECT_EQ(Remaining(), 0);
  Settle(exact, {3});
  EXPECT_EQ(Remaining(), 5);
  At(150 * kSecond);
  EXPECT_EQ(Remaining(), 10);
  EXPECT_TRUE(Ask(*engine_, "L", "k", 10).allowed);
  Cancel(gone);
  EXPECT_EQ(Remaining(), 0);
}

TEST_F(ReservationsTest, AnExactWindowPromisesToo) {
  Make({Windowed("L", Algorithm::kExactWindow, 2, 10 * kSecond)});
  EXPECT_TRUE(Ask(*engine_, "L", "k", 1).allowed);
  At(4 * kSecond);
  EXPECT_TRUE(Ask(*engine_, "L", "k", 1).allowed);
  Granted(1, kHour, 6 * kSecond);   // at 10 s
  Granted(1, kHour, 10 * kSecond);  // at 14 s
  Granted(2, kHour, 20 * kSecond);  // at 24 s
  EXPECT_EQ(Ask(*engine_, "L", "k", 1).retry_after_ns, 30 * kSecond);
  At(34 * kSecond);
  EXPECT_EQ(Remaining(), 2);
}

TEST_F(ReservationsTest, PromisesOutliveAChangeOfTheirLimit) {
  Make({Bucket("L", 4, 1, kSecond)});
  Granted(4, 0, 0);
  const std::string id = Granted(4, kHour, 4 * kSecond);
  At(2 * kSecond);
  engine_->InstallLimits({Bucket("L", 4, 1, 2 * kSecond)});           // At 4 s the bucket will hold 3.
  EXPECT_EQ(Ask(*engine_, "L", "k", 1).retry_after_ns, 6 * kSecond);  // -1 at 4 s, 1 at 8 s
  At(4 * kSecond);
  EXPECT_EQ(engine_->Inspect("L", "k")->level, FromTokens(-1));
  ExpectEnd(Cancel(id), HoldState::kCancelled, false);
  EXPECT_EQ(Remaining(), 3);
}

TEST_F(ReservationsTest, AHoldOfARemovedLimitStillEnds) {
  Make({Bucket("L", 4, 1, kHour), Bucket("M", 4, 1, kHour)});
  const std::string id = Granted(4, 0, 0);
  engine_->InstallLimits({Bucket("M", 4, 1, kHour)});
  ExpectEnd(Settle(id, {1}), HoldState::kSettled, false);
  engine_->InstallLimits({Bucket("L", 4, 1, kHour), Bucket("M", 4, 1, kHour)});
  EXPECT_EQ(Remaining(), 3);
}

// A limit that is not configured and lets everything pass holds nothing that could be charged.
TEST_F(ReservationsTest, AnOverrunWithoutABucketIsUncovered) {
  Make({Bucket("L", 4, 1, kHour)}, {.unknown_limit = UnknownLimit::kAllow});
  const ReserveAnswer held = Reserve({{"gone", "k", 2}}, 0);
  ASSERT_TRUE(held.call.allowed);
  const SettleAnswer settled = Settle(held.reservation_id, {5});
  EXPECT_EQ(settled.charges[0].overrun, 3);
  EXPECT_EQ(settled.charges[0].uncovered, 3);
}

TEST_F(ReservationsTest, ForgetOnlyFullAndWithoutAnOpenHold) {
  Make({Bucket("L", 4, 1, kSecond)});
  const std::string id = Granted(1, 0, 0);
  At(100 * kSecond);
  for (int i = 0; i < 200; ++i) engine_->Maintain();
  EXPECT_TRUE(engine_->Inspect("L", "k")->known);
  Cancel(id);
  At(200 * kSecond);
  for (int i = 0; i < 200; ++i) engine_->Maintain();
  EXPECT_FALSE(engine_->Inspect("L", "k")->known);
}

TEST_F(ReservationsTest, AResetKeepsPromisesAndGivesNothingBack) {
  Make({Bucket("L", 4, 1, kHour)});
  const std::string id = Granted(4, 0, 0);
  EXPECT_TRUE(*engine_->Reset("L", "k"));
  EXPECT_EQ(Remaining(), 4);
  EXPECT_TRUE(Ask(*engine_, "L", "k", 4).allowed);
  ExpectEnd(Cancel(id), HoldState::kCancelled, false);
  EXPECT_EQ(Remaining(), 0);
}

}  // namespace
}  // namespace ebbgate::testing

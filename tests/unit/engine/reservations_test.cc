// Reserve, Settle, Cancel: each rule with its amounts written out.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/engine/reservations_fixture.h"

namespace ebbgate::testing {
namespace {

// --- Waiting ---------------------------------------------------------------------------------------------------------

TEST_F(ReservationsTest, WaitsInTheOrderOfArrival) {
  Make({Bucket("L", 1, 1, kSecond)});
  Granted(1, 10 * kSecond, 0);
  Granted(1, 10 * kSecond, 1 * kSecond);
  Granted(1, 10 * kSecond, 2 * kSecond);
  const ReserveAnswer refused = Reserve({{"L", "k", 1}}, 2 * kSecond);
  EXPECT_FALSE(refused.call.allowed);
  EXPECT_EQ(refused.call.reason, Reason::kQuotaExceeded);
  EXPECT_EQ(refused.call.retry_after_ns, 1 * kSecond);  // Then it waits 2 s, as long as it may.
  EXPECT_EQ(refused.call.charges[0].retry_after_ns, 3 * kSecond);
  EXPECT_EQ(refused.reservation_id, "");
  const CallAnswer check = Ask(*engine_, "L", "k");
  EXPECT_FALSE(check.allowed);
  EXPECT_EQ(check.charges[0].remaining, 0);
  EXPECT_EQ(check.charges[0].retry_after_ns, 3 * kSecond);
  EXPECT_EQ(check.charges[0].reset_after_ns, 3 * kSecond);
  // **Honest wait**, of both.
  At(1 * kSecond - 1);
  EXPECT_FALSE(Reserve({{"L", "k", 1}}, 2 * kSecond).call.allowed);
  At(3 * kSecond - 1);
  EXPECT_FALSE(Ask(*engine_, "L", "k").allowed);
  At(3 * kSecond);
  EXPECT_TRUE(Ask(*engine_, "L", "k").allowed);
}

TEST_F(ReservationsTest, ASmallerCallDoesNotOvertakeIntoWhatWasPromised) {
  Make({Bucket("L", 5, 1, kSecond)});
  EXPECT_TRUE(Ask(*engine_, "L", "k", 2).allowed);
  Granted(5, 10 * kSecond, 2 * kSecond);
  EXPECT_FALSE(Ask(*engine_, "L", "k", 1).allowed);
  EXPECT_EQ(Remaining(), 0);
  EXPECT_EQ(Ask(*engine_, "L", "k", 1).retry_after_ns, 3 * kSecond);
  Granted(1, 10 * kSecond, 3 * kSecond);
}

// A promise for later leaves alone what will have come back by then.
TEST_F(ReservationsTest, TokensThatComeBackInTimeMayBeUsedMeanwhile) {
  Make({Bucket("slow", 1, 1, 10 * kSecond), Bucket("L", 5, 1, kSecond)});
  EXPECT_TRUE(Ask(*engine_, "slow", "k", 1).allowed);
  const ReserveAnswer both = Reserve({{"slow", "k", 1}, {"L", "k", 3}}, 60 * kSecond);
  EXPECT_TRUE(both.call.allowed);
  EXPECT_EQ(both.act_after_ns, 10 * kSecond);
  EXPECT_EQ(Remaining(), 5);
  EXPECT_TRUE(Ask(*engine_, "L", "k", 5).allowed);
  At(7 * kSecond);  // 7 have come, of which the bucket holds 5; 3 more will come.
  EXPECT_EQ(Remaining(), 5);
  At(8 * kSecond);
  EXPECT_EQ(Remaining(), 4);
  At(9 * kSecond);
  EXPECT_EQ(Remaining(), 3);
  EXPECT_FALSE(Ask(*engine_, "L", "k", 4).allowed);
  EXPECT_EQ(Ask(*engine_, "L", "k", 4).charges[0].remaining, 3);
  At(10 * kSecond);
  EXPECT_EQ(Remaining(), 2);
}

TEST_F(ReservationsTest, ACancelledPlaceDoesNotCollide) {
  Make({Bucket("L", 1, 1, kSecond)});
  Granted(1, 10 * kSecond, 0);
  const std::string b = Granted(1, 10 * kSecond, 1 * kSecond);
  Granted(1, 10 * kSecond, 2 * kSecond);
  At(500 * kMs);
  ExpectEnd(Cancel(b), HoldState::kCancelled, false);
  Granted(1, 10 * kSecond, 500 * kMs);   // at 1 s, where b was
  Granted(1, 10 * kSecond, 2500 * kMs);  // at 3 s, behind c
}

TEST_F(ReservationsTest, WhatIsRefusedChangesNothing) {
  Make({Bucket("L", 5, 1, kSecond)});
  const ReserveAnswer never = Reserve({{"L", "k", 6}}, kHour);
  EXPECT_EQ(never.call.reason, Reason::kCostExceedsCapacity);
  EXPECT_EQ(never.call.retry_after_ns, kNoWait);
  Granted(5, 0, 0);
  EXPECT_EQ(Reserve({{"L", "k", 5}}, 4999 * kMs).call.reason, Reason::kQuotaExceeded);
  Granted(5, 5 * kSecond, 5 * kSecond);
  EXPECT_EQ(Counters().denied, 2u);
  EXPECT_EQ(Counters().allowed, 2u);
  EXPECT_EQ(Counters().admitted_cost, 10u);
}

TEST_F(ReservationsTest, TheBoundOnDebtHasItsOwnReason) {
  Limit limit = Bucket("L", 10, 1, kSecond);
  limit.max_debt = 15;
  Make({limit});
  Granted(10, kHour, 0);
  Granted(10, kHour, 10 * kSecond);  // owes 10
  const ReserveAnswer refused = Reserve({{"L", "k", 6}}, kHour);
  EXPECT_EQ(refused.call.reason, Reason::kTooMuchDebt);
  EXPECT_EQ(refused.call.charges[0].reason, Reason::kTooMuchDebt);
  EXPECT_EQ(refused.call.retry_after_ns, kNoWait);
  EXPECT_EQ(Counters().refused_debt, 1u);
  Granted(5, kHour, 15 * kSecond);  // owes 15
  EXPECT_EQ(engine_->Inspect("L", "k")->debt, FromTokens(15));
}

TEST_F(ReservationsTest, TheBoundOnHoldsHasItsOwnReason) {
  Limit limit = Bucket("L", 10, 1, kHour);
  limit.max_holds = 2;
  Make({limit});
  const std::string a = Granted(1, 0, 0);
  Granted(1, 0, 0);
  EXPECT_EQ(Reserve({{"L", "k", 1}}, 0).call.reason, Reason::kTooManyHolds);
  EXPECT_EQ(Counters().refused_holds, 1u);
  EXPECT_TRUE(Reserve({{"L", "other", 1}}, 0).call.allowed);
  Cancel(a);
  Granted(1, 0, 0);
}

TEST_F(ReservationsTest, RoomForHoldsIsBoundedAndItsLackIsNoDenial) {
  Make({Bucket("L", 10, 1, kHour)}, {.max_holds = 3});
  const ReserveAnswer two = Reserve({{"L", "a", 1}, {"L", "b", 1}}, 0);
  EXPECT_TRUE(two.call.allowed);
  const ReserveAnswer refused = Reserve({{"L", "c", 1}, {"L", "d", 1}}, 0);
  ASSERT_NE(refused.call.error, nullptr);
  EXPECT_EQ(refused.call.error->reason, ErrorReason::kHoldsFull);
  EXPECT_EQ(refused.call.error->code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(engine_->Counters().holds_refused, 1u);
  EXPECT_EQ(Counters().failed, 2u);
  EXPECT_EQ(Ask(*engine_, "L", "c", 0).charges[0].remaining, 10);
  Cancel(two.reservation_id);
  EXPECT_TRUE(Reserve({{"L", "c", 1}, {"L", "d", 1}, {"L", "e", 1}}, 0).call.allowed);
}

// --- Giving back -----------------------------------------------------------------------------------------------------

TEST_F(ReservationsTest, CancelTwiceGivesBackOnce) {
  Make({Bucket("L", 10, 1, kHour)});
  EXPECT_TRUE(Ask(*engine_, "L", "k", 5).allowed);
  const std::string id = Granted(5, 0, 0);
  EXPECT_EQ(Remaining(), 0);
  const SettleAnswer first = Cancel(id);
  ExpectEnd(first, HoldState::kCancelled, false);
  EXPECT_EQ(first.charges[0].reserved, 5);
  EXPECT_EQ(first.charges[0].actual, 0);
  EXPECT_EQ(first.charges[0].given_back, 5);
  EXPECT_EQ(Remaining(), 5);
  const SettleAnswer second = Cancel(id);
  ExpectEnd(second, HoldState::kCancelled, true);
  EXPECT_EQ(second.charges[0].given_back, 5);
  EXPECT_EQ(Remaining(), 5);
  EXPECT_EQ(Counters().holds_cancelled, 1u);
  EXPECT_EQ(Counters().given_back_cost, 5u);
}

TEST_F(ReservationsTest, CancelAfterSettleRepeatsTheSettlement) {
  Make({Bucket("L", 60, 1, kSecond)});
  const std::string id = Granted(50, 0, 0);
  ExpectEnd(Settle(id, {37}), HoldState::kSettled, false);
  EXPECT_EQ(Remaining(), 23);
  const SettleAnswer again = Settle(id, {12});
  ExpectEnd(again, HoldState::kSettled, true);
  EXPECT_EQ(again.charges[0].actual, 37);
  ExpectEnd(Cancel(id), HoldState::kSettled, true);
  EXPECT_EQ(Remaining(), 23);
}

TEST_F(ReservationsTest, SettleAfterCancelRepeatsTheCancellation) {
  Make({Bucket("L", 60, 1, kHour)});
  const std::string id = Granted(50, 0, 0);
  Cancel(id);
  const SettleAnswer settle = Settle(id, {37});
  ExpectEnd(settle, HoldState::kCancelled, true);
  EXPECT_EQ(settle.charges[0].actual, 0);
  EXPECT_EQ(Remaining(), 60);
}

TEST_F(ReservationsTest, CancelAfterExpiryGivesNothingBack) {
  Make({Bucket("L", 10, 1, kHour)});
  const std::string id = Granted(4, 0, 0, 30 * kSecond);
  At(30 * kSecond - 1);
  EXPECT_EQ(engine_->Inspect("L", "k")->open_holds, 1u);
  At(30 * kSecond);
  const SettleAnswer late = Cancel(id);
  ExpectEnd(late, HoldState::kExpired, true);
  EXPECT_EQ(late.charges[0].actual, 4);
  EXPECT_EQ(late.charges[0].given_back, 0);
  EXPECT_EQ(Remaining(), 6);
  ExpectEnd(Settle(id, {1}), HoldState::kExpired, true);
  EXPECT_EQ(Counters().holds_expired, 1u);
  EXPECT_EQ(Counters().holds_open, 0u);
}

TEST_F(ReservationsTest, WhereTheLimitSaysSoAnExpiredHoldIsGivenBack) {
  Limit limit = Bucket("L", 10, 1, kHour);
  limit.on_hold_expiry = OnHoldExpiry::kGiveBack;
  Make({limit});
  const std::string id = Granted(4, 0, 0, 30 * kSecond);
  At(30 * kSecond - 1);
  EXPECT_EQ(Remaining(), 6);
  At(30 * kSecond);
  EXPECT_EQ(Remaining(), 10);
  const SettleAnswer late = Settle(id, {4});
  ExpectEnd(late, HoldState::kExpired, true);
  EXPECT_EQ(late.charges[0].actual, 0);
  EXPECT_EQ(late.charges[0].given_back, 4);
  EXPECT_EQ(Remaining(), 10);
  EXPECT_EQ(Counters().given_back_cost, 4u);
}

TEST_F(ReservationsTest, AnOlderHoldIsCancelledAfterNewerOnes) {
  Make({Bucket("L", 10, 1, kSecond)});
  const std::string older = Granted(4, 0, 0);
  Granted(3, 0, 0);
  Granted(3, 0, 0);
  EXPECT_EQ(Remaining(), 0);
  At(1 * kSecond);
  ExpectEnd(Cancel(older), HoldState::kCancelled, false);
  EXPECT_EQ(Remaining(), 4 + 1);
}

TEST_F(ReservationsTest, ALateGiveBackNeverLiftsAboveCapacity) {
  Make({Bucket("L", 10, 1, kSecond)});
  const std::string id = Granted(10, 0, 0);
  At(20 * kSecond);
  EXPECT_EQ(Remaining(), 10);
  const SettleAnswer settled = Settle(id, {1});
  ExpectEnd(settled, HoldState::kSettled, false);
  EXPECT_EQ(settled.charges[0].given_back, 9);
  EXPECT_EQ(settled.charges[0].returned, 0);
  EXPECT_EQ(AllowedOf(*engine_, "L", "k", 12), 10);
}

// What refill has made up for is not given back a second time: at 5 s the bucket was full again, and whoever emptied it
// has had all there was. Five tokens more would be fifteen at one instant out of a bucket of ten (**Envelope**).
TEST_F(ReservationsTest, WhatRefillHasMadeUpForIsNotGivenBack) {
  Make({Bucket("L", 10, 1, kSecond)});
  const std::string id = Granted(5, 0, 0);
  At(5 * kSecond);
  EXPECT_TRUE(Ask(*engine_, "L", "k", 10).allowed);
  const SettleAnswer cancelled = Cancel(id);
  EXPECT_EQ(cancelled.charges[0].given_back, 5);
  EXPECT_EQ(cancelled.charges[0].returned, 0);
  EXPECT_FALSE(Ask(*engine_, "L", "k", 1).allowed);
}

// The level and what may come back are capped together, to the fraction: after half a second at 1 token in 3 s the
// bucket would be full without the hold, and is full when it is cancelled.
TEST_F(ReservationsTest, GivingBackIsExactToTheFraction) {
  for (const Algorithm algorithm : {Algorithm::kTokenBucket, Algorithm::kGcra}) {
    At(0);
    Make({Bucket("L", 10, 1, 3 * kSecond, algorithm)});
    const std::string id = Granted(4, 0, 0);
    At(500 * kMs);
    EXPECT_EQ(Remaining(), 6);
    Cancel(id);
    EXPECT_EQ(Remaining(), 10);
    EXPECT_EQ(Ask(*engine_, "L", "k", 0).charges[0].reset_after_ns, 0);
  }
}

TEST_F(ReservationsTest, AWaitingHoldSettledForLessTakesLess) {
  Make({Bucket("L", 4, 1, kSecond)});
  EXPECT_TRUE(Ask(*engine_, "L", "k", 4).allowed);
  const std::string id = Granted(4, 10 * kSecond, 4 * kSecond);
  EXPECT_EQ(Ask(*engine_, "L", "k", 1).retry_after_ns, 5 * kSecond);
  ExpectEnd(Settle(id, {1}), HoldState::kSettled, false);
  EXPECT_EQ(Ask(*engine_, "L", "k", 1).retry_after_ns, 1 * kSecond);
  At(4 * kSecond);
  EXPECT_EQ(Remaining(), 3);
}

TEST_F(ReservationsTest, AThousandPairsASecondLeaveTheThroughputToOthers) {
  Make({Bucket("L", 10, 10, kSecond)});
  EXPECT_TRUE(Ask(*engine_, "L", "k", 10).allowed);
  int others = 0;
  for (int i = 0; i < 10'000; ++i) {  // ten seconds
    At(i * kMs);
    const ReserveAnswer held = Reserve({{"L", "k", 1}}, i % 2 == 0 ? 0 : kSecond);
    if (held.call.allowed) Cancel(held.reservation_id);
    others += AllowedOf(*engine_, "L", "k", 1);
  }
  EXPECT_EQ(others, 99);  // at 100 ms, 200 ms, ... 9.9 s
}

// --- Overrun ---------------------------------------------------------------------------------------------------------

TEST_F(ReservationsTest, AnOverrunIsDebt) {
  Make({Bucket("L", 10, 1, kSecond)});
  const std::string id = Granted(6, 0, 0);
  const SettleAnswer settled = Settle(id, {13});
  EXPECT_EQ(settled.charges[0].overrun, 7);
  EXPECT_EQ(settled.charges[0].uncovered, 0);
  EXPECT_EQ(engine_->Inspect("L", "k")->level, FromTokens(-3));
  EXPECT_EQ(engine_->Inspect("L", "k")->debt, FromTokens(3));
  EXPECT_EQ(Remaining(), 0);
  EXPECT_EQ(Ask(*engine_, "L", "k", 1).retry_after_ns, 4 * kSecond);
  EXPECT_EQ(Ask(*engine_, "L", "k", 0).charges[0].reset_after_ns, 13 * kSecond);
  EXPECT_EQ(Counters().overrun_cost, 7u);
}

TEST_F(ReservationsTest, BeyondTheBoundOnDebtAnOverrunIsUncovered) {
  Limit limit = Bucket("L", 10, 1, kSecond);
  limit.max_debt = 5;
  Make({limit});
  const std::string id = Granted(6, 0, 0);
  const SettleAnswer settled = Settle(id, {20});
  EXPECT_EQ(settled.charges[0].overrun, 14);
  EXPECT_EQ(settled.charges[0].uncovered, 5);  // 4 were there, 5 may be owed.
  EXPECT_EQ(engine_->Inspect("L", "k")->level, FromTokens(-5));
  EXPECT_EQ(Counters().overrun_cost, 9u);
  EXPECT_EQ(Counters().uncovered_cost, 5u);
  EXPECT_EQ(Counters().admitted_cost, 6u);
}

// --- Terms -----------------------------------------------------------------------------------------------------------

TEST_F(ReservationsTest, BadInputNamesTheField) {
  Make({Bucket("L", 10, 1, kHour)});
  const auto field = [](const auto& error) { return error == nullptr ? "" : error->field; };
  EXPECT_EQ(field(Reserve({{"L", "k", 1}}, -1).call.error), "max_wait");
  EXPECT_EQ(field(Reserve({{"L", "k", 1}}, kMaxHoldNs + 1).call.error), "max_wait");
  EXPECT_EQ(field(Reserve({{"L", "k", 1}}, 0, 0).call.error), "hold_for");
  EXPECT_EQ(field(Reserve({{"L", "k", 1}}, 0, kMaxHoldNs + 1).call.error), "hold_for");
  EXPECT_EQ(field(Reserve({{"L", "", 1}}, 0).call.error), "charges[0].key");
  EXPECT_EQ(field(Reserve({}, 0).call.error), "charges");
  const std::string id = Granted(5, 0, 0);
  EXPECT_EQ(field(Settle(id, {}).error), "actual");
  EXPECT_EQ(field(Settle(id, {1, 2}).error), "actual");
  EXPECT_EQ(field(Settle(id, {-1}).error), "actual[0]");
  EXPECT_EQ(field(Settle(id, {kMaxCostTokens + 1}).error), "actual[0]");
  EXPECT_EQ(field(Cancel("").error), "reservation_id");
  EXPECT_EQ(field(Cancel(std::string(32, 'x')).error), "reservation_id");
  EXPECT_EQ(Cancel(std::string(32, 'a')).error->reason, ErrorReason::kUnknownHold);
  EXPECT_EQ(Remaining(), 5);
  ExpectEnd(Cancel(id), HoldState::kCancelled, false);
  EXPECT_EQ(engine_->Counters().holds, 0u);
}

TEST_F(ReservationsTest, AllOrNothing) {
  Make({Bucket("user", 5, 1, kSecond), Bucket("tenant", 8, 1, kSecond), Bucket("all", 10, 1, kHour)});
  EXPECT_TRUE(Ask(*engine_, "user", "k", 3).allowed);
  EXPECT_TRUE(Ask(*engine_, "tenant", "k", 8).allowed);
  const std::vector<ChargeRequest> charges = {{"user", "k", 4}, {"tenant", "k", 4}, {"all", "k", 4}};
  const ReserveAnswer refused = Reserve(charges, 3999 * kMs);
  EXPECT_FALSE(refused.call.allowed);
  EXPECT_EQ(refused.call.charges[0].reason, Reason::kAllowed);  // It would have been in time: at 2 s.
  EXPECT_EQ(refused.call.charges[1].reason, Reason::kQuotaExceeded);
  EXPECT_EQ(refused.call.charges[1].retry_after_ns, 4 * kSecond);
  EXPECT_EQ(refused.call.charges[2].reason, Reason::kAllowed);
  EXPECT_EQ(Ask(*engine_, "all", "k", 0).charges[0].remaining, 10);
  const ReserveAnswer granted = Reserve(charges, 4 * kSecond);
  EXPECT_EQ(granted.act_after_ns, 4 * kSecond);
  ExpectEnd(Settle(granted.reservation_id, {1, 2, 3}), HoldState::kSettled, false);
  At(4 * kSecond);
  EXPECT_EQ(Ask(*engine_, "user", "k", 0).charges[0].remaining, 4);
  EXPECT_EQ(Ask(*engine_, "tenant", "k", 0).charges[0].remaining, 2);
  EXPECT_EQ(Ask(*engine_, "all", "k", 0).charges[0].remaining, 7);
}

TEST_F(ReservationsTest, ALimitInShadowModeNeitherHindersNorIsTakenFrom) {
  Limit shadow = Bucket("S", 1, 1, kHour);
  shadow.shadow = true;
  Make({Bucket("L", 5, 1, kSecond), shadow});
  EXPECT_TRUE(Ask(*engine_, "S", "k", 1).allowed);
  const ReserveAnswer granted = Reserve({{"L", "k", 5}, {"S", "k", 1}}, 0);
  EXPECT_TRUE(granted.call.allowed);
  EXPECT_EQ(granted.call.reason, Reason::kShadowed);
  EXPECT_EQ(granted.call.charges[1].reason, Reason::kShadowed);
  Settle(granted.reservation_id, {1, 0});
  EXPECT_EQ(Remaining(), 4);
  EXPECT_EQ(Ask(*engine_, "S", "k", 0).charges[0].remaining, 0);
}

TEST_F(ReservationsTest, ChargesToOneBucketAddUp) {
  Make({Bucket("L", 10, 1, kHour)});
  const ReserveAnswer held = Reserve({{"L", "k", 4}, {"L", "k", 5}}, 0);
  EXPECT_EQ(Remaining(), 1);
  const SettleAnswer settled = Settle(held.reservation_id, {1, 7});  // 8 of 9
  EXPECT_EQ(settled.charges[0].given_back, 3);
  EXPECT_EQ(settled.charges[1].overrun, 2);
  EXPECT_EQ(Remaining(), 2);
}

TEST_F(ReservationsTest, OnceForReservations) {
  Make({Bucket("L", 10, 1, kSecond)});
  Granted(10, 0, 0);
  const ReserveAnswer first = Reserve({{"L", "k", 4}}, kHour, 60 * kSecond, "id");
  EXPECT_EQ(first.act_after_ns, 4 * kSecond);
  At(1 * kSecond);
  const ReserveAnswer second = Reserve({{"L", "k", 4}}, kHour, 60 * kSecond, "id");
  EXPECT_TRUE(second.call.replayed);
  EXPECT_EQ(second.reservation_id, first.reservation_id);
  EXPECT_EQ(second.act_after_ns, 3 * kSecond);
  EXPECT_EQ(second.expires_after_ns, 63 * kSecond);
  EXPECT_EQ(engine_->Inspect("L", "k")->open_holds, 2u);
  EXPECT_EQ(engine_->Inspect("L", "k")->request_ids, 1u);
  EXPECT_GT(engine_->Counters().request_id_bytes, 0u);
  ASSERT_NE(Reserve({{"L", "k", 5}}, kHour, 60 * kSecond, "id").call.error, nullptr);
  EXPECT_EQ(Ask(*engine_, {{"L", "k", 4}}, "id").error->reason, ErrorReason::kRequestIdReused);
}

TEST_F(ReservationsTest, HoweverFewHoldsMayBeOpenAnEndCanBeRepeated) {
  Make({Bucket("L", 10, 1, kHour)}, {.max_holds = 1});
  const std::string id = Granted(5, 0, 0);
  Cancel(id);
  ExpectEnd(Cancel(id), HoldState::kCancelled, true);
}

TEST_F(ReservationsTest, APartOfATokenThatIsNotCoveredIsSaidToBeAWholeOne) {
  Limit limit = Bucket("L", 10, 1, kSecond);
  limit.max_debt = 0;
  Make({limit});
  EXPECT_TRUE(Ask(*engine_, "L", "k", 4).allowed);
  At(500 * kMs);
  const std::string id = Granted(6, 0, 0);
  const SettleAnswer settled = Settle(id, {8});  // Half a token is left to cover two.
  EXPECT_EQ(settled.charges[0].overrun, 2);
  EXPECT_EQ(settled.charges[0].uncovered, 2);
  EXPECT_EQ(engine_->Inspect("L", "k")->level, 0);
}

TEST_F(ReservationsTest, AnEndedReservationIsForgottenAfterTheDedupeWindow) {
  Make({Bucket("L", 10, 1, kHour)}, {.dedupe_window_ns = 60 * kSecond});
  const std::string id = Granted(5, 0, 0);
  Cancel(id);
  At(60 * kSecond - 1);
  engine_->Maintain();
  ExpectEnd(Cancel(id), HoldState::kCancelled, true);
  At(60 * kSecond);
  engine_->Maintain();
  EXPECT_EQ(Cancel(id).error->reason, ErrorReason::kUnknownHold);
}

}  // namespace
}  // namespace ebbgate::testing

// Reservations by the client library: what is sent, what is repeated, and what the guard does.
#include "client/hold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <type_traits>

#include "tests/unit/client/fake_server.h"
#include "tests/unit/client/fake_surroundings.h"

namespace ebbgate::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Far above what anything here takes; nothing waits for it.
constexpr absl::Duration kLong = absl::Seconds(60);
const ReserveCall kReport = {.charges = {{.limit = "reports", .key = "team-7", .cost = 50}}};

static_assert(!std::is_copy_constructible_v<Hold> && std::is_nothrow_move_constructible_v<Hold>);

class HoldTest : public testing::Test {
 protected:
  std::unique_ptr<Client> Connect(Retry which = Retry::kSafe) {
    return *Client::Connect({.address = server_.address(), .retry = {.which = which}, .surroundings = surroundings_});
  }

  // UNAVAILABLE to the first `n` calls that ask this.
  std::function<bool()> Failing(int n) {
    return [n]() mutable { return n-- > 0; };
  }

  static grpc::Status Gone() { return grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone"); }

  FakeServer server_;
  const std::shared_ptr<FakeSurroundings> surroundings_ = std::make_shared<FakeSurroundings>();
};

TEST_F(HoldTest, ReserveSendsEveryField) {
  ReserveCall call = kReport;
  call.charges.push_back({.limit = "all", .key = "total"});
  call.max_wait = absl::Milliseconds(1500);
  call.hold_for = absl::Minutes(2);
  call.request_id = "r-1";
  ASSERT_TRUE(Connect()->Reserve(call, kLong).ok());
  const v1::ReserveRequest sent = server_.reservations()[0];
  EXPECT_EQ(sent.charges(0).limit(), "reports");
  EXPECT_EQ(sent.charges(0).cost(), 50);
  EXPECT_FALSE(sent.charges(1).has_cost());
  EXPECT_EQ(sent.max_wait().seconds(), 1);
  EXPECT_EQ(sent.max_wait().nanos(), 500'000'000);
  EXPECT_EQ(sent.hold_for().seconds(), 120);
  EXPECT_EQ(sent.request_id(), "r-1");
}

TEST_F(HoldTest, WhatIsNotSaidIsNotSent) {
  ASSERT_TRUE(Connect(Retry::kNever)->Reserve(kReport, kLong).ok());
  EXPECT_FALSE(server_.reservations()[0].has_hold_for());
  EXPECT_EQ(server_.reservations()[0].request_id(), "") << "nothing is repeated";
}

TEST_F(HoldTest, TimesBeyondAllBoundsAreTheServersToRefuse) {
  ReserveCall call = kReport;
  call.max_wait = absl::InfiniteDuration();
  call.hold_for = -absl::Milliseconds(1500);
  ASSERT_TRUE(Connect()->Reserve(call, kLong).ok());
  EXPECT_GT(server_.reservations()[0].max_wait().seconds(), 1'000'000'000'000);
  EXPECT_EQ(server_.reservations()[0].hold_for().seconds(), -1);
  EXPECT_EQ(server_.reservations()[0].hold_for().nanos(), -500'000'000);
}

TEST_F(HoldTest, ReadsAGrant) {
  server_.reserve = [](const v1::ReserveRequest&, v1::ReserveResponse& response) {
    response.set_granted(true);
    response.set_reason(v1::SHADOWED);
    response.set_reservation_id(kReservationId);
    response.mutable_act_after()->set_nanos(7);
    response.mutable_expires_after()->set_seconds(60);
    response.set_replayed(true);
    response.add_charges()->set_remaining(3);
    return grpc::Status::OK;
  };
  const auto answer = Connect()->Reserve(kReport, kLong);
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(answer->granted);
  EXPECT_EQ(answer->reason, Reason::kShadowed);
  EXPECT_EQ(answer->reservation_id, kReservationId);
  EXPECT_EQ(answer->act_after, absl::Nanoseconds(7));
  EXPECT_EQ(answer->expires_after, absl::Seconds(60));
  EXPECT_EQ(answer->retry_after, std::nullopt);
  EXPECT_TRUE(answer->replayed);
  EXPECT_EQ(answer->charges.at(0).remaining, 3);
}

TEST_F(HoldTest, ReadsEveryRefusal) {
  for (const auto& [wire, reason] :
       {std::pair(v1::QUOTA_EXCEEDED, Reason::kQuotaExceeded),
        std::pair(v1::COST_EXCEEDS_CAPACITY, Reason::kCostExceedsCapacity),
        std::pair(v1::TOO_MUCH_DEBT, Reason::kTooMuchDebt), std::pair(v1::TOO_MANY_HOLDS, Reason::kTooManyHolds)}) {
    server_.reserve = [wire = wire](const v1::ReserveRequest&, v1::ReserveResponse& response) {
      response.set_reason(wire);
      response.mutable_retry_after()->set_seconds(4);
      return grpc::Status::OK;
    };
    const auto answer = Connect()->Reserve(kReport, kLong);
    ASSERT_TRUE(answer.ok());
    EXPECT_FALSE(answer->granted);
    EXPECT_EQ(answer->reason, reason);
    EXPECT_EQ(Name(answer->reason), v1::Reason_Name(wire));
    EXPECT_EQ(answer->retry_after, absl::Seconds(4));
  }
}

TEST_F(HoldTest, SettleAndCancelTellWhatBecameOfIt) {
  server_.settle = [](const v1::SettleRequest&, v1::SettleResponse& response) {
    response.set_state(v1::EXPIRED);
    response.set_repeated(true);
    v1::SettledCharge& charge = *response.add_charges();
    charge.set_limit("reports");
    charge.set_key("team-7");
    charge.set_reserved(50);
    charge.set_actual(61);
    charge.set_overrun(11);
    charge.set_uncovered(1);
    return grpc::Status::OK;
  };
  const auto client = Connect();
  const auto settled = client->Settle(kReservationId, {61, 2}, kLong);
  ASSERT_TRUE(settled.ok());
  EXPECT_THAT(server_.settlings()[0].actual(), ElementsAre(61, 2));
  EXPECT_EQ(server_.settlings()[0].reservation_id(), kReservationId);
  EXPECT_EQ(settled->state, HoldState::kExpired);
  EXPECT_TRUE(settled->repeated);
  const SettledCharge& charge = settled->charges.at(0);
  EXPECT_EQ(charge.limit + "/" + charge.key, "reports/team-7");
  EXPECT_EQ(charge.reserved, 50);
  EXPECT_EQ(charge.actual, 61);
  EXPECT_EQ(charge.given_back, 0);
  EXPECT_EQ(charge.overrun, 11);
  EXPECT_EQ(charge.uncovered, 1);
  const auto cancelled = client->Cancel(kReservationId, kLong);
  ASSERT_TRUE(cancelled.ok());
  EXPECT_EQ(cancelled->state, HoldState::kCancelled);
  EXPECT_EQ(cancelled->charges.at(0).given_back, 50);
  EXPECT_EQ(Name(cancelled->state), "CANCELLED");
}

// --- Asking again ----------------------------------------------------------------------------------------------------

TEST_F(HoldTest, OnceAReservationIsRepeatedWithTheSameId) {
  server_.reserve = [fails = Failing(2), grant = server_.reserve](const auto& call, auto& response) mutable {
    return fails() ? Gone() : grant(call, response);
  };
  const auto client = Connect();
  const auto answer = client->Reserve(kReport, kLong);
  ASSERT_TRUE(answer.ok()) << answer.status();
  std::set<std::string> ids;
  for (const v1::ReserveRequest& call : server_.reservations()) ids.insert(call.request_id());
  EXPECT_THAT(server_.reservations(), SizeIs(3));
  ASSERT_THAT(ids, SizeIs(1));
  EXPECT_THAT(*ids.begin(), SizeIs(32));
  EXPECT_THAT(surroundings_->slept, SizeIs(2));
  // Another call is another call.
  ASSERT_TRUE(client->Reserve(kReport, kLong).ok());
  EXPECT_NE(server_.reservations().back().request_id(), *ids.begin());
}

TEST_F(HoldTest, EndingAHoldIsRepeated) {
  server_.settle = [fails = Failing(1), settle = server_.settle](const auto& call, auto& response) mutable {
    return fails() ? Gone() : settle(call, response);
  };
  server_.cancel = [fails = Failing(1), cancel = server_.cancel](const auto& call, auto& response) mutable {
    return fails() ? Gone() : cancel(call, response);
  };
  const auto client = Connect();
  EXPECT_TRUE(client->Settle(kReservationId, {1}, kLong).ok());
  EXPECT_TRUE(client->Cancel(kReservationId, kLong).ok());
  EXPECT_THAT(server_.settlings(), SizeIs(2));
  EXPECT_THAT(server_.cancelled(), SizeIs(2));
}

struct ChargingCall {
  Retry which;
  Call call;
  int attempts;
  bool has_id;
};

TEST_F(HoldTest, OnceACallThatCouldBeChargedTwiceIsNotRepeated) {
  const std::vector<Charge> charges = {{.limit = "user", .key = "alice"}};
  const ChargingCall cases[] = {
      {Retry::kSafe, {.charges = charges}, 1, false},
      {Retry::kSafe, {.charges = charges, .request_id = "r"}, 2, true},
      {Retry::kSafe, {.charges = charges, .peek = true}, 2, false},
      {Retry::kAlways, {.charges = charges}, 2, true},
      {Retry::kAlways, {.charges = charges, .peek = true}, 2, false},
      {Retry::kNever, {.charges = charges, .request_id = "r"}, 1, true},
      {Retry::kNever, {.charges = charges}, 1, false},
  };
  const FakeServer::Decide allow = server_.decide;
  for (const ChargingCall& each : cases) {
    server_.decide = [fails = Failing(1), allow](const auto& call, auto& response) mutable {
      return fails() ? Gone() : allow(call, response);
    };
    const std::size_t before = server_.calls().size();
    const auto client = Connect(each.which);
    EXPECT_EQ(client->ShouldAllow(each.call, kLong).ok(), each.attempts > 1);
    const auto calls = server_.calls();
    EXPECT_EQ(calls.size() - before, static_cast<std::size_t>(each.attempts));
    EXPECT_EQ(calls.back().request_id() != "", each.has_id);
    EXPECT_EQ(calls.back().request_id(), calls[before].request_id());
  }
}

TEST_F(HoldTest, WithoutRandomnessThereIsNoIdAndNoSecondAttempt) {
  surroundings_->has_randomness = false;
  server_.reserve = [](const auto&, auto&) { return Gone(); };
  EXPECT_EQ(Connect()->Reserve(kReport, kLong).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(server_.reservations(), SizeIs(1));
}

TEST_F(HoldTest, ABatchIsGivenIdsOneByOne) {
  const std::vector<Call> calls(3, Call{.charges = {{.limit = "user", .key = "alice"}}});
  ASSERT_TRUE(Connect(Retry::kAlways)->ShouldAllowBatch(calls, kLong).ok());
  std::set<std::string> ids;
  for (const v1::ShouldAllowRequest& call : server_.calls()) ids.insert(call.request_id());
  EXPECT_THAT(ids, SizeIs(3));
}

// --- The guard -------------------------------------------------------------------------------------------------------

TEST_F(HoldTest, AGuardCancelsWhatWasNeverSettled) {
  const auto client = Connect();
  {
    const auto hold = Hold::Take(*client, kReport, kLong);
    ASSERT_TRUE(hold.ok());
    EXPECT_TRUE(hold->granted());
    EXPECT_THAT(server_.cancelled(), IsEmpty());
  }
  EXPECT_THAT(server_.cancelled(), ElementsAre(kReservationId));
}

TEST_F(HoldTest, AGuardLeavesAloneWhatHasEnded) {
  const auto client = Connect();
  {
    Hold settled = *Hold::Take(*client, kReport, kLong);
    EXPECT_EQ(settled.Settle({37}, kLong)->charges.at(0).given_back, 13);
    Hold released = *Hold::Take(*client, kReport, kLong);
    EXPECT_EQ(released.Release(), kReservationId);
  }
  EXPECT_THAT(server_.cancelled(), IsEmpty());
  {
    Hold cancelled = *Hold::Take(*client, kReport, kLong);
    EXPECT_TRUE(cancelled.Cancel(kLong).ok());
  }
  EXPECT_THAT(server_.cancelled(), SizeIs(1)) << "once";
}

TEST_F(HoldTest, AGuardDoesNotTakeBackWorkThatWasDone) {
  server_.settle = [](const auto&, auto&) { return Gone(); };
  const auto client = Connect();
  {
    Hold hold = *Hold::Take(*client, kReport, kLong);
    EXPECT_FALSE(hold.Settle({37}, kLong).ok());
  }
  EXPECT_THAT(server_.cancelled(), IsEmpty());
}

TEST_F(HoldTest, AGuardOfARefusalGuardsNothing) {
  server_.reserve = [](const v1::ReserveRequest&, v1::ReserveResponse& response) {
    response.set_reason(v1::QUOTA_EXCEEDED);
    return grpc::Status::OK;
  };
  const auto client = Connect();
  EXPECT_FALSE(Hold::Take(*client, kReport, kLong)->granted());
  EXPECT_THAT(server_.cancelled(), IsEmpty());
}

TEST_F(HoldTest, AnErrorIsNoHold) {
  server_.reserve = [](const auto&, auto&) {
    return ErrorWithDetails(grpc::StatusCode::NOT_FOUND, "no limit", "UNKNOWN_LIMIT", "charges[0].limit");
  };
  const auto client = Connect();
  EXPECT_EQ(DetailsOf(Hold::Take(*client, kReport, kLong).status()).reason, "UNKNOWN_LIMIT");
}

TEST_F(HoldTest, AGuardThatMovedGuardsAtItsNewPlace) {
  const auto client = Connect();
  {
    Hold first = *Hold::Take(*client, kReport, kLong);
    Hold second = std::move(first);
    EXPECT_FALSE(first.granted());  // NOLINT(bugprone-use-after-move): what is promised of it
    EXPECT_TRUE(second.granted());
    Hold third = *Hold::Take(*client, kReport, kLong);
    third = std::move(second);
    EXPECT_THAT(server_.cancelled(), SizeIs(1)) << "what the third guarded before";
    third.Settle({1}, kLong).IgnoreError();
  }
  EXPECT_THAT(server_.cancelled(), SizeIs(1));
}

TEST_F(HoldTest, WaitsForItsTurn) {
  server_.reserve = [grant = server_.reserve](const auto& call, auto& response) {
    const grpc::Status status = grant(call, response);
    response.mutable_act_after()->set_seconds(3);
    return status;
  };
  const auto client = Connect();
  Hold hold = *Hold::Take(*client, kReport, kLong);
  EXPECT_EQ(hold.TimeToTurn(), absl::Seconds(3));
  surroundings_->now += absl::Seconds(1);
  hold.WaitForTurn();
  EXPECT_THAT(surroundings_->slept, ElementsAre(absl::Seconds(2)));
  EXPECT_EQ(hold.TimeToTurn(), absl::ZeroDuration());
  hold.WaitForTurn();
  EXPECT_THAT(surroundings_->slept, SizeIs(1));
}

}  // namespace
}  // namespace ebbgate::client

// ebbgate reserve, settle, cancel, and what inspect says of holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "client/cli/app.h"
#include "tests/unit/client/fake_server.h"

namespace ebbgate::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct Ran {
  int exit_code;
  std::string out;
  std::string err;
};

class ReserveCommandTest : public testing::Test {
 protected:
  Ran Ask(const std::vector<std::string>& args) {
    std::vector<std::string> all = {"--server", server_.address(), "--admin", server_.address(), "--timeout", "60s"};
    all.insert(all.end(), args.begin(), args.end());
    std::ostringstream out, err;
    const int code = RunCommandLine(all, out, err);
    return {code, out.str(), err.str()};
  }

  // Reserve refuses for this reason.
  void Refuse(v1::Reason reason) {
    server_.reserve = [reason](const v1::ReserveRequest& call, v1::ReserveResponse& response) {
      response.set_reason(reason);
      if (reason == v1::QUOTA_EXCEEDED) response.mutable_retry_after()->set_seconds(4);
      for (const v1::Charge& charge : call.charges()) {
        v1::ChargeResult& result = *response.add_charges();
        result.set_limit(charge.limit());
        result.set_capacity(60);
        result.set_reason(reason);
        if (reason == v1::QUOTA_EXCEEDED) result.mutable_retry_after()->set_seconds(9);
      }
      return grpc::Status::OK;
    };
  }

  void End(v1::HoldState state) {
    server_.settle = [state](const v1::SettleRequest&, v1::SettleResponse& response) {
      response.set_state(state);
      response.set_repeated(true);
      return grpc::Status::OK;
    };
    server_.cancel = [state](const v1::CancelRequest&, v1::SettleResponse& response) {
      response.set_state(state);
      response.set_repeated(true);
      return grpc::Status::OK;
    };
  }

  FakeServer server_;
};

TEST_F(ReserveCommandTest, GrantedIsZero) {
  const Ran ran = Ask({"reserve", "reports", "team-7", "--cost", "50"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.out,
            "granted    may start now; expires in 10m\n"
            "  id       0123456789abcdef0123456789abcdef\n"
            "  reports  team-7  10 of 60 left, full in 50s\n");
  EXPECT_EQ(server_.reservations()[0].charges(0).cost(), 50);
  EXPECT_EQ(server_.reservations()[0].max_wait().seconds(), 0);
  EXPECT_FALSE(server_.reservations()[0].has_hold_for());
  EXPECT_THAT(server_.reservations()[0].request_id(), Not(IsEmpty())) << "made by the library";
}

TEST_F(ReserveCommandTest, SendsEveryFlag) {
  const Ran ran = Ask({"reserve", "a", "k", "--max-wait", "1m30s", "--hold-for", "2s", "--request-id", "r-1", "--and",
                       "b", "l", "--cost", "5"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  const v1::ReserveRequest sent = server_.reservations()[0];
  EXPECT_EQ(sent.max_wait().seconds(), 90);
  EXPECT_EQ(sent.hold_for().seconds(), 2);
  EXPECT_EQ(sent.request_id(), "r-1");
  ASSERT_EQ(sent.charges_size(), 2);
  EXPECT_EQ(sent.charges(1).limit(), "b");
  EXPECT_EQ(sent.charges(1).cost(), 5);
  EXPECT_EQ(Ask({"reserve", "a", "k", "--max-wait", "0s"}).exit_code, 0);
  EXPECT_EQ(Ask({"reserve", "a", "k", "--max-wait", "-1s"}).exit_code, 2);
  EXPECT_EQ(Ask({"reserve", "a", "k", "--hold-for", "0s"}).exit_code, 2);
}

TEST_F(ReserveCommandTest, RefusedIsOneAndSaysWhy) {
  Refuse(v1::QUOTA_EXCEEDED);
  const Ran ran = Ask({"reserve", "reports", "team-7"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(ran.out,
            "refused    its turn would come too late; retry in 4s\n"
            "  reports  team-7  0 of 60 left, could start in 9s\n");
  Refuse(v1::COST_EXCEEDS_CAPACITY);
  EXPECT_THAT(Ask({"reserve", "reports", "team-7"}).out, HasSubstr("never: a cost is above its capacity"));
  Refuse(v1::TOO_MUCH_DEBT);
  EXPECT_THAT(Ask({"reserve", "reports", "team-7"}).out, HasSubstr("would owe too much"));
  Refuse(v1::TOO_MANY_HOLDS);
  EXPECT_THAT(Ask({"reserve", "reports", "team-7"}).out, HasSubstr("too many open holds"));
  EXPECT_THAT(Ask({"reserve", "reports", "team-7", "--json"}).out,
              HasSubstr(R"({"granted": false, "reason": "TOO_MANY_HOLDS", "replayed": false, "charges": [{)"));
}

TEST_F(ReserveCommandTest, JsonHasEverything) {
  EXPECT_EQ(Ask({"reserve", "reports", "team-7", "--json"}).out,
            R"({"granted": true, "reason": "ALLOWED", "reservation_id": "0123456789abcdef0123456789abcdef", )"
            R"("act_after": "0s", "expires_after": "600s", "replayed": false, "charges": [{"limit": "reports", )"
            R"("key": "team-7", "reason": "ALLOWED", "remaining": 10, "capacity": 60, "reset_after": "50s", )"
            R"("tightest": false}]})"
            "\n");
}

TEST_F(ReserveCommandTest, TheIdAloneIsForScripts) {
  const Ran granted = Ask({"reserve", "reports", "team-7", "--id-only"});
  EXPECT_EQ(granted.out, "0123456789abcdef0123456789abcdef\n");
  Refuse(v1::QUOTA_EXCEEDED);
  const Ran refused = Ask({"reserve", "reports", "team-7", "--id-only"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.out, IsEmpty());
  EXPECT_THAT(refused.err, HasSubstr("refused"));
}

TEST_F(ReserveCommandTest, WaitsForItsTurn) {
  server_.reserve = [grant = server_.reserve](const auto& call, auto& response) {
    const grpc::Status status = grant(call, response);
    response.mutable_act_after()->set_nanos(1'000'000);
    response.set_replayed(true);
    return status;
  };
  const absl::Time before = absl::Now();
  const Ran ran = Ask({"reserve", "reports", "team-7", "--wait"});
  EXPECT_GE(absl::Now() - before, absl::Milliseconds(1));
  EXPECT_THAT(ran.out,
              HasSubstr("may start in 1ms; expires in 10m  (the reservation of an earlier call with this id)"));
}

TEST_F(ReserveCommandTest, SettledIsZero) {
  const Ran ran = Ask({"settle", kReservationId, "37"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.out, "settled   37 of 50 spent, 13 given back\n");
  EXPECT_EQ(server_.settlings()[0].reservation_id(), kReservationId);
  EXPECT_EQ(Ask({"settle", kReservationId, "37", "--json"}).out,
            R"({"state": "SETTLED", "repeated": false, "charges": [{"limit": "reports", "key": "team-7", )"
            R"("reserved": 50, "actual": 37, "given_back": 13, "overrun": 0, "uncovered": 0}]})"
            "\n");
  Ask({"settle", kReservationId, "37", "0", "5"});
  EXPECT_THAT(server_.settlings().back().actual(), ElementsAre(37, 0, 5));
}

TEST_F(ReserveCommandTest, CancelledIsZero) {
  const Ran ran = Ask({"cancel", kReservationId});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.out, "cancelled   0 of 50 spent, 50 given back\n");
  EXPECT_THAT(server_.cancelled(), ElementsAre(kReservationId));
}

TEST_F(ReserveCommandTest, AnotherEndIsOne) {
  for (const v1::HoldState state : {v1::SETTLED, v1::CANCELLED, v1::EXPIRED}) {
    End(state);
    EXPECT_EQ(Ask({"settle", kReservationId, "37"}).exit_code, state == v1::SETTLED ? 0 : 1);
    EXPECT_EQ(Ask({"cancel", kReservationId}).exit_code, state == v1::CANCELLED ? 0 : 1);
  }
  EXPECT_THAT(Ask({"cancel", kReservationId}).out, HasSubstr("expired   (it had ended before)"));
}

TEST_F(ReserveCommandTest, AnOverrunIsTold) {
  server_.settle = [](const v1::SettleRequest&, v1::SettleResponse& response) {
    response.set_state(v1::SETTLED);
    for (const char* limit : {"reports", "all"}) {
      v1::SettledCharge& charge = *response.add_charges();
      charge.set_limit(limit);
      charge.set_key("team-7");
      charge.set_reserved(50);
      charge.set_actual(61);
      charge.set_overrun(11);
    }
    response.mutable_charges(1)->set_uncovered(1);
    return grpc::Status::OK;
  };
  EXPECT_EQ(Ask({"settle", kReservationId, "61", "61"}).out,
            "settled\n"
            "  reports  team-7  61 of 50 spent, 11 too many\n"
            "  all      team-7  61 of 50 spent, 11 too many, 1 of them not charged\n");
}

TEST_F(ReserveCommandTest, AnUnknownReservationIsTwo) {
  server_.cancel = [](const auto&, auto&) {
    return ErrorWithDetails(grpc::StatusCode::NOT_FOUND, "no such reservation", "UNKNOWN_RESERVATION", "");
  };
  const Ran ran = Ask({"cancel", "x"});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("NOT_FOUND UNKNOWN_RESERVATION"));
  EXPECT_THAT(ran.err, HasSubstr("32 characters"));
}

TEST_F(ReserveCommandTest, WrongUseIsTwo) {
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{{"reserve", "a"},
                                                                                    {"settle"},
                                                                                    {"settle", "id"},
                                                                                    {"settle", "id", "many"},
                                                                                    {"cancel"},
                                                                                    {"cancel", "a", "b"}}) {
    EXPECT_EQ(Ask(args).exit_code, 2) << testing::PrintToString(args);
  }
}

TEST_F(ReserveCommandTest, InspectShowsHoldsDebtAndIds) {
  EXPECT_THAT(Ask({"inspect", "l", "k"}).out, Not(HasSubstr("holds")));
  server_.bucket.set_debt_microtokens(2'500'000);
  server_.bucket.set_request_ids(7);
  server_.bucket.set_open_holds(3);
  v1::HoldInfo& begun = *server_.bucket.add_holds();
  begun.set_cost(50);
  begun.mutable_expires_after()->set_seconds(5);
  v1::HoldInfo& waiting = *server_.bucket.add_holds();
  waiting.set_cost(1);
  waiting.mutable_act_after()->set_seconds(2);
  waiting.mutable_expires_after()->set_seconds(62);
  const Ran ran = Ask({"inspect", "l", "k"});
  for (const char* text : {"2.5", "7 remembered", "open holds", "50, its turn has come, expires in 5s",
                           "1, may start in 2s, expires in 1m2s", "and 1 more"}) {
    EXPECT_THAT(ran.out, HasSubstr(text));
  }
  EXPECT_THAT(
      Ask({"inspect", "l", "k", "--json"}).out,
      HasSubstr(R"("debt_microtokens": 2500000, "open_holds": 3, "holds": [{"cost": 50, "expires_after": "5s"}, )"
                R"({"cost": 1, "act_after": "2s", "expires_after": "62s"}], "request_ids": 7})"));
}

}  // namespace
}  // namespace ebbgate::client

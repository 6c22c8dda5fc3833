// Reserve, Settle and Cancel over a real connection.
#include <google/protobuf/util/time_util.h>

#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/unit/service/served.h"

namespace ebbgate {
namespace {

using google::protobuf::util::TimeUtil;
using testing::FieldOf;
using testing::ReasonOf;
using testing::Request;
using testing::Served;
using testing::SetPatience;

class ReserveMethods : public ::testing::Test {
 protected:
  static v1::ReserveRequest Reservation(const std::string& limit, std::int64_t cost, std::int64_t max_wait_s = 0) {
    v1::ReserveRequest request;
    v1::Charge& charge = *request.add_charges();
    charge.set_limit(limit);
    charge.set_key("acme");
    charge.set_cost(cost);
    request.mutable_max_wait()->set_seconds(max_wait_s);
    return request;
  }

  grpc::Status Reserve(const v1::ReserveRequest& request) {
    grpc::ClientContext context;
    SetPatience(context);
    return served_.stub->Reserve(&context, request, &granted_);
  }

  grpc::Status Settle(const std::string& id, const std::vector<std::int64_t>& actual) {
    v1::SettleRequest request;
    request.set_reservation_id(id);
    for (const std::int64_t amount : actual) request.add_actual(amount);
    grpc::ClientContext context;
    SetPatience(context);
    return served_.stub->Settle(&context, request, &ended_);
  }

  grpc::Status Cancel(const std::string& id) {
    v1::CancelRequest request;
    request.set_reservation_id(id);
    grpc::ClientContext context;
    SetPatience(context);
    return served_.stub->Cancel(&context, request, &ended_);
  }

  std::uint64_t Errors(ErrorReason reason) { return served_.counters.Read().errors[static_cast<std::size_t>(reason)]; }

  Served served_;  // tenant: 100, one an hour; api-user: 4, two a second
  v1::ReserveResponse granted_;
  v1::SettleResponse ended_;
};

TEST_F(ReserveMethods, TheExpensiveReport) {
  ASSERT_TRUE(Reserve(Reservation("tenant", 50)).ok());
  EXPECT_TRUE(granted_.granted());
  EXPECT_EQ(granted_.reason(), v1::ALLOWED);
  EXPECT_EQ(granted_.reservation_id().size(), 32u);
  EXPECT_TRUE(granted_.has_act_after());
  EXPECT_EQ(TimeUtil::DurationToSeconds(granted_.expires_after()), 600);
  EXPECT_EQ(granted_.charges(0).remaining(), 50);
  EXPECT_EQ(granted_.charges(0).limit(), "tenant");
  ASSERT_TRUE(Settle(granted_.reservation_id(), {37}).ok());
  EXPECT_EQ(ended_.state(), v1::SETTLED);
  EXPECT_FALSE(ended_.repeated());
  EXPECT_EQ(ended_.charges(0).limit(), "tenant");
  EXPECT_EQ(ended_.charges(0).key(), "acme");
  EXPECT_EQ(ended_.charges(0).reserved(), 50);
  EXPECT_EQ(ended_.charges(0).actual(), 37);
  EXPECT_EQ(ended_.charges(0).given_back(), 13);
  EXPECT_EQ(served_.Remaining("tenant", "acme"), 63);
  ASSERT_TRUE(Cancel(granted_.reservation_id()).ok());
  EXPECT_EQ(ended_.state(), v1::SETTLED);
  EXPECT_TRUE(ended_.repeated());
  EXPECT_EQ(served_.Remaining("tenant", "acme"), 63);
}

TEST_F(ReserveMethods, CallsWaitInTurn) {
  ASSERT_TRUE(Reserve(Reservation("api-user", 4, 10)).ok());
  ASSERT_TRUE(Reserve(Reservation("api-user", 1, 10)).ok());
  EXPECT_EQ(TimeUtil::DurationToMilliseconds(granted_.act_after()), 500);
  ASSERT_TRUE(Reserve(Reservation("api-user", 4, 2)).ok());
  EXPECT_FALSE(granted_.granted());
  EXPECT_EQ(granted_.reason(), v1::QUOTA_EXCEEDED);
  EXPECT_EQ(TimeUtil::DurationToMilliseconds(granted_.retry_after()), 500);
  EXPECT_EQ(TimeUtil::DurationToMilliseconds(granted_.charges(0).retry_after()), 2500);
  EXPECT_EQ(granted_.reservation_id(), "");
  EXPECT_FALSE(granted_.has_act_after());
}

TEST_F(ReserveMethods, CancelGivesBackOnce) {
  ASSERT_TRUE(Reserve(Reservation("tenant", 100)).ok());
  const std::string id = granted_.reservation_id();
  ASSERT_TRUE(Cancel(id).ok());
  EXPECT_EQ(ended_.state(), v1::CANCELLED);
  EXPECT_EQ(ended_.charges(0).given_back(), 100);
  ASSERT_TRUE(Cancel(id).ok());
  EXPECT_TRUE(ended_.repeated());
  EXPECT_EQ(served_.Remaining("tenant", "acme"), 100);
}

TEST_F(ReserveMethods, OnceARepeatedCallGetsTheSameReservation) {
  v1::ReserveRequest request = Reservation("tenant", 10);
  request.set_request_id("r-1");
  ASSERT_TRUE(Reserve(request).ok());
  const std::string id = granted_.reservation_id();
  EXPECT_FALSE(granted_.replayed());
  ASSERT_TRUE(Reserve(request).ok());
  EXPECT_EQ(granted_.reservation_id(), id);
  EXPECT_TRUE(granted_.replayed());
  EXPECT_EQ(served_.Remaining("tenant", "acme"), 90);
}

TEST_F(ReserveMethods, ErrorsNameReasonAndField) {
  grpc::Status status = Reserve(Reservation("nobody", 1));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ReasonOf(status), "UNKNOWN_LIMIT");

  status = Reserve(Reservation("tenant", -1));
  EXPECT_EQ(ReasonOf(status), "COST_OUT_OF_RANGE");
  EXPECT_EQ(FieldOf(status), "charges[0].cost");

  for (const std::int64_t seconds : {std::int64_t{-1}, std::int64_t{24 * 3600 + 1}, kInt64Max}) {
    status = Reserve(Reservation("tenant", 1, seconds));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(FieldOf(status), "max_wait") << seconds;
    v1::ReserveRequest request = Reservation("tenant", 1);
    request.mutable_hold_for()->set_seconds(seconds);
    EXPECT_EQ(FieldOf(Reserve(request)), "hold_for") << seconds;
  }
  v1::ReserveRequest request = Reservation("tenant", 1);
  request.mutable_hold_for();
  EXPECT_EQ(FieldOf(Reserve(request)), "hold_for") << "0 s";
  request.mutable_hold_for()->set_nanos(1'000'000'000);
  EXPECT_EQ(FieldOf(Reserve(request)), "hold_for") << "no duration";
  EXPECT_EQ(served_.Remaining("tenant", "acme"), 100);
  EXPECT_EQ(Errors(ErrorReason::kUnknownLimit), 1u);
}

TEST_F(ReserveMethods, ErrorsOfEndingNameReasonAndField) {
  grpc::Status status = Settle(std::string(32, '0'), {1});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ReasonOf(status), "UNKNOWN_RESERVATION");
  EXPECT_EQ(ReasonOf(Cancel(std::string(32, 'f'))), "UNKNOWN_RESERVATION");
  for (const std::string& id : {std::string(), std::string("abc"), std::string(33, '0'), std::string(32, 'g')}) {
    status = Cancel(id);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << id;
    EXPECT_EQ(FieldOf(status), "reservation_id");
    EXPECT_EQ(FieldOf(Settle(id, {1})), "reservation_id");
  }
  ASSERT_TRUE(Reserve(Reservation("tenant", 10)).ok());
  const std::string id = granted_.reservation_id();
  for (const std::vector<std::int64_t>& actual : std::vector<std::vector<std::int64_t>>{{}, {1, 1}}) {
    EXPECT_EQ(FieldOf(Settle(id, actual)), "actual");
  }
  for (const std::int64_t amount : {std::int64_t{-1}, kMaxCostTokens + 1}) {
    status = Settle(id, {amount});
    EXPECT_EQ(ReasonOf(status), "COST_OUT_OF_RANGE");
    EXPECT_EQ(FieldOf(status), "actual[0]");
  }
  EXPECT_EQ(Errors(ErrorReason::kUnknownHold), 2u);
  ASSERT_TRUE(Settle(id, {10}).ok());
  EXPECT_FALSE(ended_.repeated()) << "what was refused has ended nothing";
}

TEST_F(ReserveMethods, CallsAreCountedByMethod) {
  ASSERT_TRUE(Reserve(Reservation("tenant", 1)).ok());
  ASSERT_TRUE(Settle(granted_.reservation_id(), {1}).ok());
  ASSERT_TRUE(Cancel(granted_.reservation_id()).ok());
  Cancel("").error_code();
  // A call has ended for its caller a moment before it is counted.
  const auto ended = [this](Method method, absl::StatusCode code) {
    return served_.counters.Read().ended[static_cast<std::size_t>(method)][static_cast<std::size_t>(code)];
  };
  while (ended(Method::kCancel, absl::StatusCode::kInvalidArgument) == 0) std::this_thread::yield();
  EXPECT_EQ(ended(Method::kReserve, absl::StatusCode::kOk), 1u);
  EXPECT_EQ(ended(Method::kSettle, absl::StatusCode::kOk), 1u);
  EXPECT_EQ(ended(Method::kCancel, absl::StatusCode::kOk), 1u);
}

}  // namespace
}  // namespace ebbgate

#include "client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/synchronization/notification.h"
#include "tests/unit/client/fake_server.h"

namespace ebbgate::client {
namespace {

// Far above what anything here takes; nothing waits for it.
constexpr absl::Duration kLong = absl::Seconds(60);

std::unique_ptr<Client> ConnectTo(const FakeServer& server) { return *Client::Connect({.address = server.address()}); }

TEST(ClientTest, SendsACallAsItIs) {
  FakeServer server;
  const Call call{.charges = {{.limit = "user", .key = "alice", .cost = 0}, {.limit = "team", .key = "t"}},
                  .request_id = "r-1",
                  .peek = true};
  ASSERT_TRUE(ConnectTo(server)->ShouldAllow(call, kLong).ok());
  ASSERT_EQ(server.calls().size(), 1u);
  const v1::ShouldAllowRequest sent = server.calls()[0];
  EXPECT_EQ(sent.charges(0).limit(), "user");
  EXPECT_EQ(sent.charges(0).key(), "alice");
  EXPECT_TRUE(sent.charges(0).has_cost());  // 0 and absent differ
  EXPECT_EQ(sent.charges(0).cost(), 0);
  EXPECT_FALSE(sent.charges(1).has_cost());
  EXPECT_EQ(sent.request_id(), "r-1");
  EXPECT_TRUE(sent.peek());
}

TEST(ClientTest, ReadsADenialWithAllItsFields) {
  FakeServer server;
  server.decide = [](const v1::ShouldAllowRequest&, v1::ShouldAllowResponse& response) {
    response.set_reason(v1::QUOTA_EXCEEDED);
    response.mutable_retry_after()->set_seconds(3);
    response.mutable_retry_after()->set_nanos(7);
    response.set_replayed(true);
    v1::ChargeResult& charge = *response.add_charges();
    charge.set_limit("user");
    charge.set_remaining(1);
    charge.set_capacity(9);
    charge.mutable_retry_after()->set_seconds(3);
    charge.mutable_reset_after()->set_seconds(8);
    charge.set_reason(v1::QUOTA_EXCEEDED);
    charge.set_tightest(true);
    charge.set_on_unavailable(v1::ON_UNAVAILABLE_ALLOW);
    return grpc::Status::OK;
  };
  const absl::StatusOr<Answer> answer = ConnectTo(server)->ShouldAllow({.charges = {{"user", "alice", {}}}}, kLong);
  ASSERT_TRUE(answer.ok());
  EXPECT_FALSE(answer->allowed);
  EXPECT_EQ(answer->reason, Reason::kQuotaExceeded);
  EXPECT_EQ(answer->retry_after, absl::Seconds(3) + absl::Nanoseconds(7));
  EXPECT_TRUE(answer->replayed);
  ASSERT_EQ(answer->charges.size(), 1u);
  const ChargeAnswer& charge = answer->charges[0];
  EXPECT_EQ(charge.limit, "user");
  EXPECT_EQ(charge.remaining, 1);
  EXPECT_EQ(charge.capacity, 9);
  EXPECT_EQ(charge.retry_after, absl::Seconds(3));
  EXPECT_EQ(charge.reset_after, absl::Seconds(8));
  EXPECT_EQ(charge.reason, Reason::kQuotaExceeded);
  EXPECT_TRUE(charge.tightest);
  EXPECT_EQ(charge.on_unavailable, OnUnavailable::kAllow);
}

TEST(ClientTest, AnErrorTellsItsReasonAndField) {
  FakeServer server;
  server.decide = [](const v1::ShouldAllowRequest&, v1::ShouldAllowResponse&) {
    return ErrorWithDetails(grpc::StatusCode::INVALID_ARGUMENT, "no", "COST_OUT_OF_RANGE", "charges[0].cost");
  };
  const absl::StatusOr<Answer> answer = ConnectTo(server)->ShouldAllow({.charges = {{"user", "alice", -1}}}, kLong);
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(answer.status().message(), "no");
  const ErrorDetails details = DetailsOf(answer.status());
  EXPECT_EQ(details.reason, "COST_OUT_OF_RANGE");
  EXPECT_EQ(details.field, "charges[0].cost");
  EXPECT_EQ(details.retry_after, std::nullopt);
}

TEST(ClientTest, AnErrorTellsWhenToComeBack) {
  FakeServer server;
  server.decide = [](const v1::ShouldAllowRequest&, v1::ShouldAllowResponse&) {
    return ErrorWithDetails(grpc::StatusCode::UNAVAILABLE, "draining", "DRAINING", "");
  };
  const absl::StatusOr<Answer> answer = ConnectTo(server)->ShouldAllow({.charges = {{"user", "alice", {}}}}, kLong);
  EXPECT_EQ(DetailsOf(answer.status()).reason, "DRAINING");
  EXPECT_EQ(DetailsOf(answer.status()).retry_after, absl::Milliseconds(250));
}

TEST(ClientTest, ABatchKeepsOrderAndEachItsOwnOutcome) {
  FakeServer server;
  server.decide = [](const v1::ShouldAllowRequest& call, v1::ShouldAllowResponse& response) {
    if (call.charges(0).key() == "bad") {
      return ErrorWithDetails(grpc::StatusCode::NOT_FOUND, "who?", "UNKNOWN_LIMIT", "charges[0].limit");
    }
    response.set_allowed(call.charges(0).key() == "good");
    response.set_reason(response.allowed() ? v1::ALLOWED : v1::QUOTA_EXCEEDED);
    return grpc::Status::OK;
  };
  const std::vector<Call> calls = {
      {.charges = {{"l", "good", {}}}}, {.charges = {{"l", "bad", {}}}}, {.charges = {{"l", "poor", {}}}}};
  const auto answers = ConnectTo(server)->ShouldAllowBatch(calls, kLong);
  ASSERT_TRUE(answers.ok());
  ASSERT_EQ(answers->size(), 3u);
  EXPECT_TRUE((*answers)[0]->allowed);
  EXPECT_EQ((*answers)[1].status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(DetailsOf((*answers)[1].status()).reason, "UNKNOWN_LIMIT");
  EXPECT_FALSE((*answers)[2]->allowed);
}

TEST(ClientTest, WaitsNoLongerThanItsTimeout) {
  FakeServer server;
  absl::Notification done;
  server.decide = [&](const v1::ShouldAllowRequest&, v1::ShouldAllowResponse&) {
    done.WaitForNotification();
    return grpc::Status::OK;
  };
  const auto answer = ConnectTo(server)->ShouldAllow({.charges = {{"user", "alice", {}}}}, absl::Milliseconds(50));
  done.Notify();
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(ClientTest, NobodyThereIsUnavailable) {
  const auto client = Client::Connect({.address = "unix:/nowhere/at/all"});
  ASSERT_TRUE(client.ok());
  const auto answer = (*client)->ShouldAllow({.charges = {{"user", "alice", {}}}}, kLong);
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kUnavailable);
}

TEST(ClientTest, TlsFilesMustBeThereAndWhole) {
  EXPECT_EQ(Client::Connect({.address = "localhost:1", .tls = TlsFiles{"/no/such/file", "", ""}}).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(Client::Connect({.address = "localhost:1", .tls = TlsFiles{"", "/some/cert", ""}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace ebbgate::client

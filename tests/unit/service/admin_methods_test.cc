#include "server/service/admin_methods.h"

#include <google/protobuf/util/time_util.h>
#include <spdlog/sinks/ostream_sink.h>

#include <sstream>

#include "ebbgate/v1/admin.grpc.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/service/served.h"

namespace ebbgate {
namespace {

using google::protobuf::util::TimeUtil;
using testing::FieldOf;
using ::testing::HasSubstr;
using testing::ReasonOf;

class AdminTest : public ::testing::Test {
 protected:
  AdminTest() {
    Limit limit = testing::With(testing::Bucket("api-user", 4, 2, testing::kSecond), "partner-*", 400);
    limit.shadow = true;
    limit.default_cost = 2;
    limit.max_cost = 3;
    limit.on_unavailable = OnUnavailable::kAllow;
    EXPECT_TRUE(absl::LoadTimeZone("America/New_York", &limit.display_zone));
    limit.metadata = {{"team", "edge"}};
    limit.file = "limits.yaml";
    limit.line = 12;
    limit.overrides[0].line = 15;
    engine_.InstallLimits({limit, testing::Bucket("tenant", 100, 1, testing::kHour)});
    server_ = *RpcServer::Start({.listen = {testing::Tcp()}},
                                AdminMethods({engine_, [this] { return Reload(); }, counters_, log_}), counters_);
    stub_ = v1::Admin::NewStub(grpc::CreateChannel(server_->addresses().front(), grpc::InsecureChannelCredentials()));
  }

  absl::StatusOr<bool> Reload() {
    ++reloads_;
    return reload_;
  }

  // Calls one method of the stub.
  template <typename Rpc, typename Request, typename Response>
  grpc::Status Call(Rpc rpc, const Request& request, Response& response) {
    grpc::ClientContext context;
    testing::SetPatience(context);
    return (stub_.get()->*rpc)(&context, request, &response);
  }

  ManualTime time_{1'793'512'020 * kNsPerSecond, testing::kHour};  // 2026-11-01 05:47 UTC
  Engine engine_{EngineOptions(), time_};
  ServiceCounters counters_;
  std::ostringstream lines_;
  EventLog log_{
      {.json = false, .level = LogLevel::kInfo, .sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(lines_)}};
  absl::StatusOr<bool> reload_ = true;
  int reloads_ = 0;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<v1::Admin::Stub> stub_;
};

TEST_F(AdminTest, InspectShowsWhatIsKnownOfAKey) {
  testing::Ask(engine_, "tenant", "acme", 30);
  time_.Advance(5 * kNsPerSecond);
  v1::InspectKeyRequest request;
  request.set_limit("tenant");
  request.set_key("acme");
  v1::InspectKeyResponse response;
  ASSERT_TRUE(Call(&v1::Admin::Stub::InspectKey, request, response).ok());
  EXPECT_EQ(response.limit(), "tenant");
  EXPECT_EQ(response.key(), "acme");
  EXPECT_TRUE(response.known());
  EXPECT_EQ(response.capacity(), 100);
  EXPECT_EQ(response.remaining(), 70);
  EXPECT_EQ(response.level_microtokens(), 70'000'000 + 1'000'000 * 5 / 3600);
  EXPECT_EQ(TimeUtil::DurationToSeconds(response.last_change_age()), 5);
  EXPECT_EQ(response.last_change_label(), "2026-11-01 05:47 UTC");
  EXPECT_THAT(response.parameters(), HasSubstr("100"));
  EXPECT_LT(response.slot(), kSlots);
}

TEST_F(AdminTest, InspectOfAKeyNeverChargedIsAFullBucket) {
  v1::InspectKeyRequest request;
  request.set_limit("api-user");
  request.set_key("partner-7");
  v1::InspectKeyResponse response;
  ASSERT_TRUE(Call(&v1::Admin::Stub::InspectKey, request, response).ok());
  EXPECT_FALSE(response.known());
  EXPECT_EQ(response.remaining(), 400);
  EXPECT_EQ(response.override_pattern(), "partner-*");
  EXPECT_FALSE(response.has_last_change_age());
}

TEST_F(AdminTest, InspectShowsHoldsDebtAndIds) {
  const ChargeRequest charge = {.limit = "tenant", .key = "acme", .cost = 100};
  ReserveAnswer answer;
  engine_.Reserve({.call = {.charges = {&charge, 1}, .request_id = "r-1"}}, answer);
  const ChargeRequest small = {.limit = "tenant", .key = "acme", .cost = 2};
  engine_.Reserve({.call = {.charges = {&small, 1}, .request_id = ""}, .max_wait_ns = 3 * testing::kHour}, answer);
  v1::InspectKeyRequest request;
  request.set_limit("tenant");
  request.set_key("acme");
  v1::InspectKeyResponse response;
  ASSERT_TRUE(Call(&v1::Admin::Stub::InspectKey, request, response).ok());
  EXPECT_EQ(response.debt_microtokens(), 2'000'000);
  EXPECT_EQ(response.open_holds(), 2u);
  ASSERT_EQ(response.holds_size(), 2);
  EXPECT_EQ(response.holds(0).cost(), 100);
  EXPECT_FALSE(response.holds(0).has_act_after());
  EXPECT_EQ(TimeUtil::DurationToSeconds(response.holds(0).expires_after()), 600);
  EXPECT_EQ(response.holds(1).cost(), 2);
  EXPECT_EQ(TimeUtil::DurationToSeconds(response.holds(1).act_after()), 7200);
  EXPECT_EQ(response.request_ids(), 1u);
}

TEST_F(AdminTest, InspectErrors) {
  v1::InspectKeyRequest request;
  request.set_limit("nobody");
  request.set_key("alice");
  v1::InspectKeyResponse response;
  grpc::Status status = Call(&v1::Admin::Stub::InspectKey, request, response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ReasonOf(status), "UNKNOWN_LIMIT");
  request.set_limit("tenant");
  for (const std::string& key : {std::string(), std::string(1025, 'k')}) {
    request.set_key(key);
    status = Call(&v1::Admin::Stub::InspectKey, request, response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(FieldOf(status), "key");
  }
}

TEST_F(AdminTest, ResetForgetsAndIsLogged) {
  testing::Ask(engine_, "tenant", "acme", 100);
  v1::ResetKeyRequest request;
  request.set_limit("tenant");
  request.set_key("acme");
  request.set_reason("asked by\nthe tenant");
  v1::ResetKeyResponse response;
  ASSERT_TRUE(Call(&v1::Admin::Stub::ResetKey, request, response).ok());
  EXPECT_TRUE(response.known());
  EXPECT_EQ(engine_.Inspect("tenant", "acme")->remaining, 100);
  ASSERT_TRUE(Call(&v1::Admin::Stub::ResetKey, request, response).ok());
  EXPECT_FALSE(response.known());
  EXPECT_EQ(engine_.Counters().keys_reset, 1u);
  request.set_reason(std::string(257, 'r'));
  EXPECT_EQ(FieldOf(Call(&v1::Admin::Stub::ResetKey, request, response)), "reason");
  request.set_reason("");
  request.set_limit("nobody");
  EXPECT_EQ(Call(&v1::Admin::Stub::ResetKey, request, response).error_code(), grpc::StatusCode::NOT_FOUND);
  server_.reset();
  EXPECT_THAT(lines_.str(), HasSubstr("key_reset limit=tenant key=acme known=true"));
  EXPECT_THAT(lines_.str(), HasSubstr("asked by\\nthe tenant"));
}

TEST_F(AdminTest, ListShowsEveryFieldOfALimit) {
  v1::ListLimitsResponse response;
  ASSERT_TRUE(Call(&v1::Admin::Stub::ListLimits, v1::ListLimitsRequest(), response).ok());
  EXPECT_EQ(response.generation(), engine_.limits().generation);
  EXPECT_EQ(TimeUtil::TimestampToSeconds(response.loaded_at()), 1'793'512'020);
  ASSERT_EQ(response.limits_size(), 2);
  const v1::LimitInfo& limit = response.limits(0);
  EXPECT_EQ(limit.name(), "api-user");
  EXPECT_EQ(limit.algorithm(), "token_bucket");
  EXPECT_EQ(limit.parameters(), Describe(engine_.limits().limits->front().parameters));
  EXPECT_EQ(limit.capacity(), 4);
  EXPECT_TRUE(limit.shadow());
  EXPECT_EQ(limit.default_cost(), 2);
  EXPECT_EQ(limit.max_cost(), 3);
  EXPECT_EQ(limit.on_unavailable(), v1::ON_UNAVAILABLE_ALLOW);
  EXPECT_EQ(limit.time_zone(), "America/New_York");
  EXPECT_EQ(limit.file(), "limits.yaml");
  EXPECT_EQ(limit.line(), 12);
  ASSERT_EQ(limit.overrides_size(), 1);
  EXPECT_EQ(limit.overrides(0).key(), "partner-*");
  EXPECT_EQ(limit.overrides(0).line(), 15);
  EXPECT_THAT(limit.overrides(0).parameters(), HasSubstr("400"));
  EXPECT_EQ(limit.metadata().at("team"), "edge");
  EXPECT_EQ(response.limits(1).max_cost(), 0);
  EXPECT_EQ(response.limits(1).on_unavailable(), v1::ON_UNAVAILABLE_DENY);
}

TEST_F(AdminTest, ReloadTellsWhatCameOfIt) {
  v1::ReloadLimitsResponse response;
  ASSERT_TRUE(Call(&v1::Admin::Stub::ReloadLimits, v1::ReloadLimitsRequest(), response).ok());
  EXPECT_TRUE(response.changed());
  EXPECT_EQ(response.generation(), engine_.limits().generation);
  EXPECT_EQ(response.limits(), 2u);
  EXPECT_EQ(reloads_, 1);
  reload_ = absl::InvalidArgumentError("limits.yaml:3: limits[0].capacity: must be at least 1");
  const grpc::Status status = Call(&v1::Admin::Stub::ReloadLimits, v1::ReloadLimitsRequest(), response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("limits.yaml:3"));
}

TEST_F(AdminTest, GarbageIsInvalidArgument) {
  const auto channel = grpc::CreateChannel(server_->addresses().front(), grpc::InsecureChannelCredentials());
  for (const char* method : {"InspectKey", "ResetKey", "ListLimits", "ReloadLimits"}) {
    testing::RawCall call(channel, absl::StrCat("/ebbgate.v1.Admin/", method), "\xff");
    EXPECT_EQ(call.Await().error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method;
  }
  EXPECT_EQ(reloads_, 0);
}

}  // namespace
}  // namespace ebbgate

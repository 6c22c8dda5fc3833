#include "server/service/json_twin.h"

#include <google/protobuf/util/json_util.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "ebbgate/v1/rate_limiter.pb.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
#include "server/limiter/manual_time.h"

namespace ebbgate {
namespace {

using ::testing::HasSubstr;

Limit TokenBucket(const std::string& name, std::int64_t capacity, std::int64_t per_second) {
  Limit limit;
  limit.name = name;
  limit.parameters.capacity = FromTokens(capacity);
  limit.parameters.refill = {.tokens = FromTokens(per_second), .per_ns = kNsPerSecond};
  return limit;
}

class JsonTwinTest : public ::testing::Test {
 protected:
  JsonTwinTest() {
    engine_.InstallLimits({TokenBucket("api-user", 4, 2), TokenBucket("api", 100, 1), TokenBucket("größe", 5, 1)});
  }

  HttpAnswer Ask(absl::string_view body) {
    return AnswerShouldAllow(body, {.engine = engine_, .latency = latency_, .counters = counters_, .time = time_});
  }

  static std::string Field(const HttpAnswer& answer, absl::string_view name) {
    std::string found = "(absent)";
    for (const auto& [field, value] : answer.fields) {
      if (field == name) found = value;
    }
    return found;
  }

  static v1::ShouldAllowResponse Response(const HttpAnswer& answer) {
    v1::ShouldAllowResponse response;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(answer.body, &response).ok()) << answer.body;
    return response;
  }

  static google::rpc::Status Error(const HttpAnswer& answer) {
    google::rpc::Status status;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(answer.body, &status).ok()) << answer.body;
    return status;
  }

  static std::string ErrorInfoReason(const google::rpc::Status& status) {
    google::rpc::ErrorInfo info;
    for (const auto& detail : status.details()) {
      if (detail.Is<google::rpc::ErrorInfo>()) detail.UnpackTo(&info);
    }
    return info.reason();
  }

  std::uint64_t Ended(absl::StatusCode code) const {
    return counters_.Read().ended[static_cast<std::size_t>(Method::kHttpShouldAllow)][static_cast<std::size_t>(code)];
  }

  ManualTime time_{1'793'512'020'000'000'000, 1'000};
  Engine engine_{EngineOptions{}, time_};
  LatencyRecorder latency_;
  ServiceCounters counters_;
};

constexpr char kAlice[] = R"({"charges": [{"limit": "api-user", "key": "alice"}]})";

TEST_F(JsonTwinTest, AllowsUntilTheBucketIsEmptyThenSaysHowLong) {
  for (int i = 0; i < 4; ++i) {
    const HttpAnswer answer = Ask(kAlice);
    EXPECT_EQ(answer.status, 200);
    EXPECT_TRUE(Response(answer).allowed());
    EXPECT_EQ(Field(answer, "Retry-After"), "(absent)");
    EXPECT_EQ(Field(answer, "RateLimit-Policy"), "\"api-user\";q=4");
    EXPECT_EQ(Field(answer, "RateLimit"), absl::StrCat("\"api-user\";r=", 3 - i, ";t=", i / 2 + 1));
  }
  const HttpAnswer denied = Ask(kAlice);
  EXPECT_EQ(denied.status, 429);
  EXPECT_FALSE(Response(denied).allowed());
  EXPECT_EQ(Response(denied).reason(), v1::QUOTA_EXCEEDED);
  EXPECT_EQ(Response(denied).retry_after().nanos(), 500'000'000);
  EXPECT_EQ(Field(denied, "Retry-After"), "1");
  EXPECT_EQ(Field(denied, "RateLimit"), "\"api-user\";r=0;t=1");
  EXPECT_THAT(denied.body, HasSubstr("\"allowed\":false"));
  EXPECT_EQ(Ended(absl::StatusCode::kOk), 5u);
  EXPECT_EQ(latency_.Read().counts[0], 5u);
}

TEST_F(JsonTwinTest, ACostAboveCapacityHasNoRetryAfter) {
  const HttpAnswer answer = Ask(R"({"charges": [{"limit": "api-user", "key": "alice", "cost": "5"}]})");
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(Response(answer).reason(), v1::COST_EXCEEDS_CAPACITY);
  EXPECT_FALSE(Response(answer).has_retry_after());
  EXPECT_EQ(Field(answer, "Retry-After"), "(absent)");
}

TEST_F(JsonTwinTest, SeveralLimitsStandSideBySideEachOnce) {
  const HttpAnswer answer = Ask(R"({"charges": [
      {"limit": "api-user", "key": "alice"}, {"limit": "api", "key": "all"},
      {"limit": "api-user", "key": "bob", "cost": 3}]})");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(Field(answer, "RateLimit-Policy"), "\"api-user\";q=4, \"api\";q=100");
  EXPECT_EQ(Field(answer, "RateLimit"), "\"api-user\";r=1;t=2, \"api\";r=99;t=1");
}

TEST_F(JsonTwinTest, NamesThatAFieldCannotHoldAreLeftOut) {
  const HttpAnswer answer = Ask(R"({"charges": [{"limit": "größe", "key": "alice"}]})");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(Field(answer, "RateLimit"), "(absent)");
  EXPECT_EQ(Field(answer, "RateLimit-Policy"), "(absent)");
}

TEST_F(JsonTwinTest, BothSpellingsOfFieldNamesAreTaken) {
  EXPECT_EQ(Ask(R"({"charges":[{"limit":"api","key":"x"}],"requestId":"a"})").status, 200);
  const HttpAnswer again = Ask(R"({"charges":[{"limit":"api","key":"x"}],"request_id":"a"})");
  EXPECT_EQ(again.status, 200);
  EXPECT_TRUE(Response(again).replayed());
}

TEST_F(JsonTwinTest, AnUnknownLimitIs404) {
  const HttpAnswer answer = Ask(R"({"charges": [{"limit": "nope", "key": "alice"}]})");
  EXPECT_EQ(answer.status, 404);
  EXPECT_EQ(Error(answer).code(), 5);
  EXPECT_EQ(ErrorInfoReason(Error(answer)), "UNKNOWN_LIMIT");
  EXPECT_EQ(Ended(absl::StatusCode::kNotFound), 1u);
  EXPECT_EQ(counters_.Read().errors[static_cast<std::size_t>(ErrorReason::kUnknownLimit)], 1u);
}

TEST_F(JsonTwinTest, WhatIsNotACallIs400) {
  for (const absl::string_view body :
       {absl::string_view(""), absl::string_view("{"), absl::string_view("[]"), absl::string_view("null"),
        absl::string_view("{\"charges\": 7}"), absl::string_view("{\"nosuch\": 1}"), absl::string_view("{}"),
        absl::string_view("{\"charges\": [{\"limit\": \"api\", \"key\": \"\xff\"}]}"), absl::string_view("\0", 1),
        absl::string_view("{\"charges\": [{\"limit\": \"api\", \"key\": \"\"}]}"),
        absl::string_view("{\"charges\": [{\"limit\": \"api\", \"key\": \"a\", \"cost\": -1}]}"),
        absl::string_view("{\"charges\": [{\"limit\": \"api\", \"key\": \"a\", \"cost\": \"9223372036854775807\"}]}"),
        absl::string_view("{\"charges\": [{\"limit\": \"api\", \"key\": \"a\", \"cost\": 1e30}]}")}) {
    const HttpAnswer answer = Ask(body);
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_EQ(Error(answer).code(), 3) << body;
    EXPECT_NE(Error(answer).message(), "") << body;
  }
  EXPECT_EQ(ErrorInfoReason(Error(Ask("{"))), "MALFORMED");
  EXPECT_EQ(engine_.Counters().keys, 0u);
}

TEST_F(JsonTwinTest, DeepNestingIsRefused) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_EQ(Ask(deep).status, 400);
  std::string objects;
  for (int i = 0; i < 20'000; ++i) objects += "{\"charges\":";
  EXPECT_EQ(Ask(objects).status, 400);
}

TEST_F(JsonTwinTest, WhenItCannotAnswerItIs503WithRetryAfter) {
  Engine full(EngineOptions{.max_keys = 1}, time_);
  full.InstallLimits({TokenBucket("api", 100, 1)});
  const auto ask = [&](absl::string_view key) {
    return AnswerShouldAllow(absl::StrCat("{\"charges\": [{\"limit\": \"api\", \"key\": \"", key, "\"}]}"),
                             {.engine = full, .latency = latency_, .counters = counters_, .time = time_});
  };
  HttpAnswer answer = ask("0");
  for (int i = 1; i < 1000 && answer.status == 200; ++i) answer = ask(absl::StrCat(i));
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(Error(answer).code(), 14);
  EXPECT_EQ(ErrorInfoReason(Error(answer)), "STORE_FULL");
  EXPECT_EQ(Field(answer, "Retry-After"), "1");
}

TEST_F(JsonTwinTest, SecondsRoundUpAndAreNeverZero) {
  EXPECT_EQ(RetryAfterSeconds(0), 1);
  EXPECT_EQ(RetryAfterSeconds(1), 1);
  EXPECT_EQ(RetryAfterSeconds(kNsPerSecond), 1);
  EXPECT_EQ(RetryAfterSeconds(kNsPerSecond + 1), 2);
  EXPECT_EQ(RetryAfterSeconds(kInt64Max), 9'223'372'037);
}

}  // namespace
}  // namespace ebbgate

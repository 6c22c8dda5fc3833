#include "client/http_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/grpc_answer.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace ebbgate::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

ChargeAnswer Charged(std::string limit, std::int64_t remaining, std::int64_t capacity, absl::Duration reset_after) {
  ChargeAnswer charge;
  charge.limit = std::move(limit);
  charge.remaining = remaining;
  charge.capacity = capacity;
  charge.reset_after = reset_after;
  return charge;
}

ChargeAnswer Refused(std::string limit, std::int64_t capacity, absl::Duration retry_after) {
  ChargeAnswer charge = Charged(std::move(limit), 0, capacity, retry_after + absl::Seconds(100));
  charge.reason = Reason::kQuotaExceeded;
  charge.retry_after = retry_after;
  charge.tightest = true;
  return charge;
}

Answer Denial(absl::Duration wait) {
  Answer answer;
  answer.reason = Reason::kQuotaExceeded;
  answer.retry_after = wait;
  answer.charges = {Refused("api-user", 4, wait)};
  return answer;
}

TEST(HttpAnswerTest, AnAllowedCallTellsWhatIsLeft) {
  Answer answer;
  answer.allowed = true;
  answer.charges = {Charged("api-user", 3, 4, absl::Milliseconds(500))};
  const HttpAnswer http = ToHttp(answer);
  EXPECT_EQ(http.status, 200);
  EXPECT_THAT(http.fields, ElementsAre(Pair("RateLimit-Policy", "\"api-user\";q=4"),
                                       Pair("RateLimit", "\"api-user\";r=3;t=1"), Pair("X-RateLimit-Limit", "4"),
                                       Pair("X-RateLimit-Remaining", "3"), Pair("X-RateLimit-Reset", "1")));
}

TEST(HttpAnswerTest, ADenialIsTooManyRequests) {
  const HttpAnswer http = ToHttp(Denial(absl::Milliseconds(1500)));
  EXPECT_EQ(http.status, 429);
  EXPECT_THAT(http.fields, ElementsAre(Pair("Retry-After", "2"), Pair("RateLimit-Policy", "\"api-user\";q=4"),
                                       Pair("RateLimit", "\"api-user\";r=0;t=2"), Pair("X-RateLimit-Limit", "4"),
                                       Pair("X-RateLimit-Remaining", "0"), Pair("X-RateLimit-Reset", "2")));
}

TEST(HttpAnswerTest, RetryAfterIsRoundedUpAndNeverZero) {
  EXPECT_EQ(ToHttp(Denial(absl::Nanoseconds(1))).fields[0],
            std::make_pair(std::string("Retry-After"), std::string("1")));
  EXPECT_EQ(ToHttp(Denial(absl::Seconds(1))).fields[0].second, "1");
  EXPECT_EQ(ToHttp(Denial(absl::Seconds(1) + absl::Nanoseconds(1))).fields[0].second, "2");
  EXPECT_EQ(ToHttp(Denial(absl::ZeroDuration())).fields[0].second, "1");
  EXPECT_EQ(ToHttp(Denial(absl::Hours(24 * 36600))).fields[0].second, "3162240000");
}

TEST(HttpAnswerTest, WhatCanNeverBeHasNoRetryAfter) {
  Answer answer;
  answer.reason = Reason::kCostExceedsCapacity;
  answer.charges = {Charged("api-user", 4, 4, absl::ZeroDuration())};
  answer.charges[0].reason = Reason::kCostExceedsCapacity;
  const HttpAnswer http = ToHttp(answer);
  EXPECT_EQ(http.status, 429);
  for (const auto& [name, value] : http.fields) EXPECT_NE(name, "Retry-After");
}

TEST(HttpAnswerTest, SeveralLimitsAreAListAndTheTightestSpeaksForTheOldFields) {
  Answer answer = Denial(absl::Seconds(7));
  answer.charges.insert(answer.charges.begin(), Charged("all", 90, 100, absl::Seconds(10)));
  const HttpAnswer http = ToHttp(answer);
  EXPECT_THAT(http.fields,
              ElementsAre(Pair("Retry-After", "7"), Pair("RateLimit-Policy", "\"all\";q=100, \"api-user\";q=4"),
                          Pair("RateLimit", "\"all\";r=90;t=10, \"api-user\";r=0;t=7"), Pair("X-RateLimit-Limit", "4"),
                          Pair("X-RateLimit-Remaining", "0"), Pair("X-RateLimit-Reset", "7")));
}

TEST(HttpAnswerTest, OneLimitChargedTwiceIsOnePolicy) {
  Answer answer;
  answer.allowed = true;
  answer.charges = {Charged("user", 5, 9, absl::Seconds(4)), Charged("user", 2, 9, absl::Seconds(7))};
  EXPECT_EQ(ToHttp(answer).fields[1].second, "\"user\";r=2;t=7");
}

TEST(HttpAnswerTest, ShadowsAreNotShown) {
  Answer answer;
  answer.allowed = true;
  answer.reason = Reason::kShadowed;
  answer.charges = {Charged("trial", 0, 1, absl::Seconds(5))};
  answer.charges[0].reason = Reason::kShadowed;
  EXPECT_THAT(ToHttp(answer).fields, IsEmpty());
}

TEST(HttpAnswerTest, NamesAreStructuredStrings) {
  EXPECT_EQ(StructuredString("plain name"), "\"plain name\"");
  EXPECT_EQ(StructuredString("a\"b\\c"), "\"a\\\"b\\\\c\"");
  EXPECT_EQ(StructuredString("\xc3\xa9\r\n"), "\"%C3%A9%0D%0A\"");
}

TEST(GrpcAnswerTest, AllowedIsOk) {
  Answer answer;
  answer.allowed = true;
  EXPECT_TRUE(ToGrpcStatus(answer).ok());
}

TEST(GrpcAnswerTest, ADenialIsResourceExhaustedWithDetails) {
  Answer answer = Denial(absl::Milliseconds(1500));
  answer.charges.push_back(Charged("all", 90, 100, absl::Seconds(10)));
  const grpc::Status status = ToGrpcStatus(answer);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  ASSERT_EQ(details.details_size(), 3);
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(details.details(0).UnpackTo(&info));
  EXPECT_EQ(info.reason(), "QUOTA_EXCEEDED");
  EXPECT_EQ(info.domain(), "ebbgate");
  google::rpc::QuotaFailure quota;
  ASSERT_TRUE(details.details(1).UnpackTo(&quota));
  ASSERT_EQ(quota.violations_size(), 1);  // only what refused
  EXPECT_EQ(quota.violations(0).subject(), "api-user");
  google::rpc::RetryInfo retry;
  ASSERT_TRUE(details.details(2).UnpackTo(&retry));
  EXPECT_EQ(retry.retry_delay().seconds(), 1);
  EXPECT_EQ(retry.retry_delay().nanos(), 500'000'000);
}

TEST(GrpcAnswerTest, WhatCanNeverBeHasNoRetryInfo) {
  Answer answer;
  answer.reason = Reason::kCostExceedsCapacity;
  answer.charges = {Charged("api-user", 4, 4, absl::ZeroDuration())};
  answer.charges[0].reason = Reason::kCostExceedsCapacity;
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(ToGrpcStatus(answer).error_details()));
  for (const auto& detail : details.details()) EXPECT_FALSE(detail.Is<google::rpc::RetryInfo>());
}

}  // namespace
}  // namespace ebbgate::client

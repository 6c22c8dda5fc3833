// The hand-made wire format of the load generator, held against the generated messages.
#include "client/load/wire.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "ebbgate/v1/rate_limiter.pb.h"

namespace ebbgate::client {
namespace {

LoadOptions Options(LoadMode mode) {
  LoadOptions options;
  options.mode = mode;
  options.limit = "api-user";
  options.keys = 50;
  return options;
}

TEST(WireTest, AUnaryRequestIsAMessage) {
  LoadOptions options = Options(LoadMode::kUnary);
  options.cost = 300;
  RequestWriter writer(options);
  std::set<std::string> keys;
  for (int i = 0; i < 1000; ++i) {
    v1::ShouldAllowRequest request;
    const absl::string_view bytes = writer.Next();
    ASSERT_TRUE(request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
    ASSERT_EQ(request.charges_size(), 1);
    EXPECT_EQ(request.charges(0).limit(), "api-user");
    EXPECT_EQ(request.charges(0).cost(), 300);
    EXPECT_EQ(request.SerializeAsString(), std::string(bytes));  // nothing besides
    keys.insert(request.charges(0).key());
  }
  EXPECT_EQ(keys.size(), 50u);
  EXPECT_EQ(*keys.begin(), "key-00000000");
  EXPECT_EQ(*keys.rbegin(), "key-00000049");
}

TEST(WireTest, NoCostIsAbsentAndAnyOtherIsSent) {
  for (const std::optional<std::int64_t> cost : {std::optional<std::int64_t>(), std::optional<std::int64_t>(0),
                                                 std::optional<std::int64_t>(-1), std::optional(INT64_MAX)}) {
    LoadOptions options = Options(LoadMode::kUnary);
    options.cost = cost;
    RequestWriter writer(options);
    v1::ShouldAllowRequest request;
    ASSERT_TRUE(request.ParseFromString(std::string(writer.Next())));
    EXPECT_EQ(request.charges(0).has_cost(), cost.has_value());
    EXPECT_EQ(request.charges(0).cost(), cost.value_or(0));
  }
}

TEST(WireTest, ABatchHasItsCallsAndItsShareOfOthers) {
  LoadOptions options = Options(LoadMode::kBatch);
  options.batch = 1000;
  options.limit = std::string(128, 'l');  // lengths of two bytes
  options.deny_limit = "tiny";
  options.deny_share = 0.25;
  RequestWriter writer(options);
  v1::ShouldAllowBatchRequest request;
  ASSERT_TRUE(request.ParseFromString(std::string(writer.Next())));
  ASSERT_EQ(request.calls_size(), 1000);
  std::map<std::string, int> limits;
  for (const auto& call : request.calls()) ++limits[call.charges(0).limit()];
  EXPECT_EQ(limits.size(), 2u);
  EXPECT_NEAR(limits["tiny"], 250, 100);  // 7 standard deviations
}

TEST(WireTest, HotIsOneKeyAndZipfIsSteep) {
  LoadOptions options = Options(LoadMode::kBatch);
  options.batch = 1000;
  options.distribution = KeyDistribution::kHot;
  v1::ShouldAllowBatchRequest hot, zipf;
  ASSERT_TRUE(hot.ParseFromString(std::string(RequestWriter(options).Next())));
  for (const auto& call : hot.calls()) EXPECT_EQ(call.charges(0).key(), "key-00000000");
  options.distribution = KeyDistribution::kZipf;
  options.keys = 10'000;
  ASSERT_TRUE(zipf.ParseFromString(std::string(RequestWriter(options).Next())));
  std::map<std::string, int> counts;
  for (const auto& call : zipf.calls()) ++counts[call.charges(0).key()];
  EXPECT_GT(counts["key-00000000"], 60);
  EXPECT_GT(counts.size(), 100u);
}

v1::ShouldAllowResponse Response(bool allowed) {
  v1::ShouldAllowResponse response;
  response.set_allowed(allowed);
  response.set_reason(allowed ? v1::ALLOWED : v1::QUOTA_EXCEEDED);
  v1::ChargeResult& charge = *response.add_charges();
  charge.set_limit("api-user");
  charge.set_remaining(1'000'000);
  charge.mutable_reset_after()->set_seconds(1);
  response.mutable_retry_after()->set_nanos(5);
  return response;
}

TEST(WireTest, CountsAResponse) {
  EXPECT_EQ(CountResponse(Response(true).SerializeAsString()).allowed, 1);
  EXPECT_EQ(CountResponse(Response(false).SerializeAsString()).denied, 1);
  EXPECT_EQ(CountResponse("").denied, 1);  // all fields at their defaults
}

TEST(WireTest, CountsABatchResponse) {
  v1::ShouldAllowBatchResponse response;
  for (int i = 0; i < 10; ++i) *response.add_outcomes()->mutable_response() = Response(i < 7);
  for (int i = 0; i < 2; ++i) response.add_outcomes()->mutable_error()->set_code(5);
  const AnswerCounts counts = CountBatchResponse(response.SerializeAsString());
  EXPECT_EQ(counts.allowed, 7);
  EXPECT_EQ(counts.denied, 3);
  EXPECT_EQ(counts.errors, 2);
}

TEST(WireTest, WhatIsCutOffIsAnError) {
  v1::ShouldAllowBatchResponse response;
  for (int i = 0; i < 3; ++i) *response.add_outcomes()->mutable_response() = Response(true);
  const std::string whole = response.SerializeAsString();
  for (std::size_t size = 1; size < whole.size(); ++size) {
    if (size % (whole.size() / 3) == 0) continue;  // between two outcomes: a shorter answer
    EXPECT_GE(CountBatchResponse(absl::string_view(whole).substr(0, size)).errors, 1) << size;
  }
  EXPECT_EQ(CountResponse("\xff\xff\xff").errors, 1);
  EXPECT_EQ(CountResponse(absl::string_view("\x0b", 1)).errors, 1);
}

}  // namespace
}  // namespace ebbgate::client

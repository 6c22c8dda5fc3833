// The public API over a real connection.
#include "server/service/rate_limiter_methods.h"

#include <google/protobuf/util/time_util.h>

#include <string>

#include "gtest/gtest.h"
#include "tests/unit/service/served.h"

namespace ebbgate {
namespace {

using google::protobuf::util::TimeUtil;
using testing::FieldOf;
using testing::RawCall;
using testing::ReasonOf;
using testing::Request;
using testing::Served;

constexpr char kShouldAllow[] = "/ebbgate.v1.RateLimiter/ShouldAllow";
constexpr char kShouldAllowBatch[] = "/ebbgate.v1.RateLimiter/ShouldAllowBatch";

TEST(ShouldAllow, FiveAtOnceGiveFourAndAnHonestWait) {
  Served served;
  v1::ShouldAllowResponse response;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(served.ShouldAllow(Request("api-user", "alice"), response).ok());
    EXPECT_TRUE(response.allowed());
    EXPECT_EQ(response.reason(), v1::ALLOWED);
    EXPECT_EQ(response.charges(0).remaining(), 3 - i);
  }
  ASSERT_TRUE(served.ShouldAllow(Request("api-user", "alice"), response).ok());
  EXPECT_FALSE(response.allowed());
  EXPECT_EQ(response.reason(), v1::QUOTA_EXCEEDED);
  EXPECT_EQ(TimeUtil::DurationToMilliseconds(response.retry_after()), 500);
  EXPECT_EQ(response.charges(0).limit(), "api-user");
  EXPECT_EQ(response.charges(0).capacity(), 4);
  EXPECT_EQ(TimeUtil::DurationToMilliseconds(response.charges(0).reset_after()), 2000);
  EXPECT_TRUE(response.charges(0).tightest());
  served.time.Advance(500'000'000);
  ASSERT_TRUE(served.ShouldAllow(Request("api-user", "alice"), response).ok());
  EXPECT_TRUE(response.allowed());
  EXPECT_EQ(served.latency.Read().sum_ns, 0u);  // the clock stood still while each was decided
}

TEST(ShouldAllow, ErrorsNameReasonAndField) {
  Served served;
  v1::ShouldAllowResponse response;
  const auto ask = [&](const v1::ShouldAllowRequest& request) { return served.ShouldAllow(request, response); };

  grpc::Status status = ask(Request("nobody", "alice"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ReasonOf(status), "UNKNOWN_LIMIT");

  status = ask(Request("api-user", ""));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldOf(status), "charges[0].key");

  status = ask(Request("api-user", std::string(1025, 'k')));
  EXPECT_EQ(ReasonOf(status), "KEY_TOO_LONG");
  EXPECT_EQ(FieldOf(status), "charges[0].key");

  v1::ShouldAllowRequest request = Request("api-user", "alice");
  request.mutable_charges(0)->set_cost(-1);
  status = ask(request);
  EXPECT_EQ(ReasonOf(status), "COST_OUT_OF_RANGE");
  EXPECT_EQ(FieldOf(status), "charges[0].cost");

  status = ask(v1::ShouldAllowRequest());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldOf(status), "charges");

  request = Request("api-user", "alice");
  while (request.charges_size() < 33) *request.add_charges() = request.charges(0);
  EXPECT_EQ(FieldOf(ask(request)), "charges");
  EXPECT_EQ(served.Remaining("api-user", "alice"), 4);

  const auto counted = served.counters.Read();
  EXPECT_EQ(counted.errors[static_cast<std::size_t>(ErrorReason::kUnknownLimit)], 1u);
  EXPECT_EQ(counted.errors[static_cast<std::size_t>(ErrorReason::kKeyTooLong)], 1u);
}

TEST(ShouldAllow, GarbageIsInvalidArgumentAndTheServerLivesOn) {
  Served served;
  const std::string garbage[] = {std::string("\xff\xff\xff", 3), "garbage",
                                 std::string("\x0a\x7f"
                                             "a",
                                             3),
                                 std::string(1, '\0')};
  for (const std::string& bytes : garbage) {
    for (const char* path : {kShouldAllow, kShouldAllowBatch}) {
      RawCall call(served.channel, path, bytes);
      EXPECT_EQ(call.Await().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
      EXPECT_EQ(ReasonOf(call.Await()), "MALFORMED");
    }
  }
  RawCall bad_text(served.channel, kShouldAllow, std::string("\x0a\x05\x12\x03\x61\xff\x62", 7));
  EXPECT_EQ(ReasonOf(bad_text.Await()), "MALFORMED");
  EXPECT_EQ(FieldOf(bad_text.Await()), "charges[0].key");
  v1::ShouldAllowResponse response;
  EXPECT_TRUE(served.ShouldAllow(Request("api-user", "alice"), response).ok());
  EXPECT_EQ(served.counters.Read().errors[static_cast<std::size_t>(ErrorReason::kMalformed)], 9u);
}

TEST(ShouldAllow, AMessageTooLargeIsRefused) {
  Served served;
  RawCall call(served.channel, kShouldAllow, std::string(kMaxMessageBytes + 1, 'x'));
  EXPECT_EQ(call.Await().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST(ShouldAllow, CompressedMessagesAreRefused) {
  Served served;
  RawCall call(served.channel, kShouldAllow, Request("api-user", std::string(1000, 'k')).SerializeAsString(),
               [](grpc::ClientContext& context) {
                 testing::SetPatience(context);
                 context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
               });
  EXPECT_EQ(call.Await().error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST(ShouldAllowBatch, EachCallHasItsOwnOutcome) {
  Served served;
  v1::ShouldAllowBatchRequest request;
  for (int i = 0; i < 5; ++i) *request.add_calls() = Request("api-user", "alice");
  *request.add_calls() = Request("nobody", "alice");
  *request.add_calls() = Request("tenant", "");
  *request.add_calls() = Request("tenant", "acme");
  v1::ShouldAllowBatchResponse response;
  ASSERT_TRUE(served.Batch(request, response).ok());
  ASSERT_EQ(response.outcomes_size(), 8);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(response.outcomes(i).response().allowed(), i < 4) << i;
  EXPECT_EQ(response.outcomes(5).error().code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ReasonOf(response.outcomes(5).error()), "UNKNOWN_LIMIT");
  EXPECT_EQ(response.outcomes(6).error().code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldOf(response.outcomes(6).error()), "calls[6].charges[0].key");
  EXPECT_TRUE(response.outcomes(7).response().allowed());
  EXPECT_EQ(response.outcomes(7).response().charges(0).remaining(), 99);
}

TEST(ShouldAllowBatch, HoldsOneTo1000Calls) {
  Served served;
  v1::ShouldAllowBatchRequest request;
  v1::ShouldAllowBatchResponse response;
  grpc::Status status = served.Batch(request, response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldOf(status), "calls");
  while (request.calls_size() < 1000) *request.add_calls() = Request("tenant", "acme");
  ASSERT_TRUE(served.Batch(request, response).ok());
  ASSERT_EQ(response.outcomes_size(), 1000);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(response.outcomes(i).response().allowed(), i < 100) << i;
  *request.add_calls() = Request("tenant", "other");
  status = served.Batch(request, response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldOf(status), "calls");
  EXPECT_EQ(served.Remaining("tenant", "other"), 100);
}

TEST(StreamShouldAllow, EachMessageIsAnsweredInOrderUntilTheCallerIsDone) {
  Served served;
  grpc::ClientContext context;
  testing::SetPatience(context);
  const auto stream = served.stub->StreamShouldAllow(&context);
  // Many messages on their way at once.
  for (int i = 0; i < 150; ++i) {
    v1::ShouldAllowBatchRequest request;
    *request.add_calls() = Request("tenant", "acme");
    ASSERT_TRUE(stream->Write(request));
  }
  ASSERT_TRUE(stream->WritesDone());
  v1::ShouldAllowBatchResponse response;
  for (int i = 0; i < 150; ++i) {
    ASSERT_TRUE(stream->Read(&response));
    ASSERT_EQ(response.outcomes_size(), 1);
    EXPECT_EQ(response.outcomes(0).response().allowed(), i < 100);
    EXPECT_EQ(response.outcomes(0).response().charges(0).remaining(), i < 100 ? 99 - i : 0);
  }
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(served.counters.Read().stream_messages, 150u);
}

TEST(StreamShouldAllow, AMessageThatABatchWouldRefuseEndsTheStream) {
  Served served;
  grpc::ClientContext context;
  testing::SetPatience(context);
  const auto stream = served.stub->StreamShouldAllow(&context);
  v1::ShouldAllowBatchRequest request;
  *request.add_calls() = Request("tenant", "acme");
  ASSERT_TRUE(stream->Write(request));
  v1::ShouldAllowBatchResponse response;
  ASSERT_TRUE(stream->Read(&response));
  ASSERT_TRUE(stream->Write(v1::ShouldAllowBatchRequest()));
  EXPECT_FALSE(stream->Read(&response));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(FieldOf(status), "calls");
}

TEST(StreamShouldAllow, ACancelledStreamLeavesNothingBehind) {
  Served served;
  for (int i = 0; i < 20; ++i) {
    grpc::ClientContext context;
    const auto stream = served.stub->StreamShouldAllow(&context);
    v1::ShouldAllowBatchRequest request;
    *request.add_calls() = Request("tenant", "acme");
    ASSERT_TRUE(stream->Write(request));
    v1::ShouldAllowBatchResponse response;
    ASSERT_TRUE(stream->Read(&response));
    context.TryCancel();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  served.server.reset();  // returns when every call has ended
  EXPECT_EQ(served.counters.Read().in_flight[static_cast<std::size_t>(Method::kStreamShouldAllow)], 0u);
}

}  // namespace
}  // namespace ebbgate

#include "server/service/health_methods.h"

#include "grpc/health/v1/health.grpc.pb.h"
#include "gtest/gtest.h"
#include "tests/unit/service/served.h"

namespace ebbgate {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using testing::Served;

class HealthTest : public ::testing::Test {
 protected:
  grpc::Status Check(const std::string& service) {
    grpc::ClientContext context;
    testing::SetPatience(context);
    HealthCheckRequest request;
    request.set_service(service);
    return stub_->Check(&context, request, &response_);
  }

  Served served_;
  std::unique_ptr<Health::Stub> stub_ = Health::NewStub(served_.channel);
  HealthCheckResponse response_;
};

TEST_F(HealthTest, CheckFollowsReadiness) {
  for (const char* service : {"", "ebbgate.v1.RateLimiter"}) {
    ASSERT_TRUE(Check(service).ok());
    EXPECT_EQ(response_.status(), HealthCheckResponse::NOT_SERVING);
  }
  served_.readiness.Clear("starting");
  for (const char* service : {"", "ebbgate.v1.RateLimiter"}) {
    ASSERT_TRUE(Check(service).ok());
    EXPECT_EQ(response_.status(), HealthCheckResponse::SERVING);
  }
  served_.readiness.Block("draining");
  ASSERT_TRUE(Check("").ok());
  EXPECT_EQ(response_.status(), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(Check("no.such.Service").error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(HealthTest, WatchTellsEveryChange) {
  grpc::ClientContext context;
  testing::SetPatience(context);
  const auto watch = stub_->Watch(&context, HealthCheckRequest());
  ASSERT_TRUE(watch->Read(&response_));
  EXPECT_EQ(response_.status(), HealthCheckResponse::NOT_SERVING);
  for (int i = 0; i < 50; ++i) {
    served_.readiness.Clear("starting");
    ASSERT_TRUE(watch->Read(&response_));
    EXPECT_EQ(response_.status(), HealthCheckResponse::SERVING);
    served_.readiness.Block("draining");
    ASSERT_TRUE(watch->Read(&response_));
    EXPECT_EQ(response_.status(), HealthCheckResponse::NOT_SERVING);
    // Another reason for the same state is no change.
    served_.readiness.Block("starting");
    served_.readiness.Clear("draining");
  }
  context.TryCancel();
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(HealthTest, WatchOfAnUnknownServiceStaysOpen) {
  grpc::ClientContext context;
  testing::SetPatience(context);
  HealthCheckRequest request;
  request.set_service("no.such.Service");
  const auto watch = stub_->Watch(&context, request);
  ASSERT_TRUE(watch->Read(&response_));
  EXPECT_EQ(response_.status(), HealthCheckResponse::SERVICE_UNKNOWN);
  served_.readiness.Clear("starting");  // changes nothing for this one
  served_.server->BeginStop();
  EXPECT_FALSE(watch->Read(&response_));
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(served_.server->AwaitStopped(testing::kPatienceNs));
}

TEST_F(HealthTest, GarbageIsInvalidArgument) {
  testing::RawCall check(served_.channel, "/grpc.health.v1.Health/Check", "\xff");
  EXPECT_EQ(check.Await().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  testing::RawCall watch(served_.channel, "/grpc.health.v1.Health/Watch", "\xff");
  EXPECT_EQ(watch.Await().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace ebbgate

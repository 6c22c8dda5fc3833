#include "server/service/drift_methods.h"

#include <google/protobuf/util/time_util.h>

#include <string>
#include <utility>

#include "ebbgate/v1/admin.grpc.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/limiter/bounds.h"
#include "tests/unit/service/served.h"

namespace ebbgate {
namespace {

using google::protobuf::util::TimeUtil;
using testing::FieldOf;
using ::testing::HasSubstr;
using testing::ReasonOf;

constexpr std::int64_t kWallNs = 1'793'512'020 * kNsPerSecond;  // 2026-11-01 05:47 UTC
constexpr std::int64_t kMinuteNs = 60 * kNsPerSecond;

class DriftMethodsTest : public ::testing::Test {
 protected:
  DriftMethodsTest() {
    drift_.Watch({testing::Bucket("api-user", 4, 2, testing::kSecond), testing::Bucket("tenant", 9, 1, 1)}, kWallNs);
    const DriftParts parts{drift_, counters_, time_};
    std::vector<RpcMethod> methods = ReportMethods(parts);
    for (RpcMethod& method : DriftAdminMethods(parts)) methods.push_back(std::move(method));
    server_ = *RpcServer::Start({.listen = {testing::Tcp()}}, methods, counters_);
    channel_ = grpc::CreateChannel(server_->addresses().front(), grpc::InsecureChannelCredentials());
  }

  static v1::ReportObservedRequest Good() {
    v1::ReportObservedRequest request;
    request.set_reporter("billing");
    request.set_instance("pod-1");
    *request.mutable_start_time() = TimeUtil::NanosecondsToTimestamp(kWallNs + 1);
    v1::ObservedTotal& total = *request.add_totals();
    total.set_limit("api-user");
    total.set_total(7);
    return request;
  }

  grpc::Status Report(const v1::ReportObservedRequest& request) {
    grpc::ClientContext context;
    testing::SetPatience(context);
    v1::ReportObservedResponse response;
    return v1::RateLimiter::NewStub(channel_)->ReportObserved(&context, request, &response);
  }

  grpc::Status GetDrift(const std::string& limit, v1::GetDriftResponse& response) {
    grpc::ClientContext context;
    testing::SetPatience(context);
    v1::GetDriftRequest request;
    request.set_limit(limit);
    return v1::Admin::NewStub(channel_)->GetDrift(&context, request, &response);
  }

  // The field and reason with which a report is refused that differs from a good one.
  std::string Fault(const std::function<void(v1::ReportObservedRequest&)>& change) {
    v1::ReportObservedRequest request = Good();
    change(request);
    const grpc::Status status = Report(request);
    EXPECT_THAT(status.error_message(), HasSubstr(FieldOf(status)));
    return FieldOf(status) + " " + ReasonOf(status);
  }

  ManualTime time_{kWallNs, testing::kHour};
  ServiceCounters counters_;
  DriftDetector drift_;
  std::unique_ptr<RpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(DriftMethodsTest, ReportsAreAddedUpAndToldToTheOperator) {
  EXPECT_TRUE(Report(Good()).ok());
  EXPECT_TRUE(Report(Good()).ok());
  time_.Advance(3 * kNsPerSecond);
  v1::GetDriftResponse response;
  ASSERT_TRUE(GetDrift("", response).ok());
  ASSERT_EQ(response.limits_size(), 2);
  EXPECT_EQ(response.reporters(), 1u);
  EXPECT_EQ(response.instances(), 1u);
  const v1::LimitDrift& limit = response.limits(0);
  EXPECT_EQ(limit.limit(), "api-user");
  EXPECT_EQ(limit.state(), v1::DRIFT_STATE_OK);
  EXPECT_EQ(limit.received_total(), 7u);
  ASSERT_EQ(limit.reporters_size(), 1);
  EXPECT_EQ(limit.reporters(0).reporter(), "billing");
  EXPECT_EQ(limit.reporters(0).total(), 7u);
  EXPECT_EQ(limit.last_report_age().seconds(), 3);
  EXPECT_EQ(limit.ratio_millionths(), 1'150'000);
  EXPECT_EQ(limit.window().seconds(), 600);
  EXPECT_EQ(limit.minimum(), 100);
  EXPECT_EQ(limit.span().seconds(), 0);
  EXPECT_FALSE(limit.has_out_of_bounds_for());
  EXPECT_FALSE(response.limits(1).has_last_report_age());
  EXPECT_EQ(response.limits(1).reporters_size(), 0);
}

TEST_F(DriftMethodsTest, TellsTheStateAndSinceWhen) {
  for (int minute = 0; minute <= 3; ++minute) {
    v1::ReportObservedRequest request = Good();
    request.mutable_totals(0)->set_total(230 * minute);
    EXPECT_TRUE(Report(request).ok());
    const AdmittedCost admitted[] = {{"api-user", static_cast<std::uint64_t>(100 * minute)}};
    drift_.Evaluate(admitted, time_.MonotonicNs());
    time_.Advance(kMinuteNs);
  }
  v1::GetDriftResponse response;
  ASSERT_TRUE(GetDrift("api-user", response).ok());
  ASSERT_EQ(response.limits_size(), 1);
  EXPECT_EQ(response.limits(0).state(), v1::DRIFT_STATE_SUSPECT);
  EXPECT_EQ(response.limits(0).admitted(), 300u);
  EXPECT_EQ(response.limits(0).received(), 690u);
  EXPECT_EQ(response.limits(0).span().seconds(), 180);
  EXPECT_EQ(response.limits(0).out_of_bounds_for().seconds(), 240);
}

TEST_F(DriftMethodsTest, BadReportsAreRefusedNamingTheField) {
  using Request = v1::ReportObservedRequest;
  EXPECT_EQ(Fault([](Request& r) { r.clear_reporter(); }), "reporter INVALID_FIELD");
  EXPECT_EQ(Fault([](Request& r) { r.set_reporter("a b"); }), "reporter INVALID_FIELD");
  EXPECT_EQ(Fault([](Request& r) { r.clear_instance(); }), "instance INVALID_FIELD");
  EXPECT_EQ(Fault([](Request& r) { r.clear_start_time(); }), "start_time INVALID_FIELD");
  EXPECT_EQ(Fault([](Request& r) { r.mutable_start_time()->set_nanos(-1); }), "start_time INVALID_FIELD");
  EXPECT_EQ(Fault([](Request& r) { r.mutable_start_time()->set_nanos(1'000'000'000); }), "start_time INVALID_FIELD");
  EXPECT_EQ(Fault([](Request& r) { r.mutable_start_time()->set_seconds(kInt64Max); }), "start_time INVALID_FIELD");
  EXPECT_EQ(Fault([](Request& r) { r.mutable_start_time()->set_seconds(-1); }), "start_time INVALID_FIELD");
  EXPECT_EQ(Fault([](Request& r) { r.clear_totals(); }), "totals INVALID_FIELD");
  EXPECT_EQ(Fault([](Request& r) { r.mutable_totals(0)->set_total(-1); }), "totals[0].total INVALID_FIELD");
  EXPECT_EQ(Fault([](Request& r) { r.mutable_totals(0)->clear_limit(); }), "totals[0].limit INVALID_FIELD");
  EXPECT_EQ(Fault([](Request& r) { *r.add_totals() = r.totals(0); }), "totals[1].limit INVALID_FIELD");
  EXPECT_EQ(Fault([](Request& r) {
              while (r.totals_size() <= 1000) r.add_totals()->set_limit("tenant");
            }),
            "totals INVALID_FIELD");

  v1::ReportObservedRequest unknown = Good();
  unknown.add_totals()->set_limit("nobody");
  const grpc::Status status = Report(unknown);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ReasonOf(status), "UNKNOWN_LIMIT");
  EXPECT_THAT(status.error_message(), HasSubstr("totals[1].limit"));

  testing::RawCall garbage(channel_, "/ebbgate.v1.RateLimiter/ReportObserved", "\xff");
  EXPECT_EQ(garbage.Await().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(drift_.Read("api-user")->received, 0u);
  EXPECT_EQ(counters_.Read().errors[static_cast<std::size_t>(ErrorReason::kInvalidField)], 13u);
  EXPECT_EQ(counters_.Read().errors[static_cast<std::size_t>(ErrorReason::kUnknownLimit)], 1u);
  EXPECT_EQ(counters_.Read().errors[static_cast<std::size_t>(ErrorReason::kMalformed)], 1u);
}

TEST_F(DriftMethodsTest, TooManyReportersAreUnavailable) {
  v1::ReportObservedRequest request = Good();
  for (std::size_t i = 0; i < kMaxReporters; ++i) {
    request.set_reporter("reporter" + std::to_string(i));
    EXPECT_TRUE(Report(request).ok());
  }
  request.set_reporter("one-more");
  const grpc::Status status = Report(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ReasonOf(status), "REPORTERS_FULL");
}

TEST_F(DriftMethodsTest, DriftOfAnUnknownLimitIsNotFound) {
  v1::GetDriftResponse response;
  EXPECT_EQ(GetDrift("nobody", response).error_code(), grpc::StatusCode::NOT_FOUND);
}

}  // namespace
}  // namespace ebbgate

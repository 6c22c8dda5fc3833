#include "client/observed_reporter.h"

#include <limits>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/unit/client/fake_server.h"

namespace ebbgate::client {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

class ObservedReporterTest : public testing::Test {
 protected:
  std::unique_ptr<ObservedReporter> Connect(std::vector<std::string> limits = {}) {
    return *ObservedReporter::Connect({.address = server_.address()},
                                      {.reporter = "billing",
                                       .instance = "pod-7",
                                       .limits = std::move(limits),
                                       .start_time = absl::FromUnixNanos(1'793'512'020'000'000'007)});
  }

  FakeServer server_;
};

TEST_F(ObservedReporterTest, BeginsWithZerosAndAddsUp) {
  const std::unique_ptr<ObservedReporter> reporter = Connect({"api", "daily"});
  ASSERT_TRUE(reporter->Report(kPatience).ok());
  reporter->Count("api", 3);
  reporter->Count("api", 4);
  reporter->Count("other", 1);
  reporter->Count("daily", -5);
  ASSERT_TRUE(reporter->Report(kPatience).ok());
  const std::vector<v1::ReportObservedRequest> reports = server_.reports();
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].totals_size(), 2);
  EXPECT_EQ(reports[0].totals(0).total(), 0);
  EXPECT_EQ(reports[1].reporter(), "billing");
  EXPECT_EQ(reports[1].instance(), "pod-7");
  EXPECT_EQ(reports[1].start_time().seconds(), 1'793'512'020);
  EXPECT_EQ(reports[1].start_time().nanos(), 7);
  ASSERT_EQ(reports[1].totals_size(), 3);
  EXPECT_EQ(reports[1].totals(0).limit(), "api");
  EXPECT_EQ(reports[1].totals(0).total(), 7);
  EXPECT_EQ(reports[1].totals(1).total(), 0);
  EXPECT_EQ(reports[1].totals(2).limit(), "other");
}

TEST_F(ObservedReporterTest, AnErrorLosesNothing) {
  const std::unique_ptr<ObservedReporter> reporter = Connect();
  reporter->Count("api", 3);
  server_.report_status = grpc::Status(grpc::StatusCode::UNAVAILABLE, "later");
  EXPECT_EQ(reporter->Report(kPatience).code(), absl::StatusCode::kUnavailable);
  server_.report_status = grpc::Status::OK;
  reporter->Count("api", 2);
  EXPECT_TRUE(reporter->Report(kPatience).ok());
  EXPECT_EQ(server_.reports().back().totals(0).total(), 5);
}

TEST_F(ObservedReporterTest, ManyLimitsTakeSeveralMessages) {
  const std::unique_ptr<ObservedReporter> reporter = Connect();
  EXPECT_TRUE(reporter->Report(kPatience).ok());  // nothing to tell yet
  EXPECT_EQ(server_.reports().size(), 0u);
  for (int i = 0; i < 2500; ++i) reporter->Count(absl::StrCat("limit", i), i);
  EXPECT_TRUE(reporter->Report(kPatience).ok());
  ASSERT_EQ(server_.reports().size(), 3u);
  EXPECT_EQ(server_.reports()[0].totals_size(), 1000);
  EXPECT_EQ(server_.reports()[2].totals_size(), 500);
}

TEST_F(ObservedReporterTest, CountsFromAllThreadsAndStopsAtTheBound) {
  const std::unique_ptr<ObservedReporter> reporter = Connect();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) reporter->Count("api", 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(reporter->Report(kPatience).ok());
  EXPECT_EQ(server_.reports().back().totals(0).total(), 4000);
  reporter->Count("api", std::numeric_limits<std::int64_t>::max());
  ASSERT_TRUE(reporter->Report(kPatience).ok());
  EXPECT_EQ(server_.reports().back().totals(0).total(), std::int64_t{1} << 53);
}

}  // namespace
}  // namespace ebbgate::client

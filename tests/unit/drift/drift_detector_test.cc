#include "server/drift/drift_detector.h"

#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/limiter/bounds.h"
#include "tests/support/durations.h"

namespace ebbgate {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kHour;
using testing::kSecond;
using ::testing::Pair;
using ::testing::StartsWith;

constexpr std::int64_t kMinute = 60 * kSecond;
constexpr std::int64_t kWall = 1'793'512'800 * kSecond;

Limit Named(std::string name, DriftSettings drift = {}) {
  Limit limit;
  limit.name = std::move(name);
  limit.drift = drift;
  return limit;
}

class DriftDetectorTest : public ::testing::Test {
 protected:
  DriftDetectorTest() { drift_.Watch({Named("api"), Named("daily")}, kWall); }

  absl::Status Report(const std::vector<ObservedReport::Total>& totals, absl::string_view reporter = "billing",
                      absl::string_view instance = "pod-1") {
    return drift_.Report(
        {.reporter = reporter, .instance = instance, .start_wall_ns = kWall + kSecond, .totals = totals}, now_ns_);
  }

  // A report of what was received, and a look at what was admitted, every ten seconds.
  std::vector<DriftChange> Run(std::int64_t admitted_each, std::int64_t received_each, int times) {
    std::vector<DriftChange> changes;
    for (int i = 0; i < times; ++i) {
      now_ns_ += 10 * kSecond;
      admitted_ += admitted_each;
      received_ += received_each;
      EXPECT_TRUE(Report({{"api", received_}}).ok());
      for (DriftChange& change : Evaluate()) changes.push_back(std::move(change));
    }
    return changes;
  }

  std::vector<DriftChange> Evaluate() {
    const AdmittedCost cost[] = {{"api", static_cast<std::uint64_t>(admitted_)}, {"gone", 7}};
    return drift_.Evaluate(cost, now_ns_);
  }

  DriftDetector drift_;
  std::int64_t now_ns_ = kHour;
  std::int64_t admitted_ = 1'000'000;  // before anybody reported
  std::int64_t received_ = 0;
};

TEST_F(DriftDetectorTest, EachChangeOfStateIsToldOnce) {
  EXPECT_THAT(Run(100, 100, 90), IsEmpty());
  const std::vector<DriftChange> changes = Run(100, 230, 180);
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].before, DriftState::kOk);
  EXPECT_EQ(changes[0].now.reading.state, DriftState::kSuspect);
  EXPECT_EQ(changes[1].before, DriftState::kSuspect);
  EXPECT_EQ(changes[1].now.reading.state, DriftState::kDrifting);
  EXPECT_EQ(changes[1].now.limit, "api");
  EXPECT_GT(changes[1].now.reading.received, changes[1].now.reading.admitted);
  EXPECT_EQ(drift_.OutOfBounds().size(), 1u);
  // Nobody reports any more: nothing to compare.
  now_ns_ += 10 * kMinute + 1;
  const std::vector<DriftChange> last = drift_.Evaluate({}, now_ns_);
  ASSERT_EQ(last.size(), 1u);
  EXPECT_EQ(last[0].now.reading.state, DriftState::kOk);
  EXPECT_THAT(drift_.OutOfBounds(), IsEmpty());
}

TEST_F(DriftDetectorTest, SeveralReportersAddUp) {
  for (int i = 1; i <= 90; ++i) {
    now_ns_ += 10 * kSecond;
    admitted_ += 100;
    EXPECT_TRUE(Report({{"api", 40 * i}}).ok());
    EXPECT_TRUE(Report({{"api", 60 * i}}, "search").ok());
    EXPECT_THAT(Evaluate(), IsEmpty());
  }
  const std::optional<LimitDrift> api = drift_.Read("api");
  ASSERT_TRUE(api.has_value());
  EXPECT_EQ(api->received, 9000u);
  EXPECT_THAT(api->reporters, ElementsAre(Pair("billing", 3600), Pair("search", 5400)));
  EXPECT_EQ(api->last_report_ns, now_ns_);
  EXPECT_EQ(drift_.Counts().reporters, 2u);
  EXPECT_EQ(drift_.Counts().instances, 2u);
}

TEST_F(DriftDetectorTest, NewsAreJudgedOnceThereAreFigures) {
  EXPECT_FALSE(drift_.HasNews());
  EXPECT_TRUE(Report({{"api", 1}}).ok());
  EXPECT_TRUE(drift_.HasNews());
  drift_.Evaluate({}, now_ns_);
  EXPECT_TRUE(drift_.HasNews());
  Evaluate();
  EXPECT_FALSE(drift_.HasNews());
}

TEST_F(DriftDetectorTest, ALimitThatGoesAndComesBackBeginsAnew) {
  Run(100, 230, 90);
  drift_.Watch({Named("daily"), Named("other")}, kWall + now_ns_);
  EXPECT_FALSE(drift_.Read("api").has_value());
  EXPECT_EQ(Report({{"api", 1}}).code(), absl::StatusCode::kNotFound);
  drift_.Watch({Named("api"), Named("daily")}, kWall + now_ns_);
  const std::vector<LimitDrift> limits = drift_.Read();
  ASSERT_EQ(limits.size(), 2u);
  EXPECT_EQ(limits[0].limit, "api");
  EXPECT_EQ(limits[0].received, 0u);
  EXPECT_EQ(limits[0].reading.state, DriftState::kOk);
  // The same process reports on: what it counted before is not counted again. The admitted counter began anew.
  admitted_ = 0;
  EXPECT_THAT(Run(100, 100, 90), IsEmpty());
  EXPECT_EQ(drift_.Read("api")->received, 8900u);
}

TEST_F(DriftDetectorTest, OtherSettingsBeginTheComparisonAnewAndKeepTheSums) {
  Run(100, 230, 90);
  drift_.Watch({Named("api", {.ratio_micros = 3'000'000})}, kWall + now_ns_);
  EXPECT_EQ(drift_.Read("api")->received, 20'700u);
  const std::vector<DriftChange> changes = Run(100, 230, 90);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].before, DriftState::kDrifting);
  EXPECT_EQ(changes[0].now.reading.state, DriftState::kOk);
}

TEST_F(DriftDetectorTest, ErrorsNameTheField) {
  const std::vector<ObservedReport::Total> one = {{"api", 1}};
  const auto message = [&](const absl::Status& status, absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
    EXPECT_EQ(status.code(), code);
    return std::string(status.message());
  };
  EXPECT_THAT(message(Report(one, "")), StartsWith("reporter: "));
  EXPECT_THAT(message(Report(one, std::string(65, 'r'))), StartsWith("reporter: "));
  EXPECT_THAT(message(Report(one, "two words")), StartsWith("reporter: "));
  EXPECT_THAT(message(Report(one, "b\xc3\xbcro")), StartsWith("reporter: "));
  EXPECT_THAT(message(Report(one, "billing", "")), StartsWith("instance: "));
  EXPECT_THAT(message(Report(one, "billing", std::string(129, 'i'))), StartsWith("instance: "));
  EXPECT_THAT(message(Report({})), StartsWith("totals: "));
  EXPECT_THAT(message(Report(std::vector<ObservedReport::Total>(1001, {"api", 1}))), StartsWith("totals: "));
  EXPECT_THAT(message(Report({{"api", 1}, {"daily", -1}})), StartsWith("totals[1].total: "));
  EXPECT_THAT(message(Report({{"api", kMaxObservedTotal + 1}})), StartsWith("totals[0].total: "));
  EXPECT_THAT(message(Report({{"api", 1}, {"", 1}})), StartsWith("totals[1].limit: "));
  EXPECT_THAT(message(Report({{std::string(129, 'l'), 1}})), StartsWith("totals[0].limit: "));
  EXPECT_THAT(message(Report({{"api", 1}, {"daily", 1}, {"api", 2}})), StartsWith("totals[2].limit: "));
  EXPECT_THAT(message(Report({{"api", 5}, {"nobody", 1}}), absl::StatusCode::kNotFound),
              StartsWith("totals[1].limit: "));
  for (const std::int64_t start_ns : {std::int64_t{0}, std::int64_t{-1}}) {
    EXPECT_THAT(
        message(drift_.Report({.reporter = "r", .instance = "i", .start_wall_ns = start_ns, .totals = one}, now_ns_)),
        StartsWith("start_time: "));
  }
  // Of a refused report nothing is taken.
  EXPECT_EQ(drift_.Read("api")->received, 0u);
  EXPECT_EQ(drift_.Counts().reporters, 0u);
  EXPECT_FALSE(drift_.HasNews());
}

TEST_F(DriftDetectorTest, ReadsManyLimitsInTheirOrder) {
  std::vector<Limit> limits;
  for (int i = 0; i < 1000; ++i) limits.push_back(Named(absl::StrCat("l", 999 - i)));
  drift_.Watch(limits, kWall);
  const std::vector<LimitDrift> read = drift_.Read();
  ASSERT_EQ(read.size(), limits.size());
  for (std::size_t i = 0; i < read.size(); ++i) EXPECT_EQ(read[i].limit, limits[i].name);
  drift_.Watch({}, kWall);
  EXPECT_THAT(drift_.Read(), IsEmpty());
}

TEST_F(DriftDetectorTest, TakesReportsFromAllThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::string instance = absl::StrCat("pod-", t);
      for (int i = 1; i <= 500; ++i) {
        const ObservedReport::Total totals[] = {{"api", i}, {"daily", 2 * i}};
        EXPECT_TRUE(
            drift_
                .Report(
                    {.reporter = "billing", .instance = instance, .start_wall_ns = kWall + kSecond, .totals = totals},
                    kHour + i)
                .ok());
        if (i % 50 == 0) drift_.Watch({Named("api"), Named("daily"), Named(absl::StrCat("l", t))}, kWall);
        if (i % 10 == 0) drift_.Evaluate({}, kHour + i);
        EXPECT_GE(drift_.Read().size(), 2u);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(drift_.Read("api")->received, 2000u);
  EXPECT_EQ(drift_.Read("daily")->received, 4000u);
}

}  // namespace
}  // namespace ebbgate

#include "server/drift_upkeep.h"

#include <spdlog/sinks/ostream_sink.h>

#include <algorithm>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/limiter/bounds.h"
#include "server/limiter/manual_time.h"
#include "tests/support/limits.h"

namespace ebbgate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kSecond;

class DriftUpkeepTest : public ::testing::Test {
 protected:
  void Install(const std::vector<Limit>& limits) {
    drift_.Watch(limits, time_.WallNs());
    engine_.InstallLimits(limits);
  }

  void Report(absl::string_view limit, std::int64_t total) {
    const ObservedReport::Total totals[] = {{limit, total}};
    EXPECT_TRUE(drift_
                    .Report({.reporter = "billing", .instance = "i", .start_wall_ns = start_ns_, .totals = totals},
                            time_.MonotonicNs())
                    .ok());
  }

  // Once a second for so long: so much admitted, so much received.
  void Run(absl::string_view limit, std::int64_t admitted, std::int64_t received, int seconds) {
    for (int i = 0; i < seconds; ++i) {
      if (admitted > 0) testing::Ask(engine_, limit, "alice", admitted);
      Report(limit, received_ += received);
      upkeep_.Tick();
      time_.Advance(kSecond);
    }
  }

  std::size_t Lines() const {
    const std::string text = lines_.str();
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  ManualTime time_{1'793'512'020 * kSecond, testing::kHour};
  const std::int64_t start_ns_ = time_.WallNs();
  Engine engine_{EngineOptions(), time_};
  DriftDetector drift_;
  std::ostringstream lines_;
  EventLog log_{{.sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(lines_)}};
  DriftUpkeep upkeep_{engine_, time_, drift_, log_};
  std::int64_t received_ = 0;
};

TEST_F(DriftUpkeepTest, PutsWhatTheEngineCountsBesideTheReportsAndLogsEachChangeOnce) {
  Install({testing::Bucket("api", 1'000'000, 1'000'000, kSecond)});
  Run("api", 10, 10, 900);
  EXPECT_EQ(Lines(), 0u);
  EXPECT_THAT(DriftLines(drift_), IsEmpty());
  Run("api", 10, 23, 900);
  EXPECT_EQ(Lines(), 2u);
  EXPECT_THAT(lines_.str(), HasSubstr("warning drift_state_changed limit=api from=ok to=suspect"));
  EXPECT_THAT(lines_.str(), HasSubstr("warning drift_state_changed limit=api from=suspect to=drifting"));
  EXPECT_THAT(lines_.str(), HasSubstr("suspect the limiter's window logic before assuming a traffic spike"));
  EXPECT_THAT(DriftLines(drift_), ElementsAre("drift: api is drifting: received 13639, admitted 5930 in 593s"));
  time_.Advance(700 * kSecond);
  upkeep_.Tick();
  EXPECT_EQ(Lines(), 3u);
  EXPECT_THAT(lines_.str(), HasSubstr("info drift_state_changed limit=api from=drifting to=ok"));
}

TEST_F(DriftUpkeepTest, AdmittedAndNeverSeenIsToldOtherwise) {
  Install({testing::Bucket("api", 1'000'000, 1'000'000, kSecond)});
  Run("api", 10, 5, 700);
  EXPECT_THAT(lines_.str(), HasSubstr("to=drifting"));
  EXPECT_THAT(lines_.str(), HasSubstr("more was admitted than received"));
}

TEST_F(DriftUpkeepTest, WhatALimitInShadowLetsPassIsExpected) {
  Limit limit = testing::Bucket("api", 10, 1, testing::kHour);
  limit.shadow = true;
  Install({limit});
  Run("api", 10, 10, 900);
  EXPECT_EQ(Lines(), 0u);
}

TEST_F(DriftUpkeepTest, WhatAReservationCostsInTheEndIsExpected) {
  Install({testing::Bucket("api", 1'000'000, 1'000'000, kSecond)});
  for (int i = 0; i < 900; ++i) {
    // 50 are reserved; the work costs 37, every third time 60.
    const std::int64_t actual = i % 3 == 0 ? 60 : 37;
    const ChargeRequest charge{.limit = "api", .key = "alice", .cost = 50};
    ReserveAnswer reserved;
    engine_.Reserve({.call = {.charges = {&charge, 1}}}, reserved);
    ASSERT_TRUE(reserved.call.allowed);
    SettleAnswer settled;
    engine_.Settle(reserved.reservation_id, {&actual, 1}, settled);
    ASSERT_EQ(settled.error, nullptr);
    Report("api", received_ += actual);
    upkeep_.Tick();
    time_.Advance(kSecond);
  }
  EXPECT_EQ(Lines(), 0u);
  const DriftReading reading = drift_.Read("api")->reading;
  EXPECT_EQ(reading.admitted, reading.received);
}

TEST_F(DriftUpkeepTest, BoundedLinesForPeople) {
  std::vector<Limit> limits;
  for (int i = 0; i < 30; ++i) {
    limits.push_back(testing::Bucket(absl::StrCat("l", i), 1'000'000, 1'000'000, kSecond));
  }
  Install(limits);
  for (int minute = 0; minute <= 3; ++minute) {
    for (const Limit& limit : limits) Report(limit.name, 1000 * minute);
    upkeep_.Tick();
    time_.Advance(60 * kSecond);
  }
  const std::vector<std::string> lines = DriftLines(drift_);
  ASSERT_EQ(lines.size(), kMaxDriftTold + 1);
  EXPECT_EQ(lines[0], "drift: l0 is suspect: received 3000, admitted 0 in 3m");
  EXPECT_EQ(lines.back(), "drift: and 10 more");
}

}  // namespace
}  // namespace ebbgate

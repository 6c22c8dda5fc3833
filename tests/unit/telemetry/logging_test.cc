#include "server/telemetry/logging.h"

#include <spdlog/sinks/ostream_sink.h>

#include <algorithm>
#include <limits>
#include <sstream>
#include <thread>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/limiter/bounds.h"
#include "server/limiter/manual_time.h"
#include "tests/unit/telemetry/json_reader.h"

namespace ebbgate {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// 2026-11-01 05:47:00.123456789 UTC.
constexpr std::int64_t kWallNs = 1'793'512'020'123'456'789;

class LoggingTest : public ::testing::Test {
 protected:
  EventLog Log(bool json, LogLevel level = LogLevel::kInfo) {
    return EventLog(
        {.json = json, .level = level, .sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(out_), .time = &time_});
  }

  // What another writer of JSON makes of the line.
  std::string ReadBack() {
    const auto object = ReadJson(out_.str());
    std::string json;
    EXPECT_TRUE(object != nullptr && google::protobuf::util::MessageToJsonString(*object, &json).ok()) << out_.str();
    return json;
  }

  ManualTime time_{kWallNs};
  std::ostringstream out_;
};

TEST_F(LoggingTest, TextIsALineWithTimeLevelEventAndFields) {
  EventLog log = Log(false);
  log.Info("limits_loaded", {{"file", "limits.yaml"}, {"limits", 12}, {"changed", true}, {"took", 1.5}});
  EXPECT_EQ(out_.str(),
            "2026-11-01T05:47:00.123Z info limits_loaded file=limits.yaml limits=12 changed=true took=1.5\n");
}

TEST_F(LoggingTest, JsonIsAnObjectALine) {
  EventLog log = Log(true);
  log.Warning("limits_rejected", {{"file", std::string("a\"b\n")}, {"line", std::size_t{3}}, {"below", -4}});
  EXPECT_EQ(out_.str(),
            "{\"ts\":\"2026-11-01T05:47:00.123Z\",\"level\":\"warning\",\"event\":\"limits_rejected\","
            "\"file\":\"a\\\"b\\n\",\"line\":3,\"below\":-4}\n");
  EXPECT_THAT(ReadBack(), HasSubstr("\"file\":\"a\\\"b\\n\""));
}

TEST_F(LoggingTest, HostileValuesCannotForgeLinesOrFields) {
  const std::string hostile = "x\n2026-11-01T00:00:00.000Z error forged a=b\x1b[2J\xff";
  Log(false).Info("key_reset", {{"key", hostile}});
  EXPECT_EQ(out_.str(),
            "2026-11-01T05:47:00.123Z info key_reset "
            "key=\"x\\n2026-11-01T00:00:00.000Z error forged a=b\\u{1b}[2J\\xFF\"\n");
  out_.str("");
  Log(true).Info("key_reset", {{"key", hostile}});
  const std::string line = out_.str();
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  EXPECT_THAT(ReadBack(), HasSubstr("error forged a=b"));
  EXPECT_THAT(ReadBack(), Not(HasSubstr("\"a\":")));
}

TEST_F(LoggingTest, JsonStaysValidForNumbersItHasNoWordFor) {
  EventLog log = Log(true);
  log.Info("ratio", {{"a", std::numeric_limits<double>::infinity()},
                     {"b", std::numeric_limits<double>::quiet_NaN()},
                     {"c", std::numeric_limits<std::uint64_t>::max()}});
  EXPECT_THAT(out_.str(), HasSubstr("\"a\":null,\"b\":null,\"c\":18446744073709551615"));
  ReadBack();
}

TEST_F(LoggingTest, CutsLongValues) {
  EventLog log = Log(false);
  log.Info("long", {{"value", std::string(kMaxLogValueBytes + 7, 'x')}});
  EXPECT_LT(out_.str().size(), kMaxLogValueBytes + 100);
  EXPECT_THAT(out_.str(), HasSubstr("x... (7 bytes more)"));
}

TEST_F(LoggingTest, LevelsFilter) {
  EventLog log = Log(false, LogLevel::kWarning);
  log.Event(LogLevel::kDebug, "quiet");
  log.Info("quiet");
  EXPECT_EQ(out_.str(), "");
  log.Error("loud");
  EXPECT_THAT(out_.str(), HasSubstr("error loud"));

  out_.str("");
  EventLog off = Log(false, LogLevel::kOff);
  off.Error("quiet");
  EXPECT_EQ(out_.str(), "");

  EventLog all = Log(false, LogLevel::kTrace);
  all.Event(LogLevel::kTrace, "detail");
  EXPECT_THAT(out_.str(), HasSubstr("trace detail"));
}

TEST_F(LoggingTest, LevelNamesReadBack) {
  for (const LogLevel level :
       {LogLevel::kTrace, LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError, LogLevel::kOff}) {
    EXPECT_EQ(LogLevelNamed(Name(level)), level);
  }
  EXPECT_EQ(LogLevelNamed("warn"), LogLevel::kWarning);
  EXPECT_EQ(LogLevelNamed("INFO"), std::nullopt);
  EXPECT_EQ(LogLevelNamed(""), std::nullopt);
}

TEST_F(LoggingTest, ThrottledEventsSayHowManyWereLeftOut) {
  EventLog log = Log(false);
  LogThrottle throttle(10 * kNsPerSecond);
  for (int i = 0; i < 5; ++i) log.Throttled(throttle, LogLevel::kWarning, "accept_failed");
  EXPECT_EQ(out_.str(), "2026-11-01T05:47:00.123Z warning accept_failed\n");

  out_.str("");
  time_.Advance(10 * kNsPerSecond - 1);
  log.Throttled(throttle, LogLevel::kWarning, "accept_failed");
  EXPECT_EQ(out_.str(), "");
  time_.Advance(1);
  log.Throttled(throttle, LogLevel::kWarning, "accept_failed");
  EXPECT_THAT(out_.str(), HasSubstr("accept_failed suppressed=5\n"));
}

TEST_F(LoggingTest, ThreadsWriteWholeLines) {
  EventLog log = Log(true);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&log, t] {
      for (int i = 0; i < 200; ++i) log.Info("tick", {{"thread", t}, {"i", i}, {"pad", std::string(100, 'p')}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  int lines = 0;
  const std::string all = out_.str();
  for (const absl::string_view line : absl::StrSplit(all, '\n', absl::SkipEmpty())) {
    ASSERT_NE(ReadJson(line), nullptr) << line;
    ++lines;
  }
  EXPECT_EQ(lines, 1600);
}

TEST(LogThrottle, OneOfManyThreadsGetsThrough) {
  LogThrottle throttle(kNsPerSecond);
  std::atomic<int> through{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) through += throttle.Admit(5).has_value() ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(through, 1);
  EXPECT_EQ(throttle.Admit(5 + kNsPerSecond), 7999u);
}

}  // namespace
}  // namespace ebbgate

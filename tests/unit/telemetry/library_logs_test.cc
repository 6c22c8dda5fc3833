#include "server/telemetry/library_logs.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <spdlog/sinks/ostream_sink.h>

#include <sstream>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/limiter/manual_time.h"

namespace ebbgate {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class LibraryLogsTest : public ::testing::Test {
 protected:
  // Each test far from the last one in time: throttles outlive a LibraryLogs.
  LibraryLogsTest() {
    time_.Advance(++tests_ * 3600 * kNsPerSecond);
    gpr_set_log_verbosity(GPR_LOG_SEVERITY_DEBUG);
  }

  static inline std::int64_t tests_ = 0;
  ManualTime time_;
  std::ostringstream out_;
  EventLog log_{
      {.level = LogLevel::kTrace, .sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(out_), .time = &time_}};
};

TEST_F(LibraryLogsTest, GrpcSpeaksThroughTheLogEscaped) {
  LibraryLogs library_logs(log_);
  gpr_log("/build/src/core/server.cc", 42, GPR_LOG_SEVERITY_ERROR, "peer said %s", "\x1b[31m\nforged");
  EXPECT_THAT(out_.str(), HasSubstr("error grpc_log message=\"peer said \\u{1b}[31m\\nforged\" at=server.cc:42\n"));
}

TEST_F(LibraryLogsTest, ProtobufSpeaksThroughTheLog) {
  LibraryLogs library_logs(log_);
  GOOGLE_LOG(WARNING) << "odd\nmessage";
  EXPECT_THAT(out_.str(), HasSubstr("warning protobuf_log message=\"odd\\nmessage\" at=library_logs_test.cc:"));
}

TEST_F(LibraryLogsTest, HeaderValuesAreNotShown) {
  LibraryLogs library_logs(log_);
  gpr_log("chttp2.cc", 1, GPR_LOG_SEVERITY_INFO, "HTTP:%d:HDR:SVR: authorization: Bearer sesame", 1);
  gpr_log("hpack.cc", 2, GPR_LOG_SEVERITY_ERROR, "Error parsing metadata: key=grpc-timeout error=bad value=sesame");
  EXPECT_THAT(out_.str(), Not(HasSubstr("sesame")));
  EXPECT_THAT(out_.str(), HasSubstr("key=grpc-timeout error=bad value=(not shown)"));
}

TEST_F(LibraryLogsTest, OnePlaceSpeaksOnceInTenSeconds) {
  LibraryLogs library_logs(log_);
  for (int i = 0; i < 1000; ++i) gpr_log("a.cc", 7, GPR_LOG_SEVERITY_ERROR, "again");
  EXPECT_EQ(std::vector<std::string>(absl::StrSplit(out_.str(), '\n')).size(), 2u);
  time_.Advance(10 * kNsPerSecond);
  gpr_log("a.cc", 7, GPR_LOG_SEVERITY_ERROR, "again");
  EXPECT_THAT(out_.str(), HasSubstr("suppressed=999"));
}

TEST_F(LibraryLogsTest, GivesTheLibrariesTheirLogsBack) {
  { LibraryLogs library_logs(log_); }
  gpr_log("b.cc", 8, GPR_LOG_SEVERITY_ERROR, "to standard error");
  GOOGLE_LOG(WARNING) << "to standard error";
  EXPECT_EQ(out_.str(), "");
}

}  // namespace
}  // namespace ebbgate

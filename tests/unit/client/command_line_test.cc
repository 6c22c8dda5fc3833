#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "client/cli/app.h"
#include "tests/unit/client/fake_server.h"

namespace ebbgate::client {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct Ran {
  int exit_code;
  std::string out;
  std::string err;
};

Ran Execute(const std::vector<std::string>& args) {
  std::ostringstream out, err;
  const int code = RunCommandLine(args, out, err);
  return {code, out.str(), err.str()};
}

class CommandLineTest : public testing::Test {
 protected:
  // With the address of the fake server for both ports, in front.
  Ran Ask(std::vector<std::string> args) {
    std::vector<std::string> all = {"--server", server_.address(), "--admin", server_.address(), "--timeout", "60s"};
    all.insert(all.end(), args.begin(), args.end());
    return Execute(all);
  }

  std::string FileWith(const std::string& text) {
    if (folder_.empty()) {
      folder_ = (std::filesystem::temp_directory_path() / "command_line_test.XXXXXX").string();
      if (mkdtemp(folder_.data()) == nullptr) std::abort();
    }
    const std::string path = absl::StrCat(folder_, "/", ++files_);
    std::ofstream(path) << text;
    return path;
  }

  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  FakeServer server_;

 private:
  std::string folder_;
  int files_ = 0;
};

TEST_F(CommandLineTest, CheckAllowedIsZero) {
  const Ran ran = Ask({"check", "api-user", "alice", "--cost", "2"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.out, "allowed   3 of 4 left, full in 500ms\n");
  EXPECT_THAT(ran.err, IsEmpty());
  EXPECT_EQ(server_.calls()[0].charges(0).cost(), 2);
}

TEST_F(CommandLineTest, CheckDeniedIsOne) {
  server_.decide = [](const v1::ShouldAllowRequest&, v1::ShouldAllowResponse& response) {
    response.set_reason(v1::QUOTA_EXCEEDED);
    response.mutable_retry_after()->set_seconds(1);
    response.add_charges()->set_reason(v1::QUOTA_EXCEEDED);
    return grpc::Status::OK;
  };
  EXPECT_EQ(Ask({"check", "api-user", "alice"}).exit_code, 1);
}

TEST_F(CommandLineTest, CheckErrorIsTwoAndSaysWhere) {
  server_.decide = [](const v1::ShouldAllowRequest&, v1::ShouldAllowResponse&) {
    return ErrorWithDetails(grpc::StatusCode::NOT_FOUND, "no limit named 'x'", "UNKNOWN_LIMIT", "charges[0].limit");
  };
  const Ran ran = Ask({"check", "x", "alice"});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.out, IsEmpty());
  EXPECT_THAT(ran.err, HasSubstr("NOT_FOUND UNKNOWN_LIMIT in charges[0].limit"));
  EXPECT_THAT(ran.err, HasSubstr("'ebbgate limits'"));
  EXPECT_EQ(Ask({"check", "x", "alice", "--json"}).out,
            R"({"error": "NOT_FOUND", "reason": "UNKNOWN_LIMIT", "field": "charges[0].limit", )"
            R"("message": "no limit named 'x'"})"
            "\n");
}

TEST_F(CommandLineTest, AndAddsCharges) {
  const Ran ran =
      Ask({"check", "a", "k", "--and", "b", "l", "--cost", "5", "--and", "c", "m", "--peek", "--request-id", "r"});
  EXPECT_EQ(ran.exit_code, 0);
  const v1::ShouldAllowRequest call = server_.calls()[0];
  ASSERT_EQ(call.charges_size(), 3);
  EXPECT_FALSE(call.charges(0).has_cost());
  EXPECT_EQ(call.charges(1).limit(), "b");
  EXPECT_EQ(call.charges(1).cost(), 5);
  EXPECT_EQ(call.charges(2).key(), "m");
  EXPECT_TRUE(call.peek());
  EXPECT_EQ(call.request_id(), "r");
}

TEST_F(CommandLineTest, GlobalFlagsStandAnywhere) {
  const std::string address = server_.address();
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"--json", "--server", address, "check", "a", "k"},
                                             {"check", "--json", "a", "--server", address, "k"},
                                             {"check", "a", "k", "--and", "b", "l", "--json", "--server", address}}) {
    const Ran ran = Execute(args);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("\"allowed\": true"));
  }
}

TEST_F(CommandLineTest, TheAddressMayComeFromTheEnvironment) {
  setenv("EBBGATE_SERVER", server_.address().c_str(), 1);
  const Ran ran = Execute({"check", "a", "k"});
  const Ran other = Execute({"check", "a", "k", "--server", "unix:/nowhere/at/all"});  // a flag beats it
  unsetenv("EBBGATE_SERVER");
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(other.exit_code, 2);
}

TEST_F(CommandLineTest, KeysMayBeginWithDashes) {
  EXPECT_EQ(Ask({"check", "--cost", "1", "--", "-limit", "--key"}).exit_code, 0);
  EXPECT_EQ(server_.calls()[0].charges(0).limit(), "-limit");
  EXPECT_EQ(server_.calls()[0].charges(0).key(), "--key");
}

TEST_F(CommandLineTest, NoServerSaysHowToStartOne) {
  const Ran ran = Execute({"check", "a", "k", "--server", "unix:/nowhere/at/all"});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("unix:/nowhere/at/all"));
  EXPECT_THAT(ran.err, HasSubstr("ebbgated --limits"));
}

TEST_F(CommandLineTest, WrongUseIsTwo) {
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{},
                                             {"dance"},
                                             {"check", "a"},
                                             {"check", "a", "k", "x"},
                                             {"check", "a", "k", "--cost", "9223372036854775808"},
                                             {"check", "a", "k", "--cost", "1.5"},
                                             {"check", "a", "k", "--timeout", "5"},
                                             {"check", "a", "k", "--timeout", "-1s"},
                                             {"check", "a", "k", "--and"},
                                             {"load", "--mode", "fast", "--limit", "l"},
                                             {"load"},
                                             {"report", "billing", "a=1"},
                                             {"report", "billing", "--start-time", "1"},
                                             {"report", "billing", "a", "--start-time", "1"},
                                             {"report", "billing", "a=x", "--start-time", "1"},
                                             {"report", "billing", "a=1", "--start-time", "noon"},
                                             {"drift", "a", "b"},
                                             {"lint"},
                                             {"replay"}}) {
    const Ran ran = Execute(args);
    EXPECT_EQ(ran.exit_code, 2) << testing::PrintToString(args);
    EXPECT_THAT(ran.err, Not(IsEmpty())) << testing::PrintToString(args);
  }
}

TEST_F(CommandLineTest, HelpAndVersionAreZero) {
  const Ran help = Execute({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* command : {"check", "reserve", "settle", "cancel", "inspect", "reset", "limits", "reload", "drift",
                              "report", "lint", "replay", "load", "health"}) {
    EXPECT_THAT(help.out, HasSubstr(command));
    const Ran own = Execute({command, "--help"});
    EXPECT_EQ(own.exit_code, 0);
    EXPECT_THAT(own.out, HasSubstr("Exit code"));
  }
  EXPECT_THAT(Execute({"--version"}).out, HasSubstr("ebbgate "));
}

TEST_F(CommandLineTest, InspectShowsWhatIsKnown) {
  server_.bucket.set_known(true);
  server_.bucket.set_level_microtokens(3'250'000);
  server_.bucket.set_capacity(4);
  server_.bucket.set_remaining(3);
  server_.bucket.mutable_reset_after()->set_nanos(375'000'000);
  server_.bucket.mutable_last_change_age()->set_seconds(2);
  server_.bucket.set_last_change_label("2026-11-01 01:47 EST");
  const Ran ran = Ask({"inspect", "api-user", "alice"});
  EXPECT_EQ(ran.exit_code, 0);
  for (const char* text : {"3 of 4", "3.25", "375ms", "2s ago, 2026-11-01 01:47 EST", "alice"}) {
    EXPECT_THAT(ran.out, HasSubstr(text));
  }
  EXPECT_THAT(Ask({"inspect", "api-user", "alice", "--json"}).out, HasSubstr("\"level_microtokens\": 3250000"));
}

TEST_F(CommandLineTest, ADebtIsShownAsOne) {
  server_.bucket.set_level_microtokens(-1'500'000);
  EXPECT_THAT(Ask({"inspect", "l", "k"}).out, HasSubstr("-1.5"));
}

TEST_F(CommandLineTest, ResetSendsTheReason) {
  EXPECT_THAT(Ask({"reset", "l", "k", "--reason", "ticket 4711"}).out, HasSubstr("reset: l k"));
  EXPECT_THAT(Ask({"reset", "l", "unknown"}).out, HasSubstr("nothing to reset"));
  EXPECT_EQ(server_.reset_reasons()[0], "ticket 4711");
}

TEST_F(CommandLineTest, LimitsShowsWhere) {
  v1::LimitInfo& limit = *server_.limits.add_limits();
  limit.set_name("api-user");
  limit.set_algorithm("token_bucket");
  limit.set_parameters("capacity 4, refill 2 per 1s");
  limit.set_file("limits.yaml");
  limit.set_line(9);
  limit.set_default_cost(1);
  limit.set_shadow(true);
  EXPECT_THAT(Ask({"limits"}).out, HasSubstr("limits.yaml:9"));
  EXPECT_THAT(Ask({"limits"}).out, HasSubstr("shadow"));
  EXPECT_THAT(Ask({"limits", "--json"}).out, HasSubstr("\"line\": 9"));
}

TEST_F(CommandLineTest, ReportSendsTotals) {
  const Ran ran = Ask(
      {"report", "billing", "api-user=120", "a=b=7", "--instance", "pod-1", "--start-time", "2026-11-01T05:47:00.5Z"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out, "reported: 2 totals of billing, pod-1\n");
  ASSERT_EQ(server_.reports().size(), 1u);
  const v1::ReportObservedRequest report = server_.reports()[0];
  EXPECT_EQ(report.reporter(), "billing");
  EXPECT_EQ(report.instance(), "pod-1");
  EXPECT_EQ(report.start_time().seconds(), 1'793'512'020);
  EXPECT_EQ(report.start_time().nanos(), 500'000'000);
  ASSERT_EQ(report.totals_size(), 2);
  EXPECT_EQ(report.totals(0).limit(), "api-user");
  EXPECT_EQ(report.totals(0).total(), 120);
  EXPECT_EQ(report.totals(1).limit(), "a=b");
  EXPECT_EQ(report.totals(1).total(), 7);
}

TEST_F(CommandLineTest, ReportTakesSecondsAndThisHostAndTellsErrors) {
  EXPECT_EQ(Ask({"report", "billing", "a=0", "--start-time", "1793512020", "--json"}).out, "{\"totals\": 1}\n");
  EXPECT_EQ(server_.reports()[0].start_time().seconds(), 1'793'512'020);
  EXPECT_NE(server_.reports()[0].instance(), "");
  server_.report_status = ErrorWithDetails(grpc::StatusCode::NOT_FOUND, "no", "UNKNOWN_LIMIT", "totals[0].limit");
  const Ran ran = Ask({"report", "billing", "a=0", "--start-time", "1793512020"});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("UNKNOWN_LIMIT in totals[0].limit"));
}

TEST_F(CommandLineTest, DriftTellsByItsExitCode) {
  v1::LimitDrift& limit = *server_.drift.add_limits();
  limit.set_limit("api-user");
  limit.set_ratio_millionths(1'150'000);
  limit.mutable_window()->set_seconds(600);
  EXPECT_EQ(Ask({"drift"}).exit_code, 0);
  EXPECT_THAT(Ask({"drift"}).out, HasSubstr("none"));
  limit.set_admitted(6000);
  limit.set_received(13'800);
  limit.mutable_span()->set_seconds(590);
  limit.mutable_last_report_age()->set_seconds(3);
  limit.set_state(v1::DRIFT_STATE_SUSPECT);
  EXPECT_EQ(Ask({"drift"}).exit_code, 0);
  limit.set_state(v1::DRIFT_STATE_DRIFTING);
  v1::ReporterTotal& reporter = *limit.add_reporters();
  reporter.set_reporter("billing");
  reporter.set_total(99'000);
  const Ran ran = Ask({"drift"});
  EXPECT_EQ(ran.exit_code, 1);
  for (const char* text :
       {"api-user", "drifting", "2.300", "13,800", "6,000", "9m50s", "1.15 in 10m", "3s ago", "billing", "99,000"}) {
    EXPECT_THAT(ran.out, HasSubstr(text));
  }
  const Ran json = Ask({"drift", "--json"});
  EXPECT_EQ(json.exit_code, 1);
  EXPECT_THAT(json.out, HasSubstr("\"state\": \"drifting\", \"received\": 13800, \"admitted\": 6000"));
  EXPECT_THAT(json.out, HasSubstr("\"reporters\": {\"billing\": 99000}"));
  server_.admin_status = grpc::Status(grpc::StatusCode::NOT_FOUND, "no limit");
  EXPECT_EQ(Ask({"drift", "x"}).exit_code, 2);
}

TEST_F(CommandLineTest, ARefusedReloadIsTold) {
  EXPECT_EQ(Ask({"reload"}).out, "reloaded: 1 limit, generation 2\n");
  server_.admin_status = grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "limits.yaml:3: a\nlimits.yaml:4: b");
  const Ran ran = Ask({"reload"});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("\n  limits.yaml:3: a\n  limits.yaml:4: b\n"));
}

TEST_F(CommandLineTest, HealthIsForContainers) {
  EXPECT_EQ(Ask({"health"}).exit_code, 0);
  server_.health = grpc::health::v1::HealthCheckResponse::NOT_SERVING;
  EXPECT_EQ(Ask({"health"}).exit_code, 1);
  EXPECT_EQ(Ask({"health", "--service", "nobody"}).exit_code, 2);
  EXPECT_EQ(Execute({"health", "--server", "unix:/nowhere/at/all"}).exit_code, 2);
}

TEST_F(CommandLineTest, LintTellsGoodFromDoubtfulFromBad) {
  const char* const rest = ", refill: {tokens: 1, per: 1s}}]\n";
  EXPECT_EQ(Execute({"lint", FileWith(absl::StrCat("limits: [{name: a, capacity: 4", rest))}).exit_code, 0);
  const Ran doubtful =
      Execute({"lint", FileWith(absl::StrCat("limits: [{name: a, capacity: 4, default_cost: 5", rest))});
  EXPECT_EQ(doubtful.exit_code, 1);
  EXPECT_THAT(doubtful.out, HasSubstr("warning: "));
  const Ran bad = Execute({"lint", FileWith(absl::StrCat("limits: [{name: a, capacity: 0", rest))});
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_THAT(bad.out, HasSubstr("error: "));
  EXPECT_EQ(Execute({"lint", "/no/such/file"}).exit_code, 2);
  EXPECT_THAT(Execute({"lint", "/no/such/file", "--json"}).out, HasSubstr("\"errors\": [\""));
}

TEST_F(CommandLineTest, ReplayTellsRightFromWrongFromUnreadable) {
  const auto file = [&](const char* remaining, const char* step) {
    return FileWith(absl::StrCat(
        R"({"cases": [{"name": "one", "limits": [{"name": "L", "capacity": 4, "refill": {"tokens": 2, "per": "1s"}}], )",
        R"("steps": [{"at": "0s", ")", step, R"(": {"charges": [{"limit": "L", "key": "k"}]}, )",
        R"("expect": {"charges": [{"remaining": )", remaining, "}]}}]}]}"));
  };
  const Ran right = Execute({"replay", file("3", "should_allow")});
  EXPECT_EQ(right.exit_code, 0) << right.out;
  EXPECT_EQ(right.out, "1 file, 1 cases as expected, 0 differ; 1 decisions\n");
  const Ran wrong = Execute({"replay", file("2", "should_allow")});
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.out, HasSubstr("one: differs\n  step 1 at 0s: charges[0].remaining: want 2, got 3\n"));
  EXPECT_EQ(Execute({"replay", file("3", "lease")}).exit_code, 2);
  EXPECT_EQ(Execute({"replay", file("x", "should_allow")}).exit_code, 2);
  EXPECT_EQ(Execute({"replay", "/no/such/file", file("2", "should_allow")}).exit_code, 2);
  const Ran json = Execute({"replay", "--json", file("2", "should_allow")});
  EXPECT_THAT(json.out, HasSubstr("\"outcome\": \"differs\""));
  EXPECT_THAT(json.out, HasSubstr("\"differing\": 1"));
}

TEST_F(CommandLineTest, LoadPrintsATableOrJson) {
  const Ran table = Ask({"load", "--limit", "l", "--calls", "20"});
  EXPECT_EQ(table.exit_code, 0) << table.err;
  for (const char* text : {"calls/s", "decisions/s", "p99.9", "allowed", "denied", "errors"}) {
    EXPECT_THAT(table.out, HasSubstr(text));
  }
  EXPECT_THAT(Ask({"load", "--limit", "l", "--calls", "20", "--json"}).out, HasSubstr("\"calls\": 20"));
}

}  // namespace
}  // namespace ebbgate::client

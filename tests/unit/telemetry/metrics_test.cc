#include "server/telemetry/metrics.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/limiter/manual_time.h"

namespace ebbgate {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Limit TokenBucket(const std::string& name, std::int64_t capacity) {
  Limit limit;
  limit.name = name;
  limit.parameters.capacity = FromTokens(capacity);
  limit.parameters.refill = {.tokens = FromTokens(1), .per_ns = kNsPerSecond};
  return limit;
}

class MetricsTest : public ::testing::Test {
 protected:
  void Call(absl::string_view limit, absl::string_view key, std::optional<std::int64_t> cost = std::nullopt) {
    const ChargeRequest charge{.limit = limit, .key = key, .cost = cost};
    CallAnswer answer;
    engine_.Decide({.charges = {&charge, 1}, .request_id = ""}, answer);
  }

  std::string Scrape() const { return ExpositionText(metrics_); }

  // The sample line of a series, whole; empty if there is none.
  std::string Sample(absl::string_view series) const {
    const std::string text = Scrape();
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      if (absl::StartsWith(line, absl::StrCat(series, " "))) return std::string(line);
    }
    return "";
  }

  ManualTime time_{1'793'512'020'000'000'000, 1'000};
  EngineOptions options_;
  Engine engine_{options_, time_};
  LatencyRecorder latency_;
  ServiceCounters service_;
  ReloadStatus reload_;
  DriftDetector drift_;
  Metrics metrics_{{.engine = engine_,
                    .engine_options = options_,
                    .latency = latency_,
                    .service = service_,
                    .reload_status = [this] { return reload_; },
                    .drift = drift_,
                    .build = {.version = "1.2.3"}}};
};

TEST_F(MetricsTest, EverySeriesIsThereFromTheFirstScrape) {
  engine_.InstallLimits({TokenBucket("api-user", 4), TokenBucket("api", 10)});
  std::vector<std::string> zero = {
      "ebbgate_keys",
      "ebbgate_keys_expired_total",
      "ebbgate_keys_reset_total",
      "ebbgate_store_full_total{policy=\"deny\"}",
      "ebbgate_store_full_total{policy=\"allow\"}",
      "ebbgate_unknown_limit_total",
      "ebbgate_invalid_calls_total",
      "ebbgate_replayed_calls_total",
      "ebbgate_request_ids",
      "ebbgate_request_id_bytes",
      "ebbgate_request_ids_refused_total",
      "ebbgate_holds",
      "ebbgate_holds_refused_total",
      "ebbgate_clock_regressions_total",
      "ebbgate_wall_clock_steps_total{direction=\"forward\"}",
      "ebbgate_wall_clock_steps_total{direction=\"back\"}",
      "ebbgate_config_last_reload_successful",
      "ebbgate_config_last_reload_success_timestamp_seconds",
      "ebbgate_config_reloads_total{result=\"success\"}",
      "ebbgate_config_reloads_total{result=\"failure\"}",
      "ebbgate_decision_duration_seconds_count",
      "ebbgate_decision_duration_seconds_sum",
      "ebbgate_decision_duration_seconds_bucket{le=\"1e-06\"}",
      "ebbgate_decision_duration_seconds_bucket{le=\"+Inf\"}",
      "ebbgate_calls_in_flight{method=\"StreamShouldAllow\"}",
      "ebbgate_calls_total{method=\"ShouldAllow\",code=\"OK\"}",
      "ebbgate_calls_total{method=\"HttpShouldAllow\",code=\"INVALID_ARGUMENT\"}",
      "ebbgate_errors_total{reason=\"MALFORMED\"}",
      "ebbgate_calls_total{method=\"Reserve\",code=\"OK\"}",
      "ebbgate_calls_total{method=\"Settle\",code=\"NOT_FOUND\"}",
      "ebbgate_errors_total{reason=\"DRAINING\"}",
      "ebbgate_errors_total{reason=\"HOLDS_FULL\"}",
      "ebbgate_errors_total{reason=\"UNKNOWN_RESERVATION\"}",
      "ebbgate_stream_messages_total",
      "ebbgate_keys_given_up_total",
      "ebbgate_observed_reporters",
      "ebbgate_observed_instances",
      "ebbgate_observed_reports_total{result=\"accepted\"}",
      "ebbgate_observed_reports_total{result=\"rejected\"}",
  };
  for (const char* limit : {"api-user", "api"}) {
    for (const char* outcome : {"allowed", "denied", "failed"}) {
      zero.push_back(absl::StrCat("ebbgate_decisions_total{limit=\"", limit, "\",outcome=\"", outcome, "\"}"));
    }
    for (const char* reason : {"QUOTA_EXCEEDED", "COST_EXCEEDS_CAPACITY", "TOO_MUCH_DEBT", "TOO_MANY_HOLDS"}) {
      zero.push_back(absl::StrCat("ebbgate_refusals_total{limit=\"", limit, "\",reason=\"", reason, "\"}"));
    }
    for (const char* state : {"settled", "cancelled", "expired"}) {
      zero.push_back(absl::StrCat("ebbgate_holds_ended_total{limit=\"", limit, "\",state=\"", state, "\"}"));
    }
    zero.push_back(absl::StrCat("ebbgate_holds_open{limit=\"", limit, "\"}"));
    for (const char* name : {"admitted_cost", "shadow_refusals", "shadow_refused_cost", "peeks", "given_back_cost",
                             "overrun_cost", "uncovered_cost"}) {
      zero.push_back(absl::StrCat("ebbgate_", name, "_total{limit=\"", limit, "\"}"));
    }
  }
  for (const std::string& series : zero) EXPECT_EQ(Sample(series), series + " 0");
  EXPECT_EQ(Sample("ebbgate_limits"), "ebbgate_limits 2");
  EXPECT_EQ(Sample("ebbgate_store_max_keys"), absl::StrCat("ebbgate_store_max_keys ", options_.max_keys));
  EXPECT_EQ(Sample("ebbgate_max_holds"), absl::StrCat("ebbgate_max_holds ", options_.max_holds));
  EXPECT_EQ(Sample("ebbgate_store_max_bytes"), absl::StrCat("ebbgate_store_max_bytes ", options_.max_store_bytes));
  EXPECT_NE(Sample("ebbgate_limits_generation"), "");
  EXPECT_NE(Sample("ebbgate_store_bytes"), "");
  EXPECT_THAT(Scrape(), HasSubstr("ebbgate_build_info{version=\"1.2.3\",compiler="));
  EXPECT_THAT(Scrape(), HasSubstr("process_resident_memory_bytes "));
}

TEST_F(MetricsTest, CountsWhatWasDecided) {
  engine_.InstallLimits({TokenBucket("api-user", 4)});
  for (int i = 0; i < 6; ++i) Call("api-user", "alice");
  Call("api-user", "alice", 5);
  Call("api-user", "alice", 0);
  latency_.Record(1'500);
  latency_.Record(700, 7);
  EXPECT_EQ(Sample("ebbgate_decisions_total{limit=\"api-user\",outcome=\"allowed\"}"),
            "ebbgate_decisions_total{limit=\"api-user\",outcome=\"allowed\"} 4");
  EXPECT_EQ(Sample("ebbgate_decisions_total{limit=\"api-user\",outcome=\"denied\"}"),
            "ebbgate_decisions_total{limit=\"api-user\",outcome=\"denied\"} 3");
  EXPECT_EQ(Sample("ebbgate_admitted_cost_total{limit=\"api-user\"}"),
            "ebbgate_admitted_cost_total{limit=\"api-user\"} 4");
  EXPECT_EQ(Sample("ebbgate_refusals_total{limit=\"api-user\",reason=\"QUOTA_EXCEEDED\"}"),
            "ebbgate_refusals_total{limit=\"api-user\",reason=\"QUOTA_EXCEEDED\"} 2");
  EXPECT_EQ(Sample("ebbgate_refusals_total{limit=\"api-user\",reason=\"COST_EXCEEDS_CAPACITY\"}"),
            "ebbgate_refusals_total{limit=\"api-user\",reason=\"COST_EXCEEDS_CAPACITY\"} 1");
  EXPECT_EQ(Sample("ebbgate_peeks_total{limit=\"api-user\"}"), "ebbgate_peeks_total{limit=\"api-user\"} 1");
  EXPECT_EQ(Sample("ebbgate_keys"), "ebbgate_keys 1");
  EXPECT_EQ(Sample("ebbgate_decision_duration_seconds_count"), "ebbgate_decision_duration_seconds_count 8");
  EXPECT_EQ(Sample("ebbgate_decision_duration_seconds_bucket{le=\"1e-06\"}"),
            "ebbgate_decision_duration_seconds_bucket{le=\"1e-06\"} 7");
  EXPECT_EQ(Sample("ebbgate_decision_duration_seconds_bucket{le=\"2e-06\"}"),
            "ebbgate_decision_duration_seconds_bucket{le=\"2e-06\"} 8");
}

TEST_F(MetricsTest, CountsWhatBecameOfHolds) {
  engine_.InstallLimits({TokenBucket("L", 10)});
  const auto reserve = [this](std::int64_t cost) {
    const ChargeRequest charge{.limit = "L", .key = "alice", .cost = cost};
    ReserveAnswer answer;
    engine_.Reserve({.call = {.charges = {&charge, 1}, .request_id = ""}}, answer);
    return answer.reservation_id;
  };
  const std::string settled = reserve(4), cancelled = reserve(3);
  reserve(1);
  SettleAnswer answer;
  engine_.Settle(settled, {1}, answer);
  engine_.Cancel(cancelled, answer);
  EXPECT_EQ(Sample("ebbgate_holds_open{limit=\"L\"}"), "ebbgate_holds_open{limit=\"L\"} 1");
  EXPECT_EQ(Sample("ebbgate_holds"), "ebbgate_holds 1");
  for (const char* state : {"settled", "cancelled"}) {
    const std::string series = absl::StrCat("ebbgate_holds_ended_total{limit=\"L\",state=\"", state, "\"}");
    EXPECT_EQ(Sample(series), series + " 1");
  }
  EXPECT_EQ(Sample("ebbgate_given_back_cost_total{limit=\"L\"}"), "ebbgate_given_back_cost_total{limit=\"L\"} 6");
}

TEST_F(MetricsTest, TellsWhatWasReceivedAndWhetherItDrifts) {
  constexpr std::int64_t kWallNs = 1'793'512'020'000'000'000;
  constexpr std::int64_t kMinuteNs = 60 * kNsPerSecond;
  drift_.Watch({TokenBucket("api-user", 4), TokenBucket("quiet", 4)}, kWallNs);
  const auto report = [&](absl::string_view reporter, std::int64_t total, std::int64_t at_ns) {
    const ObservedReport::Total totals[] = {{"api-user", total}};
    EXPECT_TRUE(
        drift_.Report({.reporter = reporter, .instance = "i", .start_wall_ns = kWallNs, .totals = totals}, at_ns).ok());
  };
  report("billing", 0, 1);
  report("search", 10, 1);
  EXPECT_EQ(Sample("ebbgate_observed_cost_total{limit=\"api-user\",reporter=\"billing\"}"),
            "ebbgate_observed_cost_total{limit=\"api-user\",reporter=\"billing\"} 0");
  EXPECT_EQ(Sample("ebbgate_observed_cost_total{limit=\"api-user\",reporter=\"search\"}"),
            "ebbgate_observed_cost_total{limit=\"api-user\",reporter=\"search\"} 10");
  EXPECT_EQ(Sample("ebbgate_observed_reporters"), "ebbgate_observed_reporters 2");
  EXPECT_EQ(Sample("ebbgate_observed_instances"), "ebbgate_observed_instances 2");
  const auto state = [&](absl::string_view name) {
    return Sample(absl::StrCat("ebbgate_drift_state{limit=\"api-user\",state=\"", name, "\"}")).back();
  };
  EXPECT_EQ(state("ok"), '1');
  EXPECT_EQ(state("suspect"), '0');
  EXPECT_EQ(state("drifting"), '0');
  EXPECT_EQ(Sample("ebbgate_drift_state{limit=\"quiet\",state=\"ok\"}"),
            "ebbgate_drift_state{limit=\"quiet\",state=\"ok\"} 1");
  for (int minute = 0; minute <= 4; ++minute) {
    report("billing", 1000 * minute, minute * kMinuteNs);
    const AdmittedCost admitted[] = {{"api-user", static_cast<std::uint64_t>(500 * minute)}};
    drift_.Evaluate(admitted, minute * kMinuteNs);
  }
  EXPECT_EQ(state("ok"), '0');
  EXPECT_EQ(state("suspect"), '1');
  EXPECT_EQ(state("drifting"), '0');
}

TEST_F(MetricsTest, ReportsAreCountedByWhatBecameOfThem) {
  service_.CallEnded(Method::kReportObserved, absl::StatusCode::kOk);
  service_.CallEnded(Method::kReportObserved, absl::StatusCode::kNotFound);
  service_.CallEnded(Method::kReportObserved, absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Sample("ebbgate_observed_reports_total{result=\"accepted\"}"),
            "ebbgate_observed_reports_total{result=\"accepted\"} 1");
  EXPECT_EQ(Sample("ebbgate_observed_reports_total{result=\"rejected\"}"),
            "ebbgate_observed_reports_total{result=\"rejected\"} 2");
}

TEST_F(MetricsTest, TellsHowReloadsWent) {
  reload_.last_reload_successful = false;
  reload_.last_success = absl::FromUnixSeconds(1'793'512'020);
  reload_.successes = 2;
  reload_.failures = 3;
  EXPECT_EQ(Sample("ebbgate_config_last_reload_successful"), "ebbgate_config_last_reload_successful 0");
  EXPECT_EQ(Sample("ebbgate_config_last_reload_success_timestamp_seconds"),
            "ebbgate_config_last_reload_success_timestamp_seconds 1793512020");
  EXPECT_EQ(Sample("ebbgate_config_reloads_total{result=\"success\"}"),
            "ebbgate_config_reloads_total{result=\"success\"} 2");
  EXPECT_EQ(Sample("ebbgate_config_reloads_total{result=\"failure\"}"),
            "ebbgate_config_reloads_total{result=\"failure\"} 3");
}

TEST_F(MetricsTest, WhatCallersSayIsNeverALabel) {
  engine_.InstallLimits({TokenBucket("api-user", 4)});
  Call("api-user", "alice-in-the-labels");
  for (int i = 0; i < 100; ++i) Call(absl::StrCat("no-such-limit-", i), "bob");
  Call("evil\"} 1\nebbgate_keys 99\n", "bob");
  const std::string text = Scrape();
  EXPECT_THAT(text, Not(HasSubstr("alice")));
  EXPECT_THAT(text, Not(HasSubstr("no-such-limit")));
  EXPECT_THAT(text, Not(HasSubstr("evil")));
  EXPECT_EQ(Sample("ebbgate_unknown_limit_total"), "ebbgate_unknown_limit_total 101");
}

// Runs `promtool check metrics` on the text. Returns its exit code and what it said.
std::pair<int, std::string> CheckWithPromtool(const std::string& text) {
  char path[] = "/tmp/ebbgate_metrics_XXXXXX";
  const int fd = mkstemp(path);
  EXPECT_GE(fd, 0);
  const absl::Cleanup remove = [&path] { unlink(path); };
  EXPECT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  close(fd);
  FILE* const pipe = popen(absl::StrCat("promtool check metrics <", path, " 2>&1").c_str(), "r");
  std::string said;
  char chunk[512];
  while (fgets(chunk, sizeof chunk, pipe) != nullptr) said += chunk;
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, said};
}

TEST_F(MetricsTest, PromtoolHasNothingToSay) {
  if (std::system("promtool --version >/dev/null 2>&1") != 0) {
    ASSERT_EQ(getenv("CI"), nullptr) << "continuous integration must have promtool";
    GTEST_SKIP() << "promtool is not installed";
  }
  // Names are validated when limits are read; the text would stay sound even if they were not.
  engine_.InstallLimits({TokenBucket("api-user", 4), TokenBucket("od\"d\\ na\nme", 4), TokenBucket("größe", 4)});
  for (int i = 0; i < 6; ++i) Call("api-user", "alice");
  latency_.Record(1'500);
  const auto [code, said] = CheckWithPromtool(Scrape());
  EXPECT_EQ(code, 0) << said;
  EXPECT_EQ(said, "");
  // The check can fail.
  EXPECT_NE(CheckWithPromtool("ebbgate_requests{ 1\n").first, 0);
}

TEST_F(MetricsTest, PromtoolHasNothingToSayBeforeThereAreLimits) {
  if (std::system("promtool --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "promtool is not installed";
  const auto [code, said] = CheckWithPromtool(Scrape());
  EXPECT_EQ(code, 0) << said;
  EXPECT_EQ(said, "");
}

}  // namespace
}  // namespace ebbgate

#include "client/replay/case_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/replay/json_text.h"

namespace ebbgate::replay {
namespace {

using ::testing::HasSubstr;

constexpr char kLimits[] = R"([{"name": "L", "capacity": 4, "refill": {"tokens": 2, "per": "1s"}}])";

std::string FileWith(absl::string_view steps) {
  return absl::StrCat(R"({"cases": [{"name": "one", "about": "x", "start_wall": "2026-01-01T00:00:00Z", "limits": )",
                      kLimits, R"(, "steps": )", steps, "}]}");
}

absl::StatusOr<Case> Only(const std::string& text) {
  const auto cases = ParseCases(text, "f.json");
  if (!cases.ok()) return cases.status();
  EXPECT_EQ(cases->size(), 1u);
  return (*cases)[0];
}

TEST(CaseFileTest, ReadsEveryField) {
  const auto one = Only(FileWith(R"([
    {"at": "250ms", "times": 3, "every": "1.5s",
     "should_allow": {"charges": [{"limit": "L", "key": "k", "cost": 9223372036854775807}], "request_id": "r", "peek": true},
     "expect": {"allowed": false, "reason": "ALLOWED", "retry_after": null, "replayed": true, "error": "NOT_FOUND",
       "allowed_count": 2, "charges": [{"limit": "L", "remaining": 1, "capacity": 2, "retry_after": "333333334ns",
       "reset_after": "1h", "reason": "SHADOWED", "tightest": true}]}},
    {"at": "1h", "reload": {"limits": [{"name": "M", "capacity": 1, "refill": {"tokens": 1, "per": "1s"}}]}, "times": 2}])"));
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->name, "one");
  EXPECT_EQ(one->start_wall_ns, 1'767'225'600'000'000'000);
  EXPECT_EQ(one->limits[0].name, "L");
  const Step& step = one->steps[0];
  EXPECT_EQ(step.at_ns, 250'000'000);
  EXPECT_EQ(step.times, 3);
  EXPECT_EQ(step.every_ns, 1'500'000'000);
  const auto& call = std::get<ShouldAllowStep>(step.action);
  EXPECT_EQ(call.charges[0].cost, INT64_MAX);
  EXPECT_EQ(call.request_id, "r");
  EXPECT_TRUE(call.peek);
  EXPECT_EQ(step.expect.allowed, false);
  EXPECT_EQ(step.expect.reason, "ALLOWED");
  ASSERT_TRUE(step.expect.retry_after.has_value());
  EXPECT_FALSE(step.expect.retry_after->ns.has_value());
  EXPECT_EQ(step.expect.replayed, true);
  EXPECT_EQ(step.expect.error, "NOT_FOUND");
  EXPECT_EQ(step.expect.allowed_count, 2);
  const ExpectedCharge& charge = step.expect.charges[0];
  EXPECT_EQ(charge.remaining, 1);
  EXPECT_EQ(charge.capacity, 2);
  EXPECT_EQ(charge.retry_after->ns, 333'333'334);
  EXPECT_EQ(charge.reset_after->ns, 3'600 * kNsPerSecond);
  EXPECT_EQ(charge.reason, "SHADOWED");
  EXPECT_EQ(charge.tightest, true);
  EXPECT_EQ((*std::get<ReloadStep>(one->steps[1].action).limits)[0].name, "M");
}

TEST(CaseFileTest, WhatIsNotNamedIsNotExpected) {
  const auto one = Only(FileWith(R"([{"at": "0s", "should_allow": {"charges": [{"limit": "L", "key": "k"}]}}])"));
  ASSERT_TRUE(one.ok()) << one.status();
  const Expectation& expect = one->steps[0].expect;
  EXPECT_FALSE(expect.allowed || expect.reason || expect.retry_after || expect.replayed || expect.error);
  EXPECT_FALSE(std::get<ShouldAllowStep>(one->steps[0].action).charges[0].cost.has_value());
}

TEST(CaseFileTest, ReadsReservations) {
  const auto one = Only(FileWith(
      R"([{"at": "1s", "reserve": {"charges": [{"limit": "L", "key": "k", "cost": 5}], "max_wait": "2s", "hold_for": "3s",
           "request_id": "r", "as": "a"}, "expect": {"granted": true, "act_after": "1s", "expires_after": "4s"}},
          {"at": "1s", "reserve": {"charges": []}},
          {"at": "2s", "settle": {"reservation": "a", "actual": [1, 2]}, "expect": {"state": "settled", "repeated": false,
           "charges": [{"reserved": 5, "actual": 1, "given_back": 4, "overrun": 0, "uncovered": 0}]}},
          {"at": "3s", "cancel": {"reservation": "a"}}])"));
  ASSERT_TRUE(one.ok()) << one.status();
  const auto& reserve = std::get<ReserveStep>(one->steps[0].action);
  EXPECT_EQ(reserve.charges[0].cost, 5);
  EXPECT_EQ(reserve.max_wait_ns, 2 * kNsPerSecond);
  EXPECT_EQ(reserve.hold_ns, 3 * kNsPerSecond);
  EXPECT_EQ(reserve.request_id + reserve.as, "ra");
  EXPECT_EQ(one->steps[0].expect.granted, true);
  EXPECT_EQ(one->steps[0].expect.act_after->ns, kNsPerSecond);
  EXPECT_EQ(one->steps[0].expect.expires_after->ns, 4 * kNsPerSecond);
  EXPECT_EQ(std::get<ReserveStep>(one->steps[1].action).max_wait_ns, 0);
  EXPECT_EQ(std::get<ReserveStep>(one->steps[1].action).hold_ns, kDefaultHoldNs);
  const auto& settle = std::get<EndStep>(one->steps[2].action);
  EXPECT_EQ(settle.reservation, "a");
  EXPECT_EQ(settle.actual, (std::vector<std::int64_t>{1, 2}));
  const Expectation& expect = one->steps[2].expect;
  EXPECT_EQ(expect.state, "settled");
  EXPECT_EQ(expect.repeated, false);
  EXPECT_EQ(expect.charges[0].reserved, 5);
  EXPECT_EQ(expect.charges[0].actual, 1);
  EXPECT_EQ(expect.charges[0].given_back, 4);
  EXPECT_EQ(expect.charges[0].overrun, 0);
  EXPECT_EQ(expect.charges[0].uncovered, 0);
  EXPECT_FALSE(std::get<EndStep>(one->steps[3].action).actual.has_value());
}

TEST(CaseFileTest, AFaultIsToldWithCaseAndStep) {
  const auto fault = [](absl::string_view step) {
    return std::string(
        Only(FileWith(absl::StrCat(R"([{"at": "0s", "reload": {"limits": )", kLimits, "}}, ", step, "]")))
            .status()
            .message());
  };
  const std::string call = R"("should_allow": {"charges": [{"limit": "L", "key": "k"}]})";
  EXPECT_EQ(fault(R"({"at": "soon", )" + call + "}").substr(0, 33), "f.json: case 'one': steps[1]: at:");
  EXPECT_THAT(fault(R"({"at": "0s"})"), HasSubstr("must have one of should_allow, reserve, settle, cancel and reload"));
  EXPECT_THAT(fault(R"({"at": "0s", "shoud_allow": {}})"), HasSubstr("unknown member 'shoud_allow'"));
  EXPECT_THAT(fault("{" + call + R"(, "expect": {"alowed": true}})"), HasSubstr("unknown member 'alowed'"));
  EXPECT_THAT(fault("{" + call + R"(, "expect": {"allowed": 1}})"), HasSubstr("allowed: must be true or false"));
  EXPECT_THAT(fault("{" + call + R"(, "expect": {"charges": [{"remaining": "x"}]}})"),
              HasSubstr("charges[0]: remaining"));
  EXPECT_THAT(fault("{" + call + R"(, "expect": {"charges": [{"limit": "M"}]}})"),
              HasSubstr("not the limit that is asked"));
  EXPECT_THAT(fault("{" + call + R"(, "times": 0})"), HasSubstr("times: must lie between"));
  EXPECT_THAT(fault("{" + call + R"(, "times": 100000000, "every": "87600h"})"), HasSubstr("every: ends beyond"));
  EXPECT_THAT(fault(R"({"should_allow": {"charges": [{"limit": "L"}]}})"), HasSubstr("key: is missing"));
  EXPECT_THAT(fault(R"({"should_allow": {"charges": [{"limit": "L", "key": "k", "cost": 9223372036854775808}]}})"),
              HasSubstr("cost: must be a whole number"));
  EXPECT_THAT(fault("7"), HasSubstr("must be an object"));
}

TEST(CaseFileTest, OneBadCaseDoesNotHideTheOthers) {
  const auto cases = ParseCases(
      absl::StrCat(
          R"({"cases": [{"name": "bad", "limits": [{"name": "L"}], "steps": []}, 3, {"name": "good", "limits": )",
          kLimits, R"(, "steps": []}]})"),
      "f.json");
  ASSERT_TRUE(cases.ok());
  ASSERT_EQ(cases->size(), 3u);
  EXPECT_THAT((*cases)[0].status().message(), HasSubstr("f.json: case 'bad'"));
  EXPECT_THAT((*cases)[1].status().message(), HasSubstr("f.json: case 2"));
  EXPECT_TRUE((*cases)[2].ok());
}

TEST(CaseFileTest, WhatIsNoCaseFileIsRefused) {
  for (const char* text : {"", "[]", "{", "{\"cases\": 3}", "\t", "x", "{\"cases\": [}"}) {
    EXPECT_EQ(ParseCases(text, "f.json").status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_EQ(LoadCases("/no/such/file").status().code(), absl::StatusCode::kNotFound);
}

TEST(CaseFileTest, BadLimitsOfAReloadAreForTheStepToExpect) {
  const auto one = Only(FileWith(R"([{"at": "0s", "reload": {"limits": [{"name": "L", "capacity": 0}]}}])"));
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(std::get<ReloadStep>(one->steps[0].action).limits.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(JsonTextTest, SurrogatesAreJoined) {
  EXPECT_EQ(JoinSurrogates("a\\ud83d\\ude00b"),
            "a\xf0\x9f\x98\x80"
            "b");
  EXPECT_EQ(JoinSurrogates("\\\\ud83d\\\\ude00"), "\\\\ud83d\\\\ude00");  // escaped backslashes
  EXPECT_EQ(JoinSurrogates("\\ud83dx \\ude00 \\u00e9 \\"), "\\ud83dx \\ude00 \\u00e9 \\");
}

TEST(JsonTextTest, TextsStayTexts) {
  const std::string text = R"({"a": ["7", 7, "true", true, null, "*", "x: #y", "\u00e9\n"], "b": {}})";
  EXPECT_EQ(ToJson(YAML::Load(text)),
            "{\"a\": [\"7\", 7, \"true\", true, null, \"*\", \"x: #y\", \"\xc3\xa9\\u000a\"], \"b\": {}}");
}

}  // namespace
}  // namespace ebbgate::replay

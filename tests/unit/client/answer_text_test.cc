#include "client/cli/answer_text.h"

#include <gtest/gtest.h>

namespace ebbgate::client {
namespace {

ChargeAnswer Charged(std::string limit, std::int64_t remaining, std::int64_t capacity, absl::Duration reset_after) {
  ChargeAnswer charge;
  charge.limit = std::move(limit);
  charge.remaining = remaining;
  charge.capacity = capacity;
  charge.reset_after = reset_after;
  return charge;
}

const Call kOne{.charges = {{.limit = "api-user", .key = "alice"}}};

TEST(AnswerTextTest, Allowed) {
  Answer answer;
  answer.allowed = true;
  answer.charges = {Charged("api-user", 3, 4, absl::Milliseconds(500))};
  EXPECT_EQ(AnswerText(kOne, answer), "allowed   3 of 4 left, full in 500ms\n");
  EXPECT_EQ(AnswerJson(kOne, answer),
            R"({"allowed": true, "reason": "ALLOWED", "replayed": false, "charges": [{"limit": "api-user", )"
            R"("key": "alice", "reason": "ALLOWED", "remaining": 3, "capacity": 4, "reset_after": "0.500s", )"
            R"("tightest": false}]})"
            "\n");
}

TEST(AnswerTextTest, DeniedForNow) {
  Answer answer;
  answer.reason = Reason::kQuotaExceeded;
  answer.retry_after = absl::Milliseconds(500);
  answer.charges = {Charged("api-user", 0, 1234, absl::Seconds(2))};
  answer.charges[0].reason = Reason::kQuotaExceeded;
  answer.charges[0].retry_after = answer.retry_after;
  answer.charges[0].tightest = true;
  EXPECT_EQ(AnswerText(kOne, answer), "denied    0 of 1,234 left, retry in 500ms, full in 2s\n");
  EXPECT_EQ(AnswerJson(kOne, answer),
            R"({"allowed": false, "reason": "QUOTA_EXCEEDED", "retry_after": "0.500s", "replayed": false, "charges": )"
            R"([{"limit": "api-user", "key": "alice", "reason": "QUOTA_EXCEEDED", "remaining": 0, "capacity": 1234, )"
            R"("retry_after": "0.500s", "reset_after": "2s", "tightest": true}]})"
            "\n");
}

TEST(AnswerTextTest, DeniedForEver) {
  Answer answer;
  answer.reason = Reason::kCostExceedsCapacity;
  answer.charges = {Charged("api-user", 4, 4, absl::ZeroDuration())};
  answer.charges[0].reason = Reason::kCostExceedsCapacity;
  EXPECT_EQ(AnswerText(kOne, answer), "denied    4 of 4 left, costs more than it can ever hold\n");
}

TEST(AnswerTextTest, SeveralChargesStandBelowEachOther) {
  const Call call{.charges = {{.limit = "user", .key = "u1"}, {.limit = "team", .key = "t\n"}}};
  Answer answer;
  answer.reason = Reason::kQuotaExceeded;
  answer.retry_after = absl::Hours(1);
  answer.charges = {Charged("user", 57, 60, absl::Seconds(3)), Charged("team", 0, 3, absl::Hours(3))};
  answer.charges[1].reason = Reason::kQuotaExceeded;
  answer.charges[1].retry_after = absl::Hours(1);
  EXPECT_EQ(AnswerText(call, answer),
            "denied    retry in 1h\n"
            "  user  u1     allowed  57 of 60 left, full in 3s\n"
            "  team  t\\x0a  denied   0 of 3 left, retry in 1h, full in 3h\n");
}

TEST(AnswerTextTest, AReplayAndAShadowSaySo) {
  Answer answer;
  answer.allowed = true;
  answer.reason = Reason::kShadowed;
  answer.replayed = true;
  answer.charges = {Charged("api-user", 0, 1, absl::ZeroDuration())};
  answer.charges[0].reason = Reason::kShadowed;
  EXPECT_EQ(
      AnswerText(kOne, answer),
      "allowed   0 of 1 left, would be denied but for shadow mode  (the answer of an earlier call with this id)\n");
}

}  // namespace
}  // namespace ebbgate::client

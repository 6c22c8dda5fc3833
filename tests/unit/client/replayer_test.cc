#include "client/replay/replayer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "client/replay/account.h"
#include "client/replay/compare.h"
#include "server/config/limits_file.h"

namespace ebbgate::replay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

CaseResult ReplayText(absl::string_view limits, absl::string_view steps) {
  const auto cases =
      ParseCases(absl::StrCat(R"({"cases": [{"name": "one", "start_wall": "2026-01-01T00:00:00Z", "limits": [)", limits,
                              R"(], "steps": [)", steps, "]}]}"),
                 "f.json");
  EXPECT_TRUE(cases.ok()) << cases.status();
  EXPECT_TRUE((*cases)[0].ok()) << (*cases)[0].status();
  return Replay(*(*cases)[0]);
}

constexpr char kBucket[] = R"({"name": "L", "capacity": 4, "refill": {"tokens": 2, "per": "1s"}})";

std::string Ask(absl::string_view more, absl::string_view expect) {
  return absl::StrCat(R"({"should_allow": {"charges": [{"limit": "L", "key": "k"}]}, )", more, R"( "expect": )", expect,
                      "}");
}

// Each expectation is right by itself and wrong when changed, and the difference names the field.
TEST(ReplayerTest, EveryExpectationThatIsWrongIsReported) {
  struct Expected {
    const char* right;
    const char* wrong;
    const char* field;
  };
  const std::string five = R"({"should_allow": {"charges": [{"limit": "L", "key": "k"}]}, "times": 4}, )";
  for (const Expected& expected : std::initializer_list<Expected>{
           {R"({"allowed": false})", R"({"allowed": true})", "allowed"},
           {R"({"reason": "QUOTA_EXCEEDED"})", R"({"reason": "ALLOWED"})", "reason"},
           {R"({"retry_after": "500ms"})", R"({"retry_after": "500000001ns"})", "retry_after"},
           {R"({"retry_after": "0.5s"})", R"({"retry_after": null})", "retry_after"},
           {R"({"replayed": false})", R"({"replayed": true})", "replayed"},
           {R"({"allowed_count": 0})", R"({"allowed_count": 1})", "allowed_count"},
           {R"({})", R"({"error": "NOT_FOUND"})", "error"},
           {R"({"charges": [{"remaining": 0}]})", R"({"charges": [{"remaining": 1}]})", "charges[0].remaining"},
           {R"({"charges": [{"capacity": 4}]})", R"({"charges": [{"capacity": 5}]})", "charges[0].capacity"},
           {R"({"charges": [{"retry_after": "500ms"}]})", R"({"charges": [{"retry_after": "1ns"}]})",
            "charges[0].retry_after"},
           {R"({"charges": [{"reset_after": "2s"}]})", R"({"charges": [{"reset_after": "1s"}]})",
            "charges[0].reset_after"},
           {R"({"charges": [{"reason": "QUOTA_EXCEEDED"}]})", R"({"charges": [{"reason": "ALLOWED"}]})",
            "charges[0].reason"},
           {R"({"charges": [{"tightest": true}]})", R"({"charges": [{"tightest": false}]})", "charges[0].tightest"},
           {R"({"charges": [{}]})", R"({"charges": [{}, {}]})", "charges"}}) {
    EXPECT_THAT(ReplayText(kBucket, five + Ask("", expected.right)).differences, IsEmpty()) << expected.right;
    const CaseResult wrong = ReplayText(kBucket, five + Ask("", expected.wrong));
    ASSERT_THAT(wrong.differences, SizeIs(1)) << expected.wrong;
    EXPECT_EQ(wrong.differences[0].field, expected.field);
    EXPECT_EQ(wrong.differences[0].step, 2);
  }
}

TEST(ReplayerTest, ErrorsMayBeNamedByCodeOrReason) {
  const std::string ask = R"({"should_allow": {"charges": [{"limit": "M", "key": "k"}]}, "expect": {"error": ")";
  EXPECT_THAT(ReplayText(kBucket, ask + "NOT_FOUND\"}}").differences, IsEmpty());
  EXPECT_THAT(ReplayText(kBucket, ask + "UNKNOWN_LIMIT\"}}").differences, IsEmpty());
  EXPECT_THAT(ReplayText(kBucket, ask + "INVALID_ARGUMENT\"}}").differences, SizeIs(1));
  EXPECT_THAT(ReplayText(kBucket, R"({"should_allow": {"charges": [{"limit": "M", "key": "k"}]}})").differences,
              SizeIs(1));
}

TEST(ReplayerTest, TimesAndEveryMoveTheClock) {
  EXPECT_THAT(ReplayText(kBucket, Ask(R"("times": 20, "every": "100ms",)", R"({"allowed_count": 7})")).differences,
              IsEmpty());
  EXPECT_THAT(ReplayText(kBucket, Ask(R"("times": 20,)", R"({"allowed_count": 4})")).differences, IsEmpty());
  const CaseResult each = ReplayText(kBucket, Ask(R"("times": 5,)", R"({"allowed": true})"));
  EXPECT_THAT(each.differences, SizeIs(1));  // the fifth
}

TEST(ReplayerTest, TheWallClockIsWhereTheCaseSays) {
  const char* const daily =
      R"({"name": "L", "algorithm": "fixed_window", "count": 1, "window": "day", "time_zone": "America/New_York"})";
  EXPECT_THAT(ReplayText(daily, Ask(R"("at": "1s",)", R"({"charges": [{"reset_after": "17999s"}]})")).differences,
              IsEmpty());
}

TEST(ReplayerTest, ReloadsApplyAndBadOnesAreDifferencesUnlessExpected) {
  const std::string reload = R"({"at": "0s", "reload": {"limits": [{"name": "L", "capacity": 0}]})";
  EXPECT_THAT(ReplayText(kBucket, reload + "}").differences, SizeIs(1));
  EXPECT_THAT(
      ReplayText(kBucket, reload + R"(, "expect": {"error": "INVALID_ARGUMENT"}}, )" + Ask("", R"({"allowed": true})"))
          .differences,
      IsEmpty());
  EXPECT_THAT(ReplayText(kBucket, absl::StrCat(R"({"reload": {"limits": [)", kBucket,
                                               R"(]}, "expect": {"error": "INVALID_ARGUMENT"}})"))
                  .differences,
              SizeIs(1));
}

TEST(ReplayerTest, CasesForLaterVersionsAreSkippedByName) {
  const CaseResult result = ReplayText(kBucket, R"({"reserve": {}}, {"settle": {}}, {"reserve": {}})");
  EXPECT_EQ(result.needs, "reserve, settle");
  EXPECT_EQ(result.decisions, 0);
}

TEST(ReplayerTest, DifferencesAreBounded) {
  EXPECT_THAT(ReplayText(kBucket, Ask(R"("times": 1000,)", R"({"allowed": true})")).differences, SizeIs(20));
}

TEST(CompareTest, AnAnswersShapeIsCheckedUnasked) {
  const auto differing = [](bool allowed, Reason reason, std::int64_t retry_after_ns) {
    CallAnswer answer;
    answer.allowed = allowed;
    answer.reason = reason;
    answer.retry_after_ns = retry_after_ns;
    int count = 0;
    CompareAnswer({}, answer, [&](auto...) { ++count; });
    return count;
  };
  EXPECT_EQ(differing(true, Reason::kAllowed, kNoWait), 0);
  EXPECT_EQ(differing(true, Reason::kAllowed, 1), 1);
  EXPECT_EQ(differing(false, Reason::kQuotaExceeded, 1), 0);
  EXPECT_EQ(differing(false, Reason::kQuotaExceeded, 0), 1);
  EXPECT_EQ(differing(false, Reason::kQuotaExceeded, kNoWait), 1);
  EXPECT_EQ(differing(false, Reason::kCostExceedsCapacity, kNoWait), 0);
  EXPECT_EQ(differing(false, Reason::kCostExceedsCapacity, 1), 1);
}

// The account sees what an engine that admits everything would do.
class AccountTest : public testing::Test {
 protected:
  std::vector<std::string> Admit(std::int64_t at_ns, absl::string_view key, std::optional<std::int64_t> cost,
                                 Reason reason = Reason::kAllowed, bool peek = false, bool replayed = false) {
    const ChargeRequest charge{"L", key, cost};
    CallAnswer answer;
    answer.allowed = true;
    answer.replayed = replayed;
    answer.charges.push_back({.reason = reason});
    return account_.Take({.charges = {&charge, 1}, .request_id = "", .peek = peek}, answer, at_ns);
  }

  Account account_{*ParseLimits(
      R"({limits: [{name: L, capacity: 4, default_cost: 2, refill: {tokens: 2, per: 1s}, overrides: [{key: "a*", capacity: 6}]}]})",
      "test")};
};

TEST_F(AccountTest, SeesTooMuch) {
  EXPECT_THAT(Admit(0, "k", 4), IsEmpty());
  EXPECT_THAT(Admit(500'000'000, "k", 1), IsEmpty());
  EXPECT_THAT(Admit(500'000'000, "k", 1),
              ElementsAre(HasSubstr("6 admitted to L / k from 0s to 500ms, at most 5 may be")));
}

TEST_F(AccountTest, KnowsTheDefaultCost) {
  EXPECT_THAT(Admit(0, "k", {}), IsEmpty());
  EXPECT_THAT(Admit(0, "k", {}), IsEmpty());
  EXPECT_THAT(Admit(0, "k", {}), SizeIs(1));
}

TEST_F(AccountTest, FollowsOverridesByItself) {
  EXPECT_THAT(Admit(0, "abc", 6), IsEmpty());
  EXPECT_THAT(Admit(0, "abc", 1), SizeIs(1));
}

TEST_F(AccountTest, CountsOnlyWhatWasCharged) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(Admit(0, "k", 4, Reason::kShadowed), IsEmpty());
    EXPECT_THAT(Admit(0, "k", 4, Reason::kAllowed, /*peek=*/true), IsEmpty());
    EXPECT_THAT(Admit(0, "k", 4, Reason::kAllowed, false, /*replayed=*/true), IsEmpty());
    EXPECT_THAT(Admit(0, "k", 0), IsEmpty());
  }
  EXPECT_THAT(Admit(0, "k", 4), IsEmpty());
}

TEST_F(AccountTest, FollowsReloads) {
  EXPECT_THAT(Admit(0, "k", 4), IsEmpty());
  account_.Reload(*ParseLimits("{limits: [{name: L, capacity: 100, refill: {tokens: 100, per: 1s}}]}", "test"), 0);
  EXPECT_THAT(Admit(10'000'000, "k", 1), IsEmpty());
  EXPECT_THAT(Admit(10'000'000, "k", 1), SizeIs(1));  // a raised capacity adds no tokens
}

}  // namespace
}  // namespace ebbgate::replay

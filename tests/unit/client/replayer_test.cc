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

constexpr char kReserve[] = R"({"reserve": {"charges": [{"limit": "L", "key": "k", "cost": 4}], "max_wait": "2s",
    "hold_for": "10s", "as": "a"}})";

// As EveryExpectationThatIsWrongIsReported, for reservations: of the second one, and of how the first one ends.
TEST(ReplayerTest, EveryExpectationOfAReservationThatIsWrongIsReported) {
  struct Expected {
    const char* step;
    const char* right;
    const char* wrong;
    const char* field;
  };
  const char* const second =
      R"("reserve": {"charges": [{"limit": "L", "key": "k", "cost": 2}], "max_wait": "1s", "hold_for": "10s"})";
  const char* const late = R"("reserve": {"charges": [{"limit": "L", "key": "k", "cost": 4}], "max_wait": "1s"})";
  const char* const settle = R"("settle": {"reservation": "a", "actual": [5]})";
  const char* const cancel = R"("cancel": {"reservation": "a"})";
  for (const Expected& expected : std::initializer_list<Expected>{
           {second, R"({"granted": true})", R"({"granted": false})", "granted"},
           {second, R"({"act_after": "1s"})", R"({"act_after": "0s"})", "act_after"},
           {second, R"({"expires_after": "11s"})", R"({"expires_after": "10s"})", "expires_after"},
           {second, R"({"charges": [{"capacity": 4}]})", R"({"charges": [{"capacity": 5}]})", "charges[0].capacity"},
           {second, R"({"allowed_count": 1})", R"({"allowed_count": 0})", "allowed_count"},
           {late, R"({"granted": false, "act_after": null})", R"({"granted": true})", "granted"},
           {late, R"({"reason": "QUOTA_EXCEEDED"})", R"({"reason": "TOO_MUCH_DEBT"})", "reason"},
           {late, R"({"retry_after": "1s"})", R"({"retry_after": "2s"})", "retry_after"},
           {settle, R"({"state": "settled"})", R"({"state": "cancelled"})", "state"},
           {settle, R"({"repeated": false})", R"({"repeated": true})", "repeated"},
           {settle, R"({"charges": [{"overrun": 1}]})", R"({"charges": [{"overrun": 0}]})", "charges[0].overrun"},
           {settle, R"({"charges": [{"actual": 5}]})", R"({"charges": [{"actual": 4}]})", "charges[0].actual"},
           {cancel, R"({"state": "cancelled"})", R"({"state": "expired"})", "state"},
           {cancel, R"({"charges": [{"given_back": 4}]})", R"({"charges": [{"given_back": 3}]})",
            "charges[0].given_back"},
           {cancel, R"({"charges": [{"reserved": 4}]})", R"({"charges": [{"reserved": 3}]})", "charges[0].reserved"},
           {R"("cancel": {"reservation": "00000000000000000000000000000000"})", R"({"error": "UNKNOWN_RESERVATION"})",
            R"({"error": "INTERNAL"})", "error"}}) {
    const auto replay = [&](const char* expect) {
      return ReplayText(kBucket, absl::StrCat(kReserve, ", {", expected.step, R"(, "expect": )", expect, "}"));
    };
    EXPECT_THAT(replay(expected.right).differences, IsEmpty()) << expected.right;
    const CaseResult wrong = replay(expected.wrong);
    ASSERT_THAT(wrong.differences, SizeIs(1)) << expected.wrong;
    EXPECT_EQ(wrong.differences[0].field, expected.field);
    EXPECT_EQ(wrong.differences[0].step, 2);
  }
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

TEST(CompareTest, AmountsMustAddUp) {
  const auto differing = [](SettledCharge charge) {
    SettleAnswer answer;
    answer.state = HoldState::kSettled;
    answer.charges = {std::move(charge)};
    int count = 0;
    CompareEnding({}, answer, [&](auto...) { ++count; });
    return count;
  };
  EXPECT_EQ(differing({.limit = "L", .key = "k", .reserved = 5, .actual = 3, .given_back = 2}), 0);
  EXPECT_EQ(differing({.limit = "L", .key = "k", .reserved = 5, .actual = 7, .overrun = 2, .uncovered = 2}), 0);
  EXPECT_EQ(differing({.limit = "L", .key = "k", .reserved = 5, .actual = 3, .given_back = 1}), 1);
  EXPECT_EQ(differing({.limit = "L", .key = "k", .reserved = 5, .actual = 7, .overrun = 2, .uncovered = 3}), 1);
}

// The account sees what an engine that admits everything would do.
class AccountTest : public testing::Test {
 protected:
  void Admit(std::int64_t at_ns, absl::string_view key, std::optional<std::int64_t> cost,
             Reason reason = Reason::kAllowed, bool peek = false, bool replayed = false) {
    const ChargeRequest charge{"L", key, cost};
    CallAnswer answer;
    answer.allowed = true;
    answer.replayed = replayed;
    answer.charges.push_back({.reason = reason});
    account_.Take({.charges = {&charge, 1}, .request_id = "", .peek = peek}, answer, at_ns, ++step_);
  }

  void Reserve(std::int64_t at_ns, std::int64_t act_after_ns, std::int64_t cost, const std::string& id,
               bool replayed = false) {
    const ChargeRequest charge{"L", "k", cost};
    ReserveAnswer answer;
    answer.call.allowed = true;
    answer.call.replayed = replayed;
    answer.call.charges.push_back({});
    answer.reservation_id = id;
    answer.act_after_ns = act_after_ns;
    answer.expires_after_ns = act_after_ns + kNsPerSecond;
    account_.Reserve({.charges = {&charge, 1}, .request_id = ""}, answer, at_ns, ++step_);
  }

  void End(const std::string& id, HoldState state, std::int64_t actual) {
    SettleAnswer answer;
    answer.state = state;
    answer.charges.push_back({.limit = "L", .key = "k", .actual = actual});
    account_.End(id, answer);
  }

  std::vector<std::string> Breaches(std::int64_t now_ns = 0) {
    std::vector<std::string> breaches;
    for (const Breach& breach : account_.Judge(now_ns)) {
      breaches.push_back(absl::StrCat(breach.step, ": ", breach.what));
    }
    return breaches;
  }

  static std::vector<Limit> Limits(absl::string_view more) {
    return *ParseLimits(absl::StrCat("{limits: [{name: L, capacity: 4, default_cost: 2, refill: {tokens: 2, per: 1s}",
                                     more, R"(, overrides: [{key: "a*", capacity: 6}]}]})"),
                        "test");
  }

  Account account_{Limits("")};
  int step_ = 0;
};

TEST_F(AccountTest, SeesTooMuch) {
  Admit(0, "k", 4);
  Admit(500'000'000, "k", 1);
  Admit(500'000'000, "k", 1);
  EXPECT_THAT(Breaches(), ElementsAre("3: 6 admitted to L / k from 0s to 500ms, at most 5 may be"));
}

TEST_F(AccountTest, IsContentWithWhatFits) {
  Admit(0, "k", 4);
  Admit(500'000'000, "k", 1);
  Admit(0, "k", 0);
  Admit(1'000'000'000, "k", 1);
  EXPECT_THAT(Breaches(), IsEmpty());
}

TEST_F(AccountTest, KnowsTheDefaultCost) {
  for (int i = 0; i < 3; ++i) Admit(0, "k", {});
  EXPECT_THAT(Breaches(), SizeIs(1));
}

TEST_F(AccountTest, FollowsOverridesByItself) {
  Admit(0, "abc", 6);
  Admit(0, "ab", 7);
  EXPECT_THAT(Breaches(), ElementsAre(HasSubstr("L / ab ")));
}

TEST_F(AccountTest, CountsOnlyWhatWasCharged) {
  for (int i = 0; i < 10; ++i) {
    Admit(0, "k", 4, Reason::kShadowed);
    Admit(0, "k", 4, Reason::kAllowed, /*peek=*/true);
    Admit(0, "k", 4, Reason::kAllowed, false, /*replayed=*/true);
    Admit(0, "k", 0);
  }
  Admit(0, "k", 4);
  EXPECT_THAT(Breaches(), IsEmpty());
}

TEST_F(AccountTest, FollowsReloads) {
  Admit(0, "k", 4);
  account_.Reload(*ParseLimits("{limits: [{name: L, capacity: 100, refill: {tokens: 100, per: 1s}}]}", "test"), 0);
  Admit(10'000'000, "k", 1);
  Admit(20'000'000, "k", 2);  // a raised capacity adds no tokens
  EXPECT_THAT(Breaches(), ElementsAre(HasSubstr("3: 7 admitted to L / k")));
}

TEST_F(AccountTest, AReadingBehindTheLastCountsAsTheLast) {
  Admit(1'000'000'000, "k", 4);
  Admit(0, "k", 1);
  EXPECT_THAT(Breaches(), SizeIs(1));
}

TEST_F(AccountTest, AReservationCountsWhenItMayAct) {
  Admit(0, "k", 4);
  Reserve(0, 2'000'000'000, 4, "a");
  Reserve(0, 3'000'000'000, 2, "b");
  EXPECT_THAT(Breaches(), IsEmpty());
}

TEST_F(AccountTest, SeesPromisesThatCollideWithWhatCameLater) {
  Reserve(0, 2'000'000'000, 4, "a");
  Admit(1'000'000'000, "k", 4);  // before it, and so it comes too soon
  EXPECT_THAT(Breaches(), ElementsAre("1: 8 admitted to L / k from 1s to 2s, at most 6 may be"));
}

TEST_F(AccountTest, AReservationCountsWithWhatWasSettled) {
  Reserve(0, 0, 4, "settled");
  End("settled", HoldState::kSettled, 1);
  Reserve(0, 0, 3, "cancelled");
  End("cancelled", HoldState::kCancelled, 0);
  Reserve(0, 0, 1, "more");
  End("more", HoldState::kSettled, 100);  // an overrun is listed apart
  Reserve(0, 0, 1, "settled", /*replayed=*/true);
  Reserve(0, 0, 2, "open");
  EXPECT_THAT(Breaches(), IsEmpty());
  Admit(0, "k", 1);
  EXPECT_THAT(Breaches(), SizeIs(1));
}

TEST_F(AccountTest, AnExpiredHoldCountsUnlessItIsGivenBack) {
  Reserve(0, 0, 4, "a");
  Admit(1'000'000'000, "k", 4);
  EXPECT_THAT(Breaches(kNsPerSecond), SizeIs(1));
  Account gives_back(Limits(", on_hold_expiry: give_back"));
  std::swap(account_, gives_back);
  Reserve(0, 0, 4, "a");
  Admit(1'000'000'000, "k", 4);
  EXPECT_THAT(Breaches(kNsPerSecond), IsEmpty());
}

TEST_F(AccountTest, PromisesOutliveAChangeWithoutBlame) {
  Reserve(0, 2'000'000'000, 4, "a");
  account_.Reload(*ParseLimits("{limits: [{name: L, capacity: 1, refill: {tokens: 1, per: 1s}}]}", "test"), 0);
  Admit(2'000'000'000, "k", 1);
  EXPECT_THAT(Breaches(), IsEmpty());
  Admit(2'000'000'000, "k", 1);
  EXPECT_THAT(Breaches(), SizeIs(1));
}

}  // namespace
}  // namespace ebbgate::replay

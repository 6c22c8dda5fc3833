#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/config/limits_file.h"

namespace ebbgate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::vector<std::string> Lint(const std::string& limit) {
  const absl::StatusOr<std::vector<Limit>> limits = ParseLimits("limits:\n" + limit, "f.yaml");
  EXPECT_TRUE(limits.ok()) << limits.status();
  return LintLimits(limits.value());
}

std::string Bucket(const std::string& more) {
  return "- name: L\n  capacity: 10\n  refill: {tokens: 1, per: 1s}\n" + more;
}

TEST(Lint, IsSilentOnWhatIsWell) {
  EXPECT_THAT(Lint(Bucket("")), IsEmpty());
  EXPECT_THAT(Lint(Bucket("  default_cost: 10\n  max_cost: 10\n")), IsEmpty());
  EXPECT_THAT(Lint("- {name: L, algorithm: fixed_window, count: 5, window: 1h, time_zone: Europe/Berlin}\n"),
              IsEmpty());
  EXPECT_THAT(Lint("- {name: L, algorithm: fixed_window, count: 5, window: day, time_zone: Europe/Berlin}\n"),
              IsEmpty());
  EXPECT_THAT(Lint("- {name: L, algorithm: fixed_window, count: 5, window: 24h}\n"), IsEmpty());
  EXPECT_THAT(Lint("- {name: L, algorithm: exact_window, count: 100, window: 1h}\n"), IsEmpty());
  EXPECT_THAT(Lint(Bucket("  shadow: true\n  on_unavailable: allow\n")), IsEmpty());
}

TEST(Lint, NamesFileLineAndLimit) {
  EXPECT_THAT(Lint(Bucket("  default_cost: 11\n")),
              ElementsAre(StartsWith("f.yaml:2: warning: L: default_cost 11 is above the capacity 10 (hint: ")));
}

TEST(Lint, FindsADefaultCostAboveTheCapacityOfAnOverride) {
  EXPECT_THAT(Lint(Bucket("  default_cost: 5\n  overrides:\n  - {key: small, capacity: 4}\n")),
              ElementsAre(StartsWith("f.yaml:7: warning: L: default_cost 5 is above the capacity 4")));
}

TEST(Lint, FindsAMaximumCostThatNothingReaches) {
  EXPECT_THAT(Lint(Bucket("  max_cost: 11\n")), ElementsAre(HasSubstr("max_cost 11 is above every capacity")));
  EXPECT_THAT(Lint(Bucket("  max_cost: 11\n  overrides:\n  - {key: big, capacity: 11}\n")), IsEmpty());
}

struct Shadowing {
  const char* first;
  const char* second;
  bool hidden;
};

TEST(Lint, FindsOverridesThatNeverApply) {
  const Shadowing cases[] = {
      {"a-*", "a-b*", true},    {"a-b*", "a-*", false}, {"*", "x*", true},       {"x*", "*", false},
      {"*a*", "*b*a*b*", true}, {"a*c", "a*b*c", true}, {"a*b*c", "a*c", false}, {"*-x", "a*-x", true},
      {"a*", "*a", false},      {"**", "*", true},      {"a*b", "ab*", false},   {"ab*", "a*b", false},
      {"*a", "*aa", true},      {"*aa", "*a", false},   {"a*a", "a*", false},    {"é*", "é*ü", true},
      {"a-*", "a-b", false},  // an exact key wins wherever it stands
  };
  for (const Shadowing& c : cases) {
    const std::string overrides = absl::StrCat("  overrides:\n  - {key: \"", c.first, "\", capacity: 4}\n  - {key: \"",
                                               c.second, "\", capacity: 5}\n");
    if (c.hidden) {
      EXPECT_THAT(Lint(Bucket(overrides)), ElementsAre(StartsWith("f.yaml:7: warning: L: the override ")))
          << c.first << " before " << c.second;
    } else {
      EXPECT_THAT(Lint(Bucket(overrides)), IsEmpty()) << c.first << " before " << c.second;
    }
  }
}

TEST(Lint, FindsBucketsThatTakeYearsToFill) {
  EXPECT_THAT(Lint("- {name: L, capacity: 367, refill: {tokens: 1, per: 24h}}\n"),
              ElementsAre(HasSubstr("takes 367 days to fill")));
  EXPECT_THAT(Lint("- {name: L, capacity: 366, refill: {tokens: 1, per: 24h}}\n"), IsEmpty());
  EXPECT_THAT(Lint("- {name: L, algorithm: gcra, capacity: 367, refill: {tokens: 1, per: 24h}}\n").size(), 1u);
  EXPECT_THAT(Lint(Bucket("  overrides:\n  - {key: big, capacity: 40000000}\n")),
              ElementsAre(StartsWith("f.yaml:6: warning: L: an empty bucket takes 462 days")));
}

TEST(Lint, FindsWindowsThatTurnAtUnexpectedTimes) {
  EXPECT_THAT(Lint("- {name: L, algorithm: fixed_window, count: 5, window: 24h, time_zone: Europe/Berlin}\n"),
              ElementsAre(HasSubstr("turn at midnight UTC, not in Europe/Berlin")));
  EXPECT_THAT(Lint("- {name: L, algorithm: fixed_window, count: 5, window: 7h}\n"),
              ElementsAre(HasSubstr("windows of 7h")));
  EXPECT_THAT(Lint("- {name: L, algorithm: fixed_window, count: 5, window: 7d}\n"),
              ElementsAre(HasSubstr("windows of 168h")));
}

TEST(Lint, FindsExactWindowsThatRememberMuch) {
  EXPECT_THAT(Lint("- {name: L, algorithm: exact_window, count: 1000, window: 1h}\n"),
              ElementsAre(HasSubstr("up to 16000 bytes for one key")));
}

TEST(Lint, FindsAPaceThatChangesNothing) {
  EXPECT_THAT(Lint("- name: L\n  capacity: 1\n  refill: {tokens: 1, per: 1s}\n  pace: true\n"),
              ElementsAre(HasSubstr("f.yaml:2: warning: L: pace changes nothing here")));
  EXPECT_THAT(Lint(Bucket("  pace: true\n")), IsEmpty());
  EXPECT_THAT(Lint(Bucket("  pace: true\n  overrides:\n  - {key: one, capacity: 1}\n")),
              ElementsAre(HasSubstr("f.yaml:7: warning: L: pace changes nothing here")));
}

TEST(Lint, FindsShadowLimitsThatWouldDeny) {
  EXPECT_THAT(Lint(Bucket("  shadow: true\n")), ElementsAre(HasSubstr("in shadow refuses nobody")));
}

TEST(Lint, StopsAtABound) {
  std::string text;
  for (int i = 0; i < 200; ++i)
    absl::StrAppend(&text, "- {name: L", i, ", capacity: 1, refill: {tokens: 1, per: 1s}, shadow: true}\n");
  EXPECT_EQ(Lint(text).size(), 100u);
}

}  // namespace
}  // namespace ebbgate

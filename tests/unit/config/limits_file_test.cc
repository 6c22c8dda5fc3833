#include "server/config/limits_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/limiter/bounds.h"
#include "tests/support/temp_dir.h"

namespace ebbgate {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::StartsWith;

std::vector<Limit> MustParse(const std::string& text) {
  absl::StatusOr<std::vector<Limit>> limits = ParseLimits(text, "f.yaml");
  EXPECT_TRUE(limits.ok()) << limits.status() << "\n" << text;
  return limits.ok() ? *std::move(limits) : std::vector<Limit>(1);
}

std::string ErrorOf(absl::string_view text) {
  const absl::StatusOr<std::vector<Limit>> limits = ParseLimits(text, "f.yaml");
  EXPECT_EQ(limits.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(limits.status().message());
}

// One valid limit, with lines added to it; they begin on line 5.
std::string Bucket(const std::string& more) {
  return "limits:\n- name: L\n  capacity: 4\n  refill: {tokens: 2, per: 1s}\n" + more;
}

// --- What is valid ---------------------------------------------------------------------------------------------------

TEST(LimitsFile, ReadsATokenBucketAndFillsInTheRest) {
  const Limit limit = MustParse(Bucket(""))[0];
  EXPECT_EQ(limit.name, "L");
  EXPECT_EQ(limit.parameters.algorithm, Algorithm::kTokenBucket);
  EXPECT_EQ(limit.parameters.capacity, 4'000'000);
  EXPECT_EQ(limit.parameters.refill, (Rate{.tokens = 2'000'000, .per_ns = 1'000'000'000}));
  EXPECT_FALSE(limit.shadow);
  EXPECT_EQ(limit.default_cost, 1);
  EXPECT_EQ(limit.max_cost, std::nullopt);
  EXPECT_EQ(limit.on_unavailable, OnUnavailable::kDeny);
  EXPECT_FALSE(limit.parameters.pace);
  EXPECT_EQ(limit.on_hold_expiry, OnHoldExpiry::kSpend);
  EXPECT_EQ(limit.max_debt, std::nullopt);
  EXPECT_EQ(limit.max_holds, kDefaultMaxHoldsPerKey);
  EXPECT_EQ(limit.display_zone, absl::UTCTimeZone());
  EXPECT_EQ(limit.file, "f.yaml");
  EXPECT_EQ(limit.line, 2);
  EXPECT_THAT(limit.overrides, IsEmpty());
  EXPECT_THAT(limit.metadata, IsEmpty());
}

TEST(LimitsFile, ReadsEveryOtherField) {
  const Limit limit = MustParse(Bucket(
      "  shadow: true\n  default_cost: 3\n  max_cost: 4\n  on_unavailable: allow\n  time_zone: America/New_York\n"
      "  metadata: {owner: storage, \"a b\": 7}\n"))[0];
  EXPECT_TRUE(limit.shadow);
  EXPECT_EQ(limit.default_cost, 3);
  EXPECT_EQ(limit.max_cost, 4);
  EXPECT_EQ(limit.on_unavailable, OnUnavailable::kAllow);
  EXPECT_EQ(limit.display_zone.name(), "America/New_York");
  EXPECT_THAT(limit.metadata, ElementsAre(Pair("owner", "storage"), Pair("a b", "7")));
}

TEST(LimitsFile, ReadsWhatReservationsMayDo) {
  const Limit limit = MustParse(Bucket("  on_hold_expiry: give_back\n  max_debt: 0\n  max_holds: 7\n"))[0];
  EXPECT_EQ(limit.on_hold_expiry, OnHoldExpiry::kGiveBack);
  EXPECT_EQ(limit.max_debt, 0);
  EXPECT_EQ(limit.max_holds, 7);
  EXPECT_EQ(MustParse(Bucket("  on_hold_expiry: spend\n"))[0].on_hold_expiry, OnHoldExpiry::kSpend);
  EXPECT_EQ(MustParse(Bucket("  max_debt: 9223372036850\n"))[0].max_debt, kMaxCostTokens - 4);
}

TEST(LimitsFile, OverridesInheritThePaceOrSayTheirOwn) {
  const Limit limit =
      MustParse(Bucket("  pace: true\n"
                       "  overrides:\n  - {key: a, capacity: 9}\n  - {key: b, pace: false}\n"
                       "  - {key: c, at_most: {count: 10, per: 1s, burst: 3}}\n"))[0];
  EXPECT_TRUE(limit.parameters.pace);
  EXPECT_TRUE(limit.overrides[0].parameters.pace);
  EXPECT_FALSE(limit.overrides[1].parameters.pace);
  EXPECT_TRUE(limit.overrides[2].parameters.pace);
  EXPECT_TRUE(
      MustParse(Bucket("  algorithm: gcra\n  overrides: [{key: a, pace: true}]\n"))[0].overrides[0].parameters.pace);
}

TEST(LimitsFile, ReadsWhenALimitDrifts) {
  EXPECT_EQ(MustParse(Bucket(""))[0].drift, DriftSettings());
  EXPECT_EQ(DriftSettings().ratio_micros, 1'150'000);
  EXPECT_EQ(DriftSettings().window_ns, 600'000'000'000);
  const Limit whole = MustParse(Bucket("  drift: {ratio: 1.3, window: 2m, minimum: 5}\n"))[0];
  EXPECT_EQ(whole.drift, (DriftSettings{.ratio_micros = 1'300'000, .window_ns = 120'000'000'000, .minimum = 5}));
  for (const auto& [ratio, micros] : {std::pair<const char*, std::int64_t>{"2", 2'000'000},
                                      {"1.01", 1'010'000},
                                      {"1.234567", 1'234'567},
                                      {"1000", 1'000'000'000}}) {
    EXPECT_EQ(MustParse(Bucket(absl::StrCat("  drift: {ratio: ", ratio, "}\n")))[0].drift.ratio_micros, micros);
  }
}

TEST(LimitsFile, RefusesBadDriftSettings) {
  const auto fault = [](const std::string& drift) { return ErrorOf(Bucket(absl::StrCat("  drift: ", drift, "\n"))); };
  for (const char* ratio : {"1", "1.009999", "0.5", "-2", "1000.000001", "1e3", "1.1234567", "1.", ".5", "x", "1.1.1",
                            "9999999999999999999", "9223372036854.775807"}) {
    EXPECT_THAT(fault(absl::StrCat("{ratio: ", ratio, "}")), StartsWith("f.yaml:5: limits[0].drift.ratio: must be"));
  }
  for (const char* window : {"0s", "999ms", "25h", "10"}) {
    EXPECT_THAT(fault(absl::StrCat("{window: ", window, "}")), StartsWith("f.yaml:5: limits[0].drift.window: "));
  }
  for (const char* minimum : {"0", "-1", "1.5", "9223372036855"}) {
    EXPECT_THAT(fault(absl::StrCat("{minimum: ", minimum, "}")), StartsWith("f.yaml:5: limits[0].drift.minimum: "));
  }
  EXPECT_THAT(fault("{ratios: 2}"), HasSubstr("did you mean ratio?"));
  EXPECT_THAT(fault("1.15"), StartsWith("f.yaml:5: limits[0].drift: "));
}

struct Described {
  const char* fields;
  Algorithm algorithm;
  const char* parameters;
};

TEST(LimitsFile, ReadsEveryAlgorithm) {
  const Described cases[] = {
      {"algorithm: gcra, capacity: 4, refill: {tokens: 7, per: 3s}", Algorithm::kGcra, "capacity 4, refill 7 per 3s"},
      {"algorithm: fixed_window, count: 9, window: 60s", Algorithm::kFixedWindow, "9 per 1m"},
      {"algorithm: fixed_window, count: 9, window: minute", Algorithm::kFixedWindow, "9 per minute in UTC"},
      {"algorithm: fixed_window, count: 9, window: hour", Algorithm::kFixedWindow, "9 per hour in UTC"},
      {"algorithm: fixed_window, count: 9, window: week", Algorithm::kFixedWindow, "9 per week in UTC"},
      {"algorithm: fixed_window, count: 9, window: month", Algorithm::kFixedWindow, "9 per month in UTC"},
      {"algorithm: fixed_window, count: 9, window: year", Algorithm::kFixedWindow, "9 per year in UTC"},
      {"algorithm: fixed_window, count: 9, window: day, time_zone: Asia/Kathmandu", Algorithm::kFixedWindow,
       "9 per day in Asia/Kathmandu"},
      {"algorithm: fixed_window, count: 9, window: 90s, time_zone: Asia/Kathmandu", Algorithm::kFixedWindow,
       "9 per 90s"},
      {"algorithm: sliding_window, count: 600, window: 60s", Algorithm::kSlidingWindow, "600 per 1m"},
      {"algorithm: exact_window, count: 10000, window: 10s", Algorithm::kExactWindow, "10000 per 10s"},
      {"at_most: {count: 100, per: 60s, burst: 10}", Algorithm::kTokenBucket, "capacity 10, refill 90 per 1m"},
      {"at_most: {count: 2, per: 1h30m, burst: 1}", Algorithm::kTokenBucket, "capacity 1, refill 1 per 90m"},
      {"algorithm: token_bucket, at_most: {count: 2, per: 1s, burst: 1}", Algorithm::kTokenBucket,
       "capacity 1, refill 1 per 1s"},
      {"capacity: 9000000000000, refill: {tokens: 1000000000, per: 1s}", Algorithm::kTokenBucket,
       "capacity 9000000000000, refill 1000000000 per 1s"},
      {"capacity: 1, refill: {tokens: 1, per: 8784h}", Algorithm::kTokenBucket, "capacity 1, refill 1 per 8784h"},
  };
  for (const Described& c : cases) {
    const Limit limit = MustParse(absl::StrCat("limits: [{name: L, ", c.fields, "}]"))[0];
    EXPECT_EQ(limit.parameters.algorithm, c.algorithm) << c.fields;
    EXPECT_EQ(Describe(limit.parameters), c.parameters) << c.fields;
  }
}

TEST(LimitsFile, LetsOverridesInheritWhatTheyLeaveOut) {
  const Limit limit =
      MustParse(Bucket("  overrides:\n"
                       "  - key: vip\n    capacity: 9\n"
                       "  - key: fast\n    refill: {tokens: 5, per: 100ms}\n"
                       "  - key: \"p-*\"\n    at_most: {count: 10, per: 1s, burst: 3}\n"
                       "  - key: same\n"))[0];
  std::vector<std::string> all;
  for (const Override& entry : limit.overrides) {
    all.push_back(absl::StrCat(entry.line, " ", entry.key, ": ", Describe(entry.parameters)));
  }
  EXPECT_THAT(all, ElementsAre("6 vip: capacity 9, refill 2 per 1s", "8 fast: capacity 4, refill 5 per 100ms",
                               "10 p-*: capacity 3, refill 7 per 1s", "12 same: capacity 4, refill 2 per 1s"));
}

TEST(LimitsFile, LetsOverridesOfWindowsInheritZoneCountAndWindow) {
  const Limit limit = MustParse(
      "limits: [{name: L, algorithm: fixed_window, count: 3, window: day, time_zone: Asia/Tokyo, "
      "overrides: [{key: a, count: 5}, {key: b, window: month}, {key: c, window: 60s}]}]")[0];
  EXPECT_EQ(Describe(limit.overrides[0].parameters), "5 per day in Asia/Tokyo");
  EXPECT_EQ(Describe(limit.overrides[1].parameters), "3 per month in Asia/Tokyo");
  EXPECT_EQ(Describe(limit.overrides[2].parameters), "3 per 1m");
}

TEST(LimitsFile, ReadsJsonIndentedWithTabs) {
  const std::vector<Limit> limits = MustParse(
      "{\n\t\"limits\": [\n\t\t{\"name\": \"a/b\", \"capacity\": 4,\n\t\t\t\"refill\": {\"tokens\": 2, \"per\": "
      "\"1s\"}}\n\t]\n}\n");
  EXPECT_EQ(limits[0].name, "a/b");
}

TEST(LimitsFile, ReadsCommentsWindowsLinesAndAListWithoutLimits) {
  EXPECT_EQ(MustParse("# c\r\n---\r\nlimits:   # c\r\n- name: L\r\n  capacity: 1\r\n  refill: {tokens: 1, per: 1s}\r\n")
                .size(),
            1u);
  EXPECT_THAT(*ParseLimits("limits: []", "f"), IsEmpty());
}

TEST(LimitsFile, KeepsNamesThatLookLikeOtherThings) {
  EXPECT_EQ(MustParse("limits: [{name: 123, capacity: 1, refill: {tokens: 1, per: 1s}}]")[0].name, "123");
  EXPECT_EQ(MustParse("limits: [{name: \"null\", capacity: 1, refill: {tokens: 1, per: 1s}}]")[0].name, "null");
  EXPECT_EQ(MustParse("limits: [{name: größe, capacity: 1, refill: {tokens: 1, per: 1s}}]")[0].name, "größe");
}

TEST(LimitsFile, ReadsTextsInQuotesAtTheEndOfTheFile) {
  for (const char* per : {"\"1s\"", "'1s'", "\"1s\"\n", "'1s'  # \" '", "\"\\x31s\""}) {
    const std::string text = absl::StrCat(
        "\xEF\xBB\xBFlimits:\n- name: 'it''s'\n  capacity: 1\n  refill:\n    tokens: 1\n", "    per: ", per);
    EXPECT_EQ(MustParse(text)[0].name, "it's") << per;
  }
}

TEST(LimitsFile, ReadsTheSameKeyForTwoLimits) {
  EXPECT_EQ(
      MustParse(
          Bucket("  overrides: [{key: a, capacity: 1}]\n"
                 "- name: M\n  capacity: 1\n  refill: {tokens: 1, per: 1s}\n  overrides: [{key: a, capacity: 2}]\n"))
          .size(),
      2u);
}

// --- What is not -----------------------------------------------------------------------------------------------------

struct Bad {
  std::string text;
  const char* error;  // with which the message begins
};

void ExpectErrors(const std::vector<Bad>& cases) {
  for (const Bad& bad : cases) EXPECT_THAT(ErrorOf(bad.text), StartsWith(bad.error)) << bad.text;
}

TEST(LimitsFile, RefusesWhatIsNotOneSimpleYamlDocument) {
  ExpectErrors({
      {"", "f.yaml: is empty"},
      {"# only a comment\n", "f.yaml: is empty"},
      {"---\n", "f.yaml:"},
      {"limits\n", "f.yaml:1: must be a map (key: value), but is a single value"},
      {"- a\n", "f.yaml:1: must be a map (key: value), but is a list"},
      {"limits: {}\n", "f.yaml:1: limits: must be a list, but is a map (hint: "},
      {"limits:\n", "f.yaml:1: limits: must be a list, but is nothing"},
      {"limits: [3]\n", "f.yaml:1: limits[0]: must be a map"},
      {"limts: []\n", "f.yaml:1: does not know the key \"limts\" (hint: did you mean limits?)"},
      {"limits: []\nother: 1\n", "f.yaml:2: does not know the key \"other\" (hint: known are limits)"},
      {"limits: []\nlimits: []\n", "f.yaml:2: has the key \"limits\" a second time (first on line 1)"},
      {"limits: []\n---\nlimits: []\n", "f.yaml:2: begins a second document (hint: "},
      {"limits:\n\t- name: L\n", "f.yaml:2: is indented with a tab (hint: YAML indents with spaces)"},
      {"limits:\n- name: L\n  \tcapacity: 1\n", "f.yaml:3: is indented with a tab"},
      {"limits: [\n", "f.yaml:2: is not valid YAML: end of sequence flow not found (hint: "},
      {"limits: \"abc\n", "f.yaml:1: begins a text in quotes that never ends (hint: "},
      {"limits: \"abc", "f.yaml:1: "},
      {"limits: []\n\"abc\\\"\n", "f.yaml:2: "},
      {"\xEF\xBB\xBFlimits: []\na: 'it''s\n", "f.yaml:2: begins a text in quotes that never ends"},
      {"limits: \"\\\n", "f.yaml:1: begins a text in quotes that never ends"},
      {"limits: \"\\", "f.yaml:1: is not valid YAML: unknown escape character: \\004 (hint: look for a missing quote)"},
      {"{\"limits\": [", "f.yaml:1: has a key that is not text (hint: or a bracket that opens here is never closed)"},
      {"limits: @x\n", "f.yaml:1: is not valid YAML: unknown token (hint: a text that begins with @"},
      {"a: b: c\n", "f.yaml:1: is not valid YAML: illegal map value"},
      {"limits: [{name: *x}]\n", "f.yaml:1: "},
      {"limits: []\nx: \"\\ud800\"\n", "f.yaml:2: is not valid YAML: invalid unicode"},
      {"limits: []\n? [a]\n: b\n", "f.yaml:2: has a key that is not text"},
      {"limits: []\n? {a: b}\n: b\n", "f.yaml:2: has a key that is not text"},
      {"limits: []\n~: b\n", "f.yaml:2: has a key that is empty"},
      {"a: &x 1\n", "f.yaml:1: a: uses an anchor (&name) (hint: "},
      {"limits: &x []\n", "f.yaml:1: limits: uses an anchor"},
      {"limits: [&x {name: L}]\n", "f.yaml:1: limits[0]: uses an anchor"},
      {"&x a: 1\n", "f.yaml:1: uses an anchor"},
      {"limits: !!seq []\n", "f.yaml:1: limits: uses the tag \"tag:yaml.org,2002:seq\" (hint: "},
      {"limits: [{name: !!str L}]\n", "f.yaml:1: limits[0].name: uses the tag"},
      {"limits: [{name: !x L}]\n", "f.yaml:1: limits[0].name: uses the tag"},
      {"limits: []\n<<: {a: b}\n", "f.yaml:2: uses a merge key (<<)"},
      {"limits: []\nname: \xFF\n", "f.yaml:2: is not valid UTF-8"},
      {std::string("limits: []\n\0", 12), "f.yaml:2: holds a control character"},
      {"\xFF\xFEl\0i\0", "f.yaml:1: is not valid UTF-8"},
      {"limits: []\n# \x1B[31m\n", "f.yaml:2: holds a control character"},
  });
}

TEST(LimitsFile, RefusesAnchorBombsBeforeTheyGrow) {
  std::string bomb = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 60; ++i) absl::StrAppend(&bomb, "a", i, ": &a", i, " [*a", i - 1, ", *a", i - 1, "]\n");
  EXPECT_THAT(ErrorOf(bomb + "limits: []\n"), StartsWith("f.yaml:1: a0: uses an anchor"));
}

TEST(LimitsFile, RefusesDeepNesting) {
  for (const char* open : {"[", "{a: ", "- ", "? "}) {
    std::string deep;
    for (int i = 0; i < 100'000; ++i) deep += open;
    EXPECT_THAT(ErrorOf(deep), StartsWith("f.yaml:1: ")) << open;
  }
  EXPECT_THAT(ErrorOf(std::string(17, '[') + std::string(17, ']')), HasSubstr("is nested more than 16 levels deep"));
}

TEST(LimitsFile, RefusesWhatIsTooMuch) {
  EXPECT_THAT(ErrorOf(std::string(kMaxLimitsFileBytes + 1, '#')), StartsWith("f.yaml: is larger than 16777216 bytes"));
  std::string many = "limits: [";
  for (std::size_t i = 0; i <= kMaxYamlNodes; ++i) many += "1,";
  EXPECT_THAT(ErrorOf(many + "]"), HasSubstr("goes beyond 1000000 values"));

  // The parser would hold every token of these before the first is handled.
  for (const char* token : {"[", "{", "a,", "\"\"", "!a ", "&a ", "? "}) {
    std::string tokens = "[";
    for (std::size_t i = 0; i <= kMaxYamlMarks / 2; ++i) tokens += token;
    EXPECT_EQ(ErrorOf(tokens),
              "f.yaml: holds too many brackets, commas, colons and quotes (hint: write fewer limits and overrides)")
        << token;
  }

  std::string limits = "limits:\n";
  for (std::size_t i = 0; i <= kMaxLimits; ++i) absl::StrAppend(&limits, "- {name: L", i, "}\n");
  EXPECT_EQ(ErrorOf(limits), "f.yaml:2: limits: has more than 10000 entries");

  std::string patterns = Bucket("  overrides:\n");
  for (std::size_t i = 0; i <= kMaxPatternsPerLimit; ++i) absl::StrAppend(&patterns, "  - key: \"", i, "*\"\n");
  EXPECT_THAT(ErrorOf(patterns), StartsWith("f.yaml:6: limits[0].overrides: has more than 100 patterns"));

  std::string overrides = Bucket("  overrides:\n");
  for (std::size_t i = 0; i <= kMaxOverrides; ++i) absl::StrAppend(&overrides, "  - key: k", i, "\n");
  EXPECT_THAT(ErrorOf(overrides),
              StartsWith("f.yaml:6: limits[0].overrides: brings all limits together beyond 100000"));

  std::string metadata = Bucket("  metadata:\n");
  for (std::size_t i = 0; i <= kMaxMetadataEntries; ++i) absl::StrAppend(&metadata, "    k", i, ": v\n");
  EXPECT_EQ(ErrorOf(metadata), "f.yaml:6: limits[0].metadata: has more than 16 entries");
}

TEST(LimitsFile, ReadsAsMuchAsTheBoundsPromise) {
  std::string json =
      "{\"limits\":[{\"name\":\"L\",\"capacity\":1,\"refill\":{\"tokens\":1,\"per\":\"1s\"},\"overrides\":[";
  for (std::size_t i = 0; i < kMaxOverrides; ++i)
    absl::StrAppend(&json, i == 0 ? "" : ",", "{\"key\":\"", i, "\",\"capacity\":7}");
  EXPECT_EQ(MustParse(json + "]}]}")[0].overrides.size(), kMaxOverrides);
  std::string block = "limits:\n";
  for (std::size_t i = 0; i < kMaxLimits; ++i)
    absl::StrAppend(&block, "- name: L", i, "\n  capacity: 1\n  refill: {tokens: 1, per: 1s}\n");
  EXPECT_EQ(MustParse(block).size(), kMaxLimits);
}

TEST(LimitsFile, RefusesBadNames) {
  const std::string rest = ", capacity: 1, refill: {tokens: 1, per: 1s}}";
  ExpectErrors({
      {"limits: [{capacity: 1, refill: {tokens: 1, per: 1s}}]", "f.yaml:1: limits[0].name: is missing (hint: "},
      {"limits: [{name: \"\"" + rest + "]", "f.yaml:1: limits[0].name: must not be empty"},
      {"limits: [{name: " + rest + "]", "f.yaml:1: limits[0].name: must be a text, but is nothing"},
      {"limits: [{name: [a]" + rest + "]", "f.yaml:1: limits[0].name: must be a text, but is a list"},
      {"limits: [{name: \"a\\nb\"" + rest + "]", "f.yaml:1: limits[0].name: holds a control character: \"a\\nb\""},
      {"limits: [{name: \"a\\x85b\"" + rest + "]", "f.yaml:1: limits[0].name: holds a control character"},
      {"limits: [{name: \"a\\0b\"" + rest + "]", "f.yaml:1: limits[0].name: holds a control character"},
      {"limits: [{name: " + std::string(129, 'x') + rest + "]", "f.yaml:1: limits[0].name: is longer than 128 bytes"},
      {"limits:\n- {name: a" + rest + "\n- {name: b" + rest + "\n- {name: a" + rest,
       "f.yaml:4: limits[2].name: \"a\" is already the name of the limit on line 2 (hint: "},
  });
  EXPECT_EQ(MustParse("limits: [{name: " + std::string(128, 'x') + rest + "]").size(), 1u);
}

TEST(LimitsFile, RefusesBadNumbers) {
  const auto capacity = [](const std::string& value) {
    return "limits:\n- name: L\n  capacity: " + value + "\n  refill: {tokens: 1, per: 1s}\n";
  };
  ExpectErrors({
      {capacity("0"), "f.yaml:3: limits[0].capacity: must be at least 1"},
      {capacity("-4"), "f.yaml:3: limits[0].capacity: must not be negative, but is \"-4\""},
      {capacity("4.5"), "f.yaml:3: limits[0].capacity: must be a whole number in plain digits, but is \"4.5\""},
      {capacity("1e3"), "f.yaml:3: limits[0].capacity: must be a whole number"},
      {capacity("0x10"), "f.yaml:3: limits[0].capacity: must be a whole number"},
      {capacity("010"), "f.yaml:3: limits[0].capacity: must not begin with 0"},
      {capacity("1_000"), "f.yaml:3: limits[0].capacity: must be a whole number"},
      {capacity(".inf"), "f.yaml:3: limits[0].capacity: must be a whole number"},
      {capacity("9223372036854775808"), "f.yaml:3: limits[0].capacity: is too large"},
      {capacity("9000000000001"), "f.yaml:3: limits[0].capacity: must be at most 9000000000000"},
      {capacity("\"4\""),
       "f.yaml:3: limits[0].capacity: must be a whole number, but \"4\" in quotes is a text (hint: "},
      {capacity("{a: 1}"), "f.yaml:3: limits[0].capacity: must be a whole number, but is a map"},
      {capacity("unlimited"), "f.yaml:3: limits[0].capacity: must be a whole number"},
      {capacity(""), "f.yaml:3: limits[0].capacity: must be a whole number, but is nothing"},
      {Bucket("  default_cost: 0\n"), "f.yaml:5: limits[0].default_cost: must be at least 1"},
      {Bucket("  default_cost: 9223372036855\n"), "f.yaml:5: limits[0].default_cost: must be at most 9223372036854"},
      {Bucket("  max_cost: 0\n"), "f.yaml:5: limits[0].max_cost: must be at least 1"},
      {Bucket("  default_cost: 3\n  max_cost: 2\n"), "f.yaml:6: limits[0].max_cost: is below default_cost, which is 3"},
  });
}

TEST(LimitsFile, RefusesBadRates) {
  const auto refill = [](const std::string& value) {
    return "limits:\n- name: L\n  capacity: 4\n  refill: " + value + "\n";
  };
  ExpectErrors({
      {refill("{tokens: 0, per: 1s}"), "f.yaml:4: limits[0].refill.tokens: must be at least 1"},
      {refill("{tokens: 1, per: 0s}"), "f.yaml:4: limits[0].refill.per: must be longer than 0s"},
      {refill("{tokens: 1, per: 0h0m}"), "f.yaml:4: limits[0].refill.per: must be longer than 0s"},
      {refill("{tokens: 1, per: 60}"), "f.yaml:4: limits[0].refill.per: \"60\" has no unit; write 60s"},
      {refill("{tokens: 1, per: -1s}"), "f.yaml:4: limits[0].refill.per: \"-1s\" is negative"},
      {refill("{tokens: 1, per: day}"), "f.yaml:4: limits[0].refill.per: \"day\" is not a length of time"},
      {refill("{tokens: 1}"), "f.yaml:4: limits[0].refill.per: is missing (hint: "},
      {refill("{per: 1s}"), "f.yaml:4: limits[0].refill.tokens: is missing (hint: "},
      {refill("{tokens: 1, pre: 1s}"),
       "f.yaml:4: limits[0].refill: does not know the key \"pre\" (hint: did you mean per?)"},
      {refill("2"), "f.yaml:4: limits[0].refill: must be a map (key: value), but is a single value"},
      {refill(""), "f.yaml:4: limits[0].refill: must be a map (key: value), but is nothing"},
      {refill("{tokens: 1, per: 8785h}"), "f.yaml:4: limits[0].refill: is slower than one token a year"},
      {refill("{tokens: 1000000001, per: 1s}"),
       "f.yaml:4: limits[0].refill: is faster than 1000000000 tokens a second"},
      {refill("{tokens: 2, per: 1ns}"), "f.yaml:4: limits[0].refill: is faster than"},
      {"limits: [{name: L, capacity: 101, refill: {tokens: 1, per: 8784h}}]",
       "f.yaml:1: limits[0].refill: takes more than 100 years to fill the capacity"},
      {"limits: [{name: L, at_most: {count: 10, per: 1s, burst: 10}}]",
       "f.yaml:1: limits[0].at_most.burst: must be less than count (hint: "},
      {"limits: [{name: L, at_most: {count: 10, per: 1s, burst: 0}}]",
       "f.yaml:1: limits[0].at_most.burst: must be at least 1"},
      {"limits: [{name: L, at_most: {count: 1, per: 1s, burst: 1}}]",
       "f.yaml:1: limits[0].at_most.burst: must be less than"},
      {"limits: [{name: L, at_most: {count: 10, burst: 1}}]", "f.yaml:1: limits[0].at_most.per: is missing"},
      {"limits: [{name: L, at_most: {per: 1s, burst: 1}}]", "f.yaml:1: limits[0].at_most.count: is missing"},
      {"limits: [{name: L, at_most: {count: 10, per: 0s, burst: 1}}]",
       "f.yaml:1: limits[0].at_most.per: must be longer"},
      {"limits: [{name: L, at_most: {count: 9, per: 1ns, burst: 1}}]",
       "f.yaml:1: limits[0].at_most: the refill is faster than 1000000000"},
      {"limits: [{name: L, at_most: 10}]", "f.yaml:1: limits[0].at_most: must be a map"},
  });
}

TEST(LimitsFile, RefusesBadWindows) {
  const auto window = [](const std::string& value) {
    return "limits:\n- name: L\n  algorithm: fixed_window\n  count: 4\n  window: " + value + "\n";
  };
  ExpectErrors({
      {window("0s"), "f.yaml:5: limits[0].window: must be longer than 0s"},
      {window("60"), "f.yaml:5: limits[0].window: \"60\" has no unit; write 60s"},
      {window("Day"), "f.yaml:5: limits[0].window: does not know \"Day\" (hint: minute, hour, day"},
      {window("quarter"), "f.yaml:5: limits[0].window: does not know \"quarter\""},
      {window("900000h"), "f.yaml:5: limits[0].window: must be at most 100 years"},
      {window("[day]"), "f.yaml:5: limits[0].window: must be a length of time such as 1s, but is a list"},
      {window("\"\""), "f.yaml:5: limits[0].window: is empty"},
      {window("day\n  time_zone: Mars/Olympus"),
       "f.yaml:6: limits[0].time_zone: does not know the zone \"Mars/Olympus\" (hint: a name of the tz database"},
      {window("day\n  time_zone: /etc/localtime"), "f.yaml:6: limits[0].time_zone: does not know the zone"},
      {window("day\n  time_zone: localtime"), "f.yaml:6: limits[0].time_zone: does not know the zone"},
      {window("day\n  time_zone: ../zoneinfo/UTC"), "f.yaml:6: limits[0].time_zone: does not know the zone"},
      {window("day\n  time_zone: America"), "f.yaml:6: limits[0].time_zone: does not know the zone"},
      {window("day\n  time_zone: \"\""), "f.yaml:6: limits[0].time_zone: must not be empty"},
      {"limits: [{name: L, algorithm: fixed_window, window: day}]", "f.yaml:1: limits[0].count: is missing (hint: "},
      {"limits: [{name: L, algorithm: fixed_window, count: 1}]", "f.yaml:1: limits[0].window: is missing (hint: "},
      {"limits: [{name: L, algorithm: fixed_window, count: 0, window: day}]",
       "f.yaml:1: limits[0].count: must be at least 1"},
      {"limits: [{name: L, algorithm: sliding_window, count: 1, window: day}]",
       "f.yaml:1: limits[0].window: a calendar day needs algorithm fixed_window"},
      {"limits: [{name: L, algorithm: exact_window, count: 10001, window: 1s}]",
       "f.yaml:1: limits[0].count: exact_window remembers each admission and counts to 10000"},
  });
}

TEST(LimitsFile, RefusesFieldsOfAnotherAlgorithm) {
  ExpectErrors({
      {Bucket("  algorithm: leaky\n"), "f.yaml:5: limits[0].algorithm: does not know \"leaky\" (hint: token_bucket"},
      {Bucket("  count: 3\n"), "f.yaml:5: limits[0].count: does not belong to algorithm token_bucket (hint: "},
      {Bucket("  window: day\n"), "f.yaml:5: limits[0].window: does not belong to algorithm token_bucket (hint: "},
      {Bucket("  at_most: {count: 3, per: 1s, burst: 1}\n"), "f.yaml:3: limits[0].capacity: stands beside at_most"},
      {"limits: [{name: L, algorithm: gcra, at_most: {count: 3, per: 1s, burst: 1}}]",
       "f.yaml:1: limits[0].at_most: does not belong to algorithm gcra"},
      {"limits:\n- name: L\n  algorithm: exact_window\n  capacity: 3\n  count: 1\n  window: 1s\n",
       "f.yaml:4: limits[0].capacity: does not belong to algorithm exact_window (hint: a window has a count)"},
      {"limits:\n- name: L\n  algorithm: exact_window\n  count: 1\n  window: 1s\n  refill: {tokens: 1, per: 1s}\n",
       "f.yaml:6: limits[0].refill: does not belong to algorithm exact_window (hint: "},
      {"limits: [{name: L, refill: {tokens: 1, per: 1s}}]", "f.yaml:1: limits[0].capacity: is missing (hint: "},
      {"limits: [{name: L, capacity: 1}]", "f.yaml:1: limits[0].refill: is missing (hint: "},
      {Bucket("  capcity: 3\n"),
       "f.yaml:5: limits[0]: does not know the key \"capcity\" (hint: did you mean capacity?)"},
      {Bucket("  shadow: yes\n"), "f.yaml:5: limits[0].shadow: must be true or false, but is \"yes\""},
      {Bucket("  shadow: \"true\"\n"), "f.yaml:5: limits[0].shadow: must be true or false, but is \"true\" (hint: "},
      {Bucket("  on_unavailable: open\n"),
       "f.yaml:5: limits[0].on_unavailable: must be allow or deny, but is \"open\""},
      {Bucket("  metadata: {a: {b: c}}\n"), "f.yaml:5: limits[0].metadata.a: must be a text, but is a map"},
      {Bucket("  metadata: {\"a\\nb\": }\n"), "f.yaml:5: limits[0].metadata.\"a\\nb\": must be a text, but is nothing"},
      {Bucket("  metadata: [a]\n"), "f.yaml:5: limits[0].metadata: must be a map"},
      {Bucket("  metadata: {a: " + std::string(257, 'x') + "}\n"),
       "f.yaml:5: limits[0].metadata.a: is longer than 256"},
  });
}

TEST(LimitsFile, RefusesBadBoundsOfReservations) {
  ExpectErrors({
      {Bucket("  on_hold_expiry: keep\n"),
       "f.yaml:5: limits[0].on_hold_expiry: must be spend or give_back, but is \"keep\""},
      {Bucket("  max_debt: -1\n"), "f.yaml:5: limits[0].max_debt: must not be negative"},
      {Bucket("  max_debt: 9223372036851\n"),
       "f.yaml:5: limits[0].max_debt: must be at most 9223372036850: with the capacity 4 more would not fit 64 bits"},
      {Bucket("  max_debt: 9223372036850\n  overrides: [{key: a, capacity: 5}]\n"),
       "f.yaml:5: limits[0].max_debt: must be at most 9223372036849: with the capacity 5"},
      {Bucket("  max_holds: 0\n"), "f.yaml:5: limits[0].max_holds: must be at least 1"},
      {Bucket(absl::StrCat("  max_holds: ", kMaxHoldsPerKey + 1, "\n")),
       "f.yaml:5: limits[0].max_holds: must be at most "},
      {Bucket("  pace: slow\n"), "f.yaml:5: limits[0].pace: must be true or false"},
      {"limits:\n- name: L\n  algorithm: exact_window\n  count: 1\n  window: 1s\n  pace: true\n",
       "f.yaml:6: limits[0].pace: does not belong to algorithm exact_window (hint: "},
      {"limits:\n- name: L\n  algorithm: fixed_window\n  count: 1\n  window: day\n  overrides: [{key: a, pace: "
       "true}]\n",
       "f.yaml:6: limits[0].overrides[0].pace: does not belong to algorithm fixed_window"},
      {Bucket("  overrides: [{key: a, max_holds: 3}]\n"),
       "f.yaml:5: limits[0].overrides[0]: does not know the key \"max_holds\""},
  });
}

TEST(LimitsFile, RefusesBadOverrides) {
  ExpectErrors({
      {Bucket("  overrides: {}\n"), "f.yaml:5: limits[0].overrides: must be a list, but is a map"},
      {Bucket("  overrides: [3]\n"), "f.yaml:5: limits[0].overrides[0]: must be a map"},
      {Bucket("  overrides: [{capacity: 3}]\n"), "f.yaml:5: limits[0].overrides[0].key: is missing (hint: "},
      {Bucket("  overrides: [{key: \"\"}]\n"), "f.yaml:5: limits[0].overrides[0].key: must not be empty"},
      {Bucket("  overrides: [{key: " + std::string(1025, 'x') + "}]\n"),
       "f.yaml:5: limits[0].overrides[0].key: is longer than 1024 bytes"},
      {Bucket("  overrides:\n  - key: a\n  - key: b\n  - key: a\n"),
       "f.yaml:8: limits[0].overrides[2].key: \"a\" already has an override on line 6"},
      {Bucket("  overrides: [{key: a, algorithm: gcra}]\n"),
       "f.yaml:5: limits[0].overrides[0].algorithm: cannot be overridden (hint: "},
      {Bucket("  overrides: [{key: a, shadow: true}]\n"),
       "f.yaml:5: limits[0].overrides[0]: does not know the key \"shadow\""},
      {Bucket("  overrides: [{key: a, capacity: 0}]\n"),
       "f.yaml:5: limits[0].overrides[0].capacity: must be at least 1"},
      {Bucket("  overrides: [{key: a, count: 1}]\n"),
       "f.yaml:5: limits[0].overrides[0].count: does not belong to algorithm token_bucket"},
      {Bucket("  overrides: [{key: a, capacity: 1, at_most: {count: 3, per: 1s, burst: 1}}]\n"),
       "f.yaml:5: limits[0].overrides[0].capacity: stands beside at_most"},
      {Bucket("  overrides:\n  - key: a\n    capacity: 9000000000000\n"),
       "f.yaml:6: limits[0].overrides[0].refill: takes more than 100 years"},
      {Bucket("  overrides:\n  - key: *-a\n"), "f.yaml:6: "},
  });
  EXPECT_THAT(ErrorOf(Bucket("  overrides:\n  - key: *-a\n")), HasSubstr("(hint: "));
}

TEST(LimitsFile, TellsAllFaultsInTheOrderOfTheFile) {
  const std::string error = ErrorOf(
      "limits:\n"
      "- name: a\n  capacity: 0\n  refill: {tokens: 0, per: 0s}\n  shade: true\n"
      "- algorithm: nope\n  max_cost: -1\n"
      "- name: a\n  capacity: 1\n  refill: {tokens: 1, per: 1s}\n"
      "extra: 1\n");
  std::vector<std::string> beginnings;
  for (const absl::string_view line : absl::StrSplit(error, '\n')) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(": ", 2));
    beginnings.push_back(parts[0] + " " + parts[1]);
  }
  EXPECT_THAT(beginnings, ElementsAre("f.yaml:3 limits[0].capacity", "f.yaml:4 limits[0].refill.tokens",
                                      "f.yaml:4 limits[0].refill.per", "f.yaml:5 limits[0]", "f.yaml:6 limits[1].name",
                                      "f.yaml:6 limits[1].algorithm", "f.yaml:7 limits[1].max_cost",
                                      "f.yaml:8 limits[2].name", testing::StartsWith("f.yaml:11")));
}

TEST(LimitsFile, TellsAtMostTwentyFaults) {
  std::string text = "limits:\n";
  for (int i = 0; i < 50; ++i)
    absl::StrAppend(&text, "- {name: L", i, ", capacity: 0, refill: {tokens: 1, per: 1s}}\n");
  const std::string error = ErrorOf(text);
  const std::vector<std::string> lines = absl::StrSplit(error, '\n');
  EXPECT_EQ(lines.size(), 21u);
  EXPECT_THAT(lines.back(), AllOf(StartsWith("f.yaml: and "), EndsWith(" more")));
}

TEST(LimitsFile, KeepsHostileTextOnItsLine) {
  const std::string error = ErrorOf("limits: []\n\"a\\nf.yaml:1: fake\\e[31m\": 1\n");
  EXPECT_EQ(error.find('\n'), std::string::npos);
  EXPECT_EQ(error.find('\x1B'), std::string::npos);
}

// --- Files -----------------------------------------------------------------------------------------------------------

TEST(LimitsFile, LoadsAFile) {
  const TempDir dir;
  const std::string path = dir.Write("limits.yaml", Bucket(""));
  const absl::StatusOr<std::vector<Limit>> limits = LoadLimits(path);
  ASSERT_TRUE(limits.ok()) << limits.status();
  EXPECT_EQ(limits->at(0).file, path);
}

TEST(LimitsFile, SaysWhyAFileCannotBeLoaded) {
  const TempDir dir;
  const absl::Status missing = LoadLimits(dir.File("none.yaml")).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()),
              AllOf(StartsWith(dir.File("none.yaml") + ": cannot be read: No such file"), HasSubstr("(hint: ")));
  EXPECT_THAT(std::string(LoadLimits(dir.path()).status().message()), EndsWith("is a directory, not a file"));
  ASSERT_EQ(::mkfifo(dir.File("pipe").c_str(), 0600), 0);
  EXPECT_THAT(std::string(LoadLimits(dir.File("pipe")).status().message()), EndsWith("is not a regular file"));
  const absl::Status large = LoadLimits(dir.Write("large", std::string(kMaxLimitsFileBytes + 1, '\n'))).status();
  EXPECT_THAT(std::string(large.message()), EndsWith("is larger than 16777216 bytes"));
  EXPECT_THAT(std::string(LoadLimits(dir.Write("bad", "limits:")).status().message()),
              StartsWith(dir.File("bad") + ":1: limits: must be a list"));
}

}  // namespace
}  // namespace ebbgate

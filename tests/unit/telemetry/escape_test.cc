#include "server/telemetry/escape.h"

#include <random>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/unit/telemetry/json_reader.h"

namespace ebbgate {
namespace {

std::string Text(absl::string_view value) {
  std::string out;
  AppendTextValue(value, out);
  return out;
}

std::string Json(absl::string_view value) {
  std::string out;
  AppendJsonString(value, out);
  return out;
}

// What another parser of JSON makes of it.
std::string ReadBack(const std::string& json) {
  const auto value = ReadJson(json);
  EXPECT_NE(value, nullptr) << json;
  return value == nullptr ? "" : StringOf(*value);
}

TEST(EscapeText, LeavesPlainWordsBare) {
  EXPECT_EQ(Text("api-user"), "api-user");
  EXPECT_EQ(Text("/etc/ebbgate/limits.yaml:12"), "/etc/ebbgate/limits.yaml:12");
  EXPECT_EQ(Text("[::1]:7370"), "[::1]:7370");
}

TEST(EscapeText, QuotesWhatCouldBeMistaken) {
  EXPECT_EQ(Text(""), "\"\"");
  EXPECT_EQ(Text("a b"), "\"a b\"");
  EXPECT_EQ(Text("x level=error"), "\"x level=error\"");
  EXPECT_EQ(Text("say \"hi\""), "\"say \\\"hi\\\"\"");
  EXPECT_EQ(Text("back\\slash"), "\"back\\\\slash\"");
  EXPECT_EQ(Text("Grüße"), "\"Grüße\"");
}

TEST(EscapeText, KeepsOneLine) {
  EXPECT_EQ(Text("a\nb\r\tc"), "\"a\\nb\\r\\tc\"");
  EXPECT_EQ(Text("a\xE2\x80\xA8"
                 "b"),
            "\"a\\u{2028}b\"");
  EXPECT_EQ(Text(absl::string_view("a\0b", 3)), "\"a\\u{0}b\"");
}

TEST(EscapeText, DisarmsTerminals) {
  EXPECT_EQ(Text("\x1b[31mred"), "\"\\u{1b}[31mred\"");
  EXPECT_EQ(Text("\x7f"), "\"\\u{7f}\"");
  // C1 controls, of which U+009B begins an escape sequence by itself: as characters, and as bytes.
  EXPECT_EQ(Text("\xC2\x9B"
                 "31m"),
            "\"\\u{9b}31m\"");
  EXPECT_EQ(Text("\x9B"
                 "31m"),
            "\"\\x9B31m\"");
  // Text that runs the other way.
  EXPECT_EQ(Text("user\xE2\x80\xAEtxt.exe"), "\"user\\u{202e}txt.exe\"");
  EXPECT_EQ(Text("\xE2\x81\xA6x\xE2\x81\xA9"), "\"\\u{2066}x\\u{2069}\"");
}

TEST(EscapeText, ShowsBytesThatAreNotUtf8) {
  EXPECT_EQ(Text("a\xff"
                 "b"),
            "\"a\\xFFb\"");
  EXPECT_EQ(Text("\xc0\xaf"), "\"\\xC0\\xAF\"");                    // overlong
  EXPECT_EQ(Text("\xe0\x80\xaf"), "\"\\xE0\\x80\\xAF\"");           // overlong
  EXPECT_EQ(Text("\xed\xa0\x80"), "\"\\xED\\xA0\\x80\"");           // a surrogate
  EXPECT_EQ(Text("\xf4\x90\x80\x80"), "\"\\xF4\\x90\\x80\\x80\"");  // beyond U+10FFFF
  EXPECT_EQ(Text("\xe2\x82"), "\"\\xE2\\x82\"");                    // cut short
  EXPECT_EQ(Text("\xf0\x9f\x8c\x8a"), "\"\xf0\x9f\x8c\x8a\"");      // a wave: fine
}

TEST(EscapeJson, EscapesAndReadsBack) {
  EXPECT_EQ(Json("a\"b\\c\nd\te"), R"("a\"b\\c\nd\te")");
  EXPECT_EQ(Json("\x1b[31m"), R"("\u001b[31m")");
  EXPECT_EQ(Json("\xE2\x80\xA8"), R"("\u2028")");
  EXPECT_EQ(Json("a\xff"
                 "b"),
            R"("a\ufffdb")");
  EXPECT_EQ(ReadBack(Json("a\"b\\c\nd\te \x01\x1f\x7f Grüße")), "a\"b\\c\nd\te \x01\x1f\x7f Grüße");
}

TEST(Escape, AnyBytesStayOneHarmlessLine) {
  std::mt19937 random(20261101);
  std::uniform_int_distribution<int> byte(0, 255);
  for (int round = 0; round < 20'000; ++round) {
    std::string value(static_cast<std::size_t>(round % 24), '\0');
    for (char& c : value) c = static_cast<char>(byte(random));
    for (const std::string& out : {Text(value), Json(value)}) {
      for (const char c : out) {
        ASSERT_GE(static_cast<unsigned char>(c), 0x20u) << out;
        ASSERT_NE(c, '\x7f') << out;
      }
    }
    ReadBack(Json(value));
  }
}

}  // namespace
}  // namespace ebbgate

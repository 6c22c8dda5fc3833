#include "server/config/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace ebbgate {
namespace {

TEST(Text, FindsWhereUtf8Ends) {
  EXPECT_EQ(ValidUtf8Prefix(""), 0u);
  EXPECT_EQ(ValidUtf8Prefix("plain"), 5u);
  EXPECT_EQ(ValidUtf8Prefix("é€😀"), 9u);
  const std::string bad[] = {"\x80", "\xC0\xAF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                             "\xF5", "\xE2\x82", "\xF0\x9F\x98", "\xC3"};
  for (const std::string& bytes : bad) EXPECT_EQ(ValidUtf8Prefix("ab" + bytes), 2u) << Quote(bytes);
}

TEST(Text, FindsControlCharacters) {
  EXPECT_FALSE(HasControlCharacter("a b é"));
  for (const std::string text : {"a\nb", "\x7F", "\xC2\x85", "\x1B[31m"}) EXPECT_TRUE(HasControlCharacter(text));
  EXPECT_TRUE(HasControlCharacter(absl::string_view("\0", 1)));
}

TEST(Text, QuotesSoThatALineStaysALine) {
  EXPECT_EQ(Quote("a\"b"), "\"a\\\"b\"");
  EXPECT_EQ(Quote("é\n"), "\"\\303\\251\\n\"");
  EXPECT_EQ(Quote("é"), "\"é\"");
  EXPECT_EQ(Quote(std::string(200, 'x')), "\"" + std::string(64, 'x') + "...\"");
}

TEST(Text, ReadsPlainWholeNumbersOnly) {
  EXPECT_EQ(*ParseWholeNumber("0"), 0);
  EXPECT_EQ(*ParseWholeNumber("9223372036854775807"), INT64_MAX);
  for (const char* text : {"", "-", "-1", "+1", "1.0", "1e3", "0x10", "1_000", "1,000", " 1", "1 ", "010",
                           "9223372036854775808", "99999999999999999999999", "one", "٣"}) {
    EXPECT_FALSE(ParseWholeNumber(text).ok()) << text;
  }
}

TEST(Text, SuggestsTheNearestWord) {
  const absl::string_view words[] = {"capacity", "refill", "name", "count"};
  EXPECT_EQ(Nearest("capcity", words), "capacity");
  EXPECT_EQ(Nearest("refil", words), "refill");
  EXPECT_EQ(Nearest("nmae", words), "name");
  EXPECT_EQ(Nearest("rate", words), "");  // two slips in four letters
  EXPECT_EQ(Nearest("cuont", words), "count");
  EXPECT_EQ(Nearest("frequency", words), "");
}

}  // namespace
}  // namespace ebbgate

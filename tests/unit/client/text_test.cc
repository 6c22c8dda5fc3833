#include "client/cli/text.h"

#include <gtest/gtest.h>

#include <sstream>

namespace ebbgate::client {
namespace {

TEST(TextTest, GroupsDigits) {
  EXPECT_EQ(Grouped(0), "0");
  EXPECT_EQ(Grouped(999), "999");
  EXPECT_EQ(Grouped(1000), "1,000");
  EXPECT_EQ(Grouped(-1234567), "-1,234,567");
  EXPECT_EQ(Grouped(9'000'000'000'000), "9,000,000,000,000");
}

TEST(TextTest, RoughLengthsHaveThreeDigits) {
  EXPECT_EQ(Rough(absl::ZeroDuration()), "0 ns");
  EXPECT_EQ(Rough(absl::Nanoseconds(999)), "999 ns");
  EXPECT_EQ(Rough(absl::Nanoseconds(41'340)), "41.3 us");
  EXPECT_EQ(Rough(absl::Microseconds(1'204)), "1.20 ms");
  EXPECT_EQ(Rough(absl::Nanoseconds(999'999)), "1.00 ms");
  EXPECT_EQ(Rough(absl::Seconds(123)), "123 s");
}

TEST(TextTest, WaitsAreRoundedUpToMilliseconds) {
  EXPECT_EQ(UpToMs(absl::Milliseconds(500)), "500ms");
  EXPECT_EQ(UpToMs(absl::Nanoseconds(500'000'001)), "501ms");
  EXPECT_EQ(UpToMs(absl::Nanoseconds(1)), "1ns");
  EXPECT_EQ(UpToMs(absl::Seconds(90) + absl::Nanoseconds(1)), "1m30.001s");
}

TEST(TextTest, APartOfNothingIsNothing) {
  EXPECT_EQ(Percent(0, 0), "0.0 %");
  EXPECT_EQ(Percent(1, 8), "12.5 %");
}

TEST(TextTest, ColumnsLineUpAndLinesEndWithoutSpaces) {
  Table table;
  table.Row({"a", "bb", ""});
  table.Row({"\xc3\xa9\xc3\xa9\xc3\xa9", "c"});
  std::ostringstream out;
  table.Print(out, "  ");
  EXPECT_EQ(out.str(), "  a    bb\n  \xc3\xa9\xc3\xa9\xc3\xa9  c\n");
}

TEST(TextTest, ControlCharactersDoNotReachTheTerminal) {
  EXPECT_EQ(Printable("a\x1b[31m\n\x7f"), "a\\x1b[31m\\x0a\\x7f");
}

}  // namespace
}  // namespace ebbgate::client

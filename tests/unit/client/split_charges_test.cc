#include "client/cli/split_charges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ebbgate::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(SplitChargesTest, WithoutAndNothingIsCut) {
  const auto split = SplitCharges({"check", "a", "b", "--cost", "3"});
  ASSERT_TRUE(split.ok());
  EXPECT_THAT(split->rest, ElementsAre("check", "a", "b", "--cost", "3"));
  EXPECT_THAT(split->charges, IsEmpty());
}

TEST(SplitChargesTest, EachAndIsACharge) {
  const auto split =
      SplitCharges({"check", "a", "b", "--and", "c", "d", "--cost", "3", "--and", "e", "f", "--cost=-4"});
  ASSERT_TRUE(split.ok());
  EXPECT_THAT(split->rest, ElementsAre("check", "a", "b"));
  ASSERT_EQ(split->charges.size(), 2u);
  EXPECT_EQ(split->charges[0].limit, "c");
  EXPECT_EQ(split->charges[0].key, "d");
  EXPECT_EQ(split->charges[0].cost, 3);
  EXPECT_EQ(split->charges[1].limit, "e");
  EXPECT_EQ(split->charges[1].cost, -4);  // for the server to refuse
}

TEST(SplitChargesTest, ReserveTakesThemToo) {
  const auto split = SplitCharges({"reserve", "a", "b", "--and", "c", "d", "--max-wait", "3s"});
  ASSERT_TRUE(split.ok());
  EXPECT_THAT(split->rest, ElementsAre("reserve", "a", "b", "--max-wait", "3s"));
  ASSERT_EQ(split->charges.size(), 1u);
}

TEST(SplitChargesTest, ACostAbsentStaysAbsent) {
  const auto split = SplitCharges({"check", "a", "b", "--cost", "9", "--and", "c", "d"});
  ASSERT_TRUE(split.ok());
  EXPECT_EQ(split->charges[0].cost, std::nullopt);
}

TEST(SplitChargesTest, FlagsOfTheCallMayStandBehindAnAnd) {
  const auto split = SplitCharges({"check", "a", "b", "--and", "c", "d", "--json", "--server", "s:1", "--cost", "2"});
  ASSERT_TRUE(split.ok());
  EXPECT_THAT(split->rest, ElementsAre("check", "a", "b", "--json", "--server", "s:1"));
  EXPECT_EQ(split->charges[0].cost, 2);
}

TEST(SplitChargesTest, DashesAtTheStartNeedTwoMore) {
  const auto split = SplitCharges({"check", "a", "b", "--and", "--", "-c", "--cost"});
  ASSERT_TRUE(split.ok());
  EXPECT_EQ(split->charges[0].limit, "-c");
  EXPECT_EQ(split->charges[0].key, "--cost");
}

TEST(SplitChargesTest, SaysWhatIsMissing) {
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
           {"check", "a", "b", "--and"}, {"check", "a", "b", "--and", "c"}, {"check", "--and", "c", "--cost", "1"}}) {
    EXPECT_THAT(SplitCharges(args).status().message(), HasSubstr("--and needs a limit and a key"));
  }
  EXPECT_THAT(SplitCharges({"check", "a", "b", "--and", "c", "d", "--cost"}).status().message(),
              HasSubstr("whole number"));
  EXPECT_THAT(SplitCharges({"check", "a", "b", "--and", "c", "d", "--cost", "x"}).status().message(), HasSubstr("'x'"));
  EXPECT_THAT(SplitCharges({"check", "a", "b", "--and", "c", "d", "--cost", "1", "--cost", "1"}).status().message(),
              HasSubstr("twice"));
}

TEST(SplitChargesTest, OtherCommandsAreLeftAlone) {
  const auto split = SplitCharges({"inspect", "a", "--and"});
  ASSERT_TRUE(split.ok());
  EXPECT_THAT(split->rest, ElementsAre("inspect", "a", "--and"));
}

}  // namespace
}  // namespace ebbgate::client

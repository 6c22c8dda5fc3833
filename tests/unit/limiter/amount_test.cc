#include "server/limiter/amount.h"

#include <gtest/gtest.h>

#include <limits>

#include "server/limiter/bounds.h"

namespace ebbgate {
namespace {

constexpr std::int64_t kInt64Min = std::numeric_limits<std::int64_t>::min();

TEST(Amount, WholeTokensRoundDown) {
  EXPECT_EQ(WholeTokens(0), 0);
  EXPECT_EQ(WholeTokens(1), 0);
  EXPECT_EQ(WholeTokens(999'999), 0);
  EXPECT_EQ(WholeTokens(1'000'000), 1);
  EXPECT_EQ(WholeTokens(1'999'999), 1);
  EXPECT_EQ(WholeTokens(kInt64Max), kMaxCostTokens);
}

TEST(Amount, DebtCountsAsNoTokens) {
  EXPECT_EQ(WholeTokens(-1), 0);
  EXPECT_EQ(WholeTokens(-5'000'000), 0);
  EXPECT_EQ(WholeTokens(kInt64Min), 0);
}

TEST(Amount, TheLargestCostFitsAndOneMoreWouldNot) {
  EXPECT_EQ(FromTokens(kMaxCostTokens), 9'223'372'036'854'000'000);
  EXPECT_GT(static_cast<Int128>(kMaxCostTokens + 1) * kMicrotokensPerToken, static_cast<Int128>(kInt64Max));
}

TEST(Amount, QuotientsRoundTheWayTheyAreNamed) {
  EXPECT_TRUE(FloorDiv(7, 2) == 3);
  EXPECT_TRUE(CeilDiv(7, 2) == 4);
  EXPECT_TRUE(FloorDiv(6, 2) == 3);
  EXPECT_TRUE(CeilDiv(6, 2) == 3);
  EXPECT_TRUE(FloorDiv(0, 5) == 0);
  EXPECT_TRUE(CeilDiv(0, 5) == 0);
  EXPECT_TRUE(CeilDiv(1, kInt64Max) == 1);
}

TEST(Amount, QuotientsOnBothSidesOf64Bits) {
  const Int128 edge = kInt64Max;
  EXPECT_TRUE(FloorDiv(edge, 1) == edge);
  EXPECT_TRUE(FloorDiv(edge + 1, 1) == edge + 1);
  EXPECT_TRUE(CeilDiv(edge, 2) == edge / 2 + 1);
  EXPECT_TRUE(CeilDiv(edge + 1, 2) == (edge + 1) / 2);
  EXPECT_TRUE(FloorDiv(edge * edge, kInt64Max) == edge);
  EXPECT_TRUE(FloorDiv(edge * edge - 1, kInt64Max) == edge - 1);
  EXPECT_TRUE(CeilDiv(edge * edge - 1, kInt64Max) == edge);
}

TEST(Amount, SaturateStopsAtBothEnds) {
  EXPECT_EQ(Saturate(static_cast<Int128>(kInt64Max) + 1), kInt64Max);
  EXPECT_EQ(Saturate(static_cast<Int128>(kInt64Max) * 5), kInt64Max);
  EXPECT_EQ(Saturate(kInt64Max), kInt64Max);
  EXPECT_EQ(Saturate(static_cast<Int128>(kInt64Min) - 1), kInt64Min);
  EXPECT_EQ(Saturate(kInt64Min), kInt64Min);
  EXPECT_EQ(Saturate(-7), -7);
}

}  // namespace
}  // namespace ebbgate

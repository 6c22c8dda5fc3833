#include "client/load/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

namespace ebbgate::client {
namespace {

TEST(HistogramTest, EmptyIsZero) {
  const Histogram histogram;
  EXPECT_EQ(histogram.QuantileNs(0.5), 0);
  EXPECT_EQ(histogram.max_ns(), 0);
}

TEST(HistogramTest, SmallValuesAreExact) {
  Histogram histogram;
  for (int i = 1; i <= 60; ++i) histogram.Add(i);
  EXPECT_EQ(histogram.QuantileNs(0.5), 30);
  EXPECT_EQ(histogram.QuantileNs(1.0), 60);
  EXPECT_EQ(histogram.QuantileNs(0.0), 1);
}

TEST(HistogramTest, QuantilesAreWithinTheStatedError) {
  std::mt19937_64 random(1);
  std::vector<std::int64_t> values;
  Histogram histogram;
  for (int i = 0; i < 100'000; ++i) {
    const auto value = static_cast<std::int64_t>(random() >> (1 + random() % 62));
    values.push_back(value);
    histogram.Add(value);
  }
  std::sort(values.begin(), values.end());
  for (const double fraction : {0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank = static_cast<std::size_t>(std::max(0.0, fraction * 100'000 - 1));
    const std::int64_t exact = values[rank];
    const std::int64_t got = histogram.QuantileNs(fraction);
    EXPECT_GE(got, exact) << fraction;
    EXPECT_LE(static_cast<double>(got - exact), 0.016 * static_cast<double>(exact) + 1) << fraction;
  }
}

TEST(HistogramTest, TheEndsOfTheRangeHaveAPlace) {
  Histogram histogram;
  histogram.Add(-5);
  histogram.Add(std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(histogram.QuantileNs(0.5), 0);
  EXPECT_EQ(histogram.QuantileNs(1.0), std::numeric_limits<std::int64_t>::max());
}

TEST(HistogramTest, MergingIsAddingAll) {
  Histogram a, b, both;
  for (int i = 0; i < 1000; ++i) {
    (i % 3 == 0 ? a : b).Add(i * i);
    both.Add(i * i);
  }
  a.Merge(b);
  EXPECT_EQ(a.count(), both.count());
  EXPECT_EQ(a.max_ns(), both.max_ns());
  EXPECT_EQ(a.QuantileNs(0.37), both.QuantileNs(0.37));
}

}  // namespace
}  // namespace ebbgate::client

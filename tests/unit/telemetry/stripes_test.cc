#include "server/telemetry/stripes.h"

#include <barrier>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace ebbgate {
namespace {

TEST(Stripes, ThreadKeepsItsStripe) {
  const unsigned mine = ThreadStripe();
  EXPECT_EQ(ThreadStripe(), mine);
  unsigned other = mine;
  std::thread([&] { other = ThreadStripe(); }).join();
  EXPECT_NE(other, mine);
}

// Threads beyond the own stripes share one, and nothing is lost there either.
TEST(Stripes, ManyThreadsLoseNoCount) {
  constexpr int kThreads = 100;
  constexpr int kCounts = 2000;
  Striped<2> counters;
  // Of the standard library: the thread sanitizer does not see through Abseil's.
  std::mutex mutex;
  std::multiset<unsigned> stripes;
  std::barrier barrier(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      {
        const std::lock_guard lock(mutex);
        stripes.insert(ThreadStripe());
      }
      barrier.arrive_and_wait();
      for (int i = 0; i < kCounts; ++i) {
        counters.Add(0, 1);
        counters.Add(1, 3);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counters.Sum(0), std::uint64_t{kThreads} * kCounts);
  EXPECT_EQ(counters.Sum(1), std::uint64_t{kThreads} * kCounts * 3);
  for (unsigned stripe = 0; stripe < kOwnStripes; ++stripe) EXPECT_LE(stripes.count(stripe), 1u) << stripe;
  EXPECT_GE(stripes.count(kSharedStripe), kThreads - kOwnStripes);
}

TEST(Stripes, ThreadsThatEndGiveTheirStripeBack) {
  Striped<1> counter;
  for (int t = 0; t < 300; ++t) {
    std::thread([&] {
      EXPECT_NE(ThreadStripe(), kSharedStripe);
      counter.Add(0, 1);
    }).join();
  }
  EXPECT_EQ(counter.Sum(0), 300u);
}

}  // namespace
}  // namespace ebbgate

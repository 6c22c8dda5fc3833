#include "server/service/readiness.h"

#include <atomic>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ebbgate {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Readiness, ReadyWhileNoReasonStands) {
  EXPECT_TRUE(Readiness().Ready());
  Readiness readiness({"limits not loaded", "certificates not loaded"});
  EXPECT_FALSE(readiness.Ready());
  EXPECT_THAT(readiness.Reasons(), ElementsAre("certificates not loaded", "limits not loaded"));
  readiness.Clear("limits not loaded");
  EXPECT_FALSE(readiness.Ready());
  readiness.Clear("certificates not loaded");
  EXPECT_TRUE(readiness.Ready());
  EXPECT_THAT(readiness.Reasons(), IsEmpty());
  readiness.Block("draining");
  EXPECT_FALSE(readiness.Ready());
}

TEST(Readiness, DoingItTwiceChangesNothing) {
  Readiness readiness;
  int changes = 0;
  readiness.AddListener([&] { ++changes; });
  readiness.Block("draining");
  readiness.Block("draining");
  EXPECT_EQ(readiness.Version(), 1u);
  readiness.Clear("draining");
  readiness.Clear("draining");
  readiness.Clear("never heard of");
  EXPECT_TRUE(readiness.Ready());
  EXPECT_EQ(readiness.Version(), 2u);
  EXPECT_EQ(changes, 2);
}

TEST(Readiness, ListenersHearOfChangesInOrder) {
  Readiness readiness({"starting"});
  std::vector<bool> heard;
  std::vector<std::uint64_t> versions;
  const auto id = readiness.AddListener([&] {
    heard.push_back(readiness.Ready());
    versions.push_back(readiness.Version());
  });
  readiness.Clear("starting");
  readiness.Block("draining");
  EXPECT_THAT(heard, ElementsAre(true, false));
  EXPECT_THAT(versions, ElementsAre(1, 2));
  readiness.RemoveListener(id);
  readiness.Clear("draining");
  EXPECT_EQ(heard.size(), 2u);
}

TEST(Readiness, ThreadsMayChangeAndAsk) {
  Readiness readiness;
  std::atomic<int> heard{0};
  readiness.AddListener([&] { ++heard; });
  std::vector<std::thread> threads;
  for (const char* reason : {"a", "b", "c", "d"}) {
    threads.emplace_back([&readiness, reason] {
      for (int i = 0; i < 1000; ++i) {
        readiness.Block(reason);
        EXPECT_FALSE(readiness.Ready());
        readiness.Clear(reason);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(readiness.Ready());
  EXPECT_EQ(readiness.Version(), 8000u);
  EXPECT_EQ(heard, 8000);
}

}  // namespace
}  // namespace ebbgate

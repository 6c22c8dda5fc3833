#include "server/store/store.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

namespace ebbgate {
namespace {

constexpr std::uint32_t kLimit = 3;

// Everything here happens in one shard, under its lock.
class ShardTest : public testing::Test {
 protected:
  ShardTest() { Shared().ReserveTallies(kLimit + 2); }

  Shard& Shared() ABSL_NO_THREAD_SAFETY_ANALYSIS { return store_.shard(0); }
  static std::uint64_t Hash(absl::string_view key) { return XXH3_64bits(key.data(), key.size()); }

  Store store_{1000, 1 << 20};
};

TEST_F(ShardTest, FindsWhatWasAddedAndNothingElse) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  Shard& shard = Shared();
  const std::string long_key(kMaxKeyBytes, 'x');
  const std::vector<std::string> keys = {"a", "exactly twenty bytes", "one more than twenty.", long_key};
  for (const std::string& key : keys) {
    Entry* const entry = shard.Add(Hash(key), kLimit, key);
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->key(), key);
  }
  for (const std::string& key : keys) {
    ASSERT_NE(shard.Find(Hash(key), kLimit, key), nullptr);
    EXPECT_EQ(shard.Find(Hash(key), kLimit, key)->key(), key);
    EXPECT_EQ(shard.Find(Hash(key), kLimit + 1, key), nullptr) << "a key belongs to its limit";
  }
  EXPECT_EQ(shard.Find(Hash("a"), kLimit, "b"), nullptr) << "equal hashes do not make equal keys";
  EXPECT_EQ(shard.tally(kLimit).keys, 4);
}

TEST_F(ShardTest, KeysThatDifferInOneByteDiffer) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  Shard& shard = Shared();
  for (std::size_t length = 1; length <= 30; ++length) {
    const std::string key(length, 'k');
    ASSERT_NE(shard.Add(7, kLimit, key), nullptr);
    EXPECT_NE(shard.Find(7, kLimit, key), nullptr);
    for (std::size_t at = 0; at < length; ++at) {
      std::string other = key;
      other[at] = 'x';
      EXPECT_EQ(shard.Find(7, kLimit, other), nullptr) << length << " bytes, the difference at " << at;
    }
  }
}

TEST_F(ShardTest, AGuessIsTakenOnlyIfItIsTheKey) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  Shard& shard = Shared();
  EXPECT_EQ(shard.PrefetchEntry(7), nullptr);
  Entry* const a = shard.Add(7, kLimit, "a");
  Entry* const b = shard.Add(7, kLimit, "b");
  Entry* const guess = shard.PrefetchEntry(7);
  ASSERT_TRUE(guess == a || guess == b);
  for (Entry* const entry : {a, b}) {
    EXPECT_EQ(shard.Find(7, kLimit, "a", entry), a);
    EXPECT_EQ(shard.Find(7, kLimit, "b", entry), b);
    EXPECT_EQ(shard.Find(7, kLimit + 1, "a", entry), nullptr);
  }
  shard.Remove(7, *a);
  EXPECT_EQ(shard.Find(7, kLimit, "a", a), nullptr) << "removed since it was guessed";
}

TEST_F(ShardTest, RemovingGivesBackAllThatAddingTook) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  Shard& shard = Shared();
  for (int round = 0; round < 3; ++round) {
    std::vector<std::string> keys;
    for (int i = 0; i < 500; ++i)
      keys.push_back(std::to_string(i) + std::string(static_cast<std::size_t>(i % 50), 'k'));
    for (const std::string& key : keys) ASSERT_NE(shard.Add(Hash(key), kLimit, key), nullptr);
    EXPECT_EQ(store_.budget().keys(), 500);
    for (const std::string& key : keys) shard.Remove(Hash(key), *shard.Find(Hash(key), kLimit, key));
    EXPECT_EQ(store_.budget().keys(), 0);
    // What stays is the index, which does not shrink.
    EXPECT_LE(store_.budget().bytes(), 16 * 1024) << "round " << round;
    EXPECT_EQ(shard.tally(kLimit).keys, 0);
  }
}

TEST_F(ShardTest, BoundedByKeys) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  Shard& shard = Shared();
  int added = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::string key = std::to_string(i);
    added += shard.Add(Hash(key), kLimit, key) != nullptr;
  }
  EXPECT_EQ(added, 1000);
  EXPECT_EQ(store_.budget().keys(), 1000);
  const std::string first = "0";
  shard.Remove(Hash(first), *shard.Find(Hash(first), kLimit, first));
  EXPECT_NE(shard.Add(Hash("again"), kLimit, "again"), nullptr);
}

TEST(Store, BoundedByBytes) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  Store store(1'000'000, 100'000);
  Shard& shard = store.shard(5);
  shard.ReserveTallies(1);
  std::size_t added = 0;
  const std::string padding(1000, 'p');
  for (int i = 0; i < 1000; ++i) {
    const std::string key = padding + std::to_string(i);
    added += shard.Add(XXH3_64bits(key.data(), key.size()), 0, key) != nullptr;
    EXPECT_LE(store.budget().bytes(), 100'000);
  }
  EXPECT_NEAR(static_cast<double>(added), 100'000.0 / (1002 + 64), 10);
}

TEST_F(ShardTest, SweepVisitsEveryEntryOnceARound) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  Shard& shard = Shared();
  std::multiset<std::string> expected;
  for (int i = 0; i < 300; ++i) {
    const std::string key = std::to_string(i);
    shard.Add(Hash(key), kLimit, key);
    if (i % 3 == 0) {
      shard.Remove(Hash(key), *shard.Find(Hash(key), kLimit, key));
    } else {
      expected.insert(key);
    }
  }
  std::uint64_t cursor = 0;
  std::multiset<std::string> seen;
  const auto note = [&](Entry& entry) { seen.insert(std::string(entry.key())); };
  while (shard.Sweep(cursor, 7, note)) {
  }
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(cursor, 0u);
}

TEST(Store, MemoryPerKeyStaysWithinItsGoal) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  Store store(2'000'000, std::int64_t{1} << 30);
  const std::int64_t n = 400'000;
  for (std::uint32_t i = 0; i < kShards; ++i) store.shard(i).ReserveTallies(1);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::string key = std::to_string(i);
    const std::uint64_t hash = XXH3_64bits(key.data(), key.size());
    ASSERT_NE(store.shard(static_cast<std::uint32_t>(hash % kShards)).Add(hash, 0, key), nullptr);
  }
  EXPECT_LE(store.budget().bytes() / n, 96);
  // What is mapped is what is used, but for a segment begun and the shards' last blocks.
  EXPECT_LE(store.pool().mapped_bytes(), n * 64 + (4 << 20) + 64 * 4096);
}

TEST(Store, ShardLocksAreTakenInAscendingOrder) {
  // Two threads over the same pair, named from either side, many times: with any other order they would stop.
  Store store(100, 100'000);
  int shared = 0;
  const auto work = [&](ShardSet shards) {
    for (int i = 0; i < 20'000; ++i) {
      ShardLocks locks(store, shards);
      ++shared;
    }
  };
  std::thread one(work, OneShard(1) | OneShard(60));
  std::thread other(work, OneShard(60) | OneShard(1) | OneShard(30));
  one.join();
  other.join();
  EXPECT_EQ(shared, 40'000);
}

TEST(EntryPool, BlocksDoNotOverlapAndAreBounded) {
  EntryPool pool(40'000);
  std::set<std::uint32_t> firsts;
  while (const std::optional<std::uint32_t> first = pool.AllocateBlock()) {
    EXPECT_EQ(*first % EntryPool::kBlockEntries, 0u);
    EXPECT_TRUE(firsts.insert(*first).second);
    for (std::uint32_t i = 0; i < EntryPool::kBlockEntries; ++i) {
      EXPECT_FALSE(pool.At(*first + i).in_use);
      pool.At(*first + i).in_use = true;
    }
    pool.PrepareSpare();
  }
  EXPECT_EQ(firsts.size() * EntryPool::kBlockEntries, 65'536u) << "two segments hold 40,000";
  EXPECT_EQ(pool.mapped_bytes(), 4 << 20);
}

TEST(DistinctKeys, TheOwnershipHashIsFixed) {
  // Changing these moves keys between the nodes of a cluster: raise kOwnershipHashVersion, and say so.
  ASSERT_EQ(kOwnershipHashVersion, 1);
  EXPECT_EQ(OwnershipSeed("api-user"), XXH3_64bits_withSeed("api-user", 8, 0));
  EXPECT_EQ(SlotOf(OwnershipSeed("api-user"), "alice"), 8670u);
  EXPECT_EQ(SlotOf(OwnershipSeed("api-user"), "bob"), 11477u);
  EXPECT_EQ(SlotOf(OwnershipSeed("daily"), "alice"), 7698u);
}

TEST(DistinctKeys, LimitAndKeyAreNotJoined) {
  EXPECT_NE(SlotOf(OwnershipSeed("a_b"), "c"), SlotOf(OwnershipSeed("a"), "b_c"));
  EXPECT_NE(SlotOf(OwnershipSeed("a/b"), "c"), SlotOf(OwnershipSeed("a"), "b/c"));
}

TEST(DistinctKeys, SlotsAndShardsAreUsedEvenly) {
  std::vector<int> per_shard(kShards);
  const std::uint64_t seed = OwnershipSeed("limit");
  for (int i = 0; i < 64'000; ++i) ++per_shard[ShardOfSlot(SlotOf(seed, "user-" + std::to_string(i)))];
  for (const int n : per_shard) EXPECT_NEAR(n, 1000, 200);
}

TEST(DistinctKeys, PlacementIsKeyed) {
  const PlacementKey a = RandomPlacementKey();
  const PlacementKey b = RandomPlacementKey();
  ASSERT_NE(a, b);
  EXPECT_NE(PlacementHash(a, "key"), PlacementHash(b, "key"));
  EXPECT_EQ(PlacementHash(a, "key"), PlacementHash(a, "key"));
  EXPECT_NE(DerivePlacementKey(a, 1), DerivePlacementKey(a, 2));
  EXPECT_EQ(DerivePlacementKey(a, 1), DerivePlacementKey(a, 1));
}

}  // namespace
}  // namespace ebbgate

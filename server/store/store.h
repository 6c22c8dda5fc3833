// The door of the store: the state of every key, in shards.
//
// A key's slot decides its shard; the shard's lock guards the entry. A caller that needs several shards takes their
// locks through ShardLocks, which fixes the order (ascending), so that no two callers can wait for each other.
#ifndef EBBGATE_SERVER_STORE_STORE_H_
#define EBBGATE_SERVER_STORE_STORE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "server/limiter/bounds.h"
#include "server/store/entry_pool.h"
#include "server/store/hashing.h"
#include "server/store/shard.h"

namespace ebbgate {

// Bit i stands for shard i.
using ShardSet = std::uint64_t;
static_assert(kShards == 64, "a ShardSet has one bit for each shard");
inline constexpr ShardSet kAllShards = ~ShardSet{0};

constexpr ShardSet OneShard(std::uint32_t shard) { return ShardSet{1} << shard; }

// Thread-safe; what a shard holds is guarded by the shard.
class Store {
 public:
  Store(std::int64_t max_keys, std::int64_t max_bytes);

  Shard& shard(std::uint32_t i) { return *shards_[i]; }
  StoreBudget& budget() { return budget_; }
  EntryPool& pool() { return pool_; }
  const PlacementKey& placement_key() const { return placement_key_; }

 private:
  const PlacementKey placement_key_;
  StoreBudget budget_;
  EntryPool pool_;
  std::vector<std::unique_ptr<Shard>> shards_;
};

// Holds the locks of a set of shards. The thread-safety analysis cannot follow a set: users say shard.AssertHeld().
class ShardLocks {
 public:
  ShardLocks(Store& store, ShardSet shards) ABSL_NO_THREAD_SAFETY_ANALYSIS : store_(store), shards_(shards) {
    for (ShardSet rest = shards_; rest != 0; rest &= rest - 1) store_.shard(First(rest)).Lock();
  }
  ~ShardLocks() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    for (ShardSet rest = shards_; rest != 0; rest &= rest - 1) store_.shard(First(rest)).Unlock();
  }
  ShardLocks(const ShardLocks&) = delete;
  ShardLocks& operator=(const ShardLocks&) = delete;

  ShardSet shards() const { return shards_; }

  static std::uint32_t First(ShardSet shards) { return static_cast<std::uint32_t>(__builtin_ctzll(shards)); }

 private:
  Store& store_;
  const ShardSet shards_;
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_STORE_STORE_H_

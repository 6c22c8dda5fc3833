#include "server/store/store.h"

namespace ebbgate {

Store::Store(std::int64_t max_keys, std::int64_t max_bytes)
    : placement_key_(RandomPlacementKey()),
      budget_(max_keys, max_bytes),
      // A quarter more than may be in use, and a block for each shard: free entries of one shard do not serve another.
      pool_(max_keys + max_keys / 4 + kShards * EntryPool::kBlockEntries) {
  shards_.reserve(kShards);
  for (std::uint32_t i = 0; i < kShards; ++i) shards_.push_back(std::make_unique<Shard>(pool_, budget_));
}

}  // namespace ebbgate

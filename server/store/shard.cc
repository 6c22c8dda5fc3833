#include "server/store/shard.h"

#include <cstdlib>
#include <cstring>

namespace ebbgate {

void StoreBudget::TakeAnyway(std::int64_t bytes) { bytes_.fetch_add(bytes, std::memory_order_relaxed); }

bool StoreBudget::Take(std::int64_t keys, std::int64_t bytes) {
  const bool keys_fit = keys_.fetch_add(keys, std::memory_order_relaxed) + keys <= max_keys_;
  const bool bytes_fit = bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= max_bytes_;
  if (keys_fit && bytes_fit) return true;
  Return(keys, bytes);
  return false;
}

void StoreBudget::Return(std::int64_t keys, std::int64_t bytes) {
  keys_.fetch_sub(keys, std::memory_order_relaxed);
  bytes_.fetch_sub(bytes, std::memory_order_relaxed);
}

Tally& Tally::operator+=(const Tally& other) {
  allowed += other.allowed;
  denied += other.denied;
  failed += other.failed;
  peeked += other.peeked;
  admitted_cost += other.admitted_cost;
  refused_quota += other.refused_quota;
  refused_never += other.refused_never;
  shadow_refused += other.shadow_refused;
  shadow_refused_cost += other.shadow_refused_cost;
  refused_debt += other.refused_debt;
  refused_holds += other.refused_holds;
  holds_opened += other.holds_opened;
  holds_settled += other.holds_settled;
  holds_cancelled += other.holds_cancelled;
  holds_expired += other.holds_expired;
  given_back_cost += other.given_back_cost;
  overrun_cost += other.overrun_cost;
  uncovered_cost += other.uncovered_cost;
  keys += other.keys;
  return *this;
}

Shard::~Shard() {
  AssertHeld();  // Nobody else is left.
  std::uint64_t cursor = 0;
  const auto free_key = [](Entry& entry) {
    if (!entry.key_is_inline()) std::free(entry.heap_key());
  };
  Sweep(cursor, INT32_MAX, free_key);
}

Promises& Shard::AddPromises(Entry& entry) {
  std::unique_ptr<Promises>& promises = promises_[&entry];
  if (promises == nullptr) promises = std::make_unique<Promises>();
  entry.has_promises = true;
  return *promises;
}

void Shard::RemovePromises(Entry& entry) {
  promises_.erase(&entry);
  entry.has_promises = false;
}

Entry* Shard::TakeFree() {
  if (free_.empty()) {
    const std::optional<std::uint32_t> first = pool_.AllocateBlock();
    if (!first) return nullptr;
    blocks_.push_back(*first);
    for (std::uint32_t i = EntryPool::kBlockEntries; i-- > 0;) free_.push_back(*first + i);
  }
  return &pool_.At(free_.back());
}

Entry* Shard::Add(std::uint64_t hash, std::uint32_t limit_id, absl::string_view key) {
  const bool is_inline = key.size() <= kInlineKeyBytes;
  const std::size_t growth_bytes = index_.GrowthBytes();
  const auto bytes = static_cast<std::int64_t>(sizeof(Entry) + (is_inline ? 0 : key.size()) + growth_bytes);
  if (!budget_.Take(1, bytes)) return nullptr;
  Entry* const entry = TakeFree();
  char* const heap_key = entry == nullptr || is_inline ? nullptr : static_cast<char*>(std::malloc(key.size()));
  if (entry == nullptr || (!is_inline && heap_key == nullptr)) {
    budget_.Return(1, bytes);
    return nullptr;
  }
  const std::size_t index_bytes = index_.bytes();
  index_.Insert(TagOf(hash), free_.back());
  free_.pop_back();
  // The insert may have let go of an old array, too.
  budget_.Return(0, static_cast<std::int64_t>(index_bytes + growth_bytes) - static_cast<std::int64_t>(index_.bytes()));
  entry->limit_id = limit_id;
  entry->key_bytes = static_cast<std::uint16_t>(key.size());
  entry->in_use = true;
  entry->has_promises = false;
  if (!is_inline) std::memcpy(entry->key_storage, &heap_key, sizeof(heap_key));
  std::memcpy(is_inline ? entry->key_storage : heap_key, key.data(), key.size());
  ++tallies_[limit_id].keys;
  return entry;
}

void Shard::Remove(std::uint64_t hash, Entry& entry) {
  const auto is_this = [&](std::uint32_t index) { return &pool_.At(index) == &entry; };
  const std::uint32_t index = index_.Find(TagOf(hash), is_this);
  index_.Erase(TagOf(hash), index);
  const bool is_inline = entry.key_is_inline();
  const std::size_t key_bytes = is_inline ? 0 : entry.key_bytes;
  if (!is_inline) std::free(entry.heap_key());
  --tallies_[entry.limit_id].keys;
  if (entry.has_promises) RemovePromises(entry);
  entry.in_use = false;
  free_.push_back(index);
  budget_.Return(1, static_cast<std::int64_t>(sizeof(Entry) + key_bytes));
}

}  // namespace ebbgate

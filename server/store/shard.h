// One of the store's shards: a table of entries and what happened to them, behind one lock.
#ifndef EBBGATE_SERVER_STORE_SHARD_H_
#define EBBGATE_SERVER_STORE_SHARD_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "server/limiter/amount.h"
#include "server/limiter/promises.h"
#include "server/store/entry.h"
#include "server/store/entry_pool.h"
#include "server/store/mutex.h"
#include "server/store/tag_index.h"

namespace ebbgate {

// The bounds that all shards share. Thread-safe.
class StoreBudget {
 public:
  StoreBudget(std::int64_t max_keys, std::int64_t max_bytes) : max_keys_(max_keys), max_bytes_(max_bytes) {}

  // Takes room for more, or takes nothing and says no.
  bool Take(std::int64_t keys, std::int64_t bytes);
  void Return(std::int64_t keys, std::int64_t bytes);
  // For what was promised and must be kept.
  void TakeAnyway(std::int64_t bytes);

  bool NearlyFull(std::int64_t keys_wanted) const {
    return keys() + keys_wanted > max_keys_ ||
           bytes() + keys_wanted * static_cast<std::int64_t>(sizeof(Entry)) > max_bytes_;
  }
  std::int64_t keys() const { return keys_.load(std::memory_order_relaxed); }
  std::int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  const std::int64_t max_keys_;
  const std::int64_t max_bytes_;
  std::atomic<std::int64_t> keys_{0};
  std::atomic<std::int64_t> bytes_{0};
};

// What one limit did in one shard. Counts since the start, but for `keys`.
struct Tally {
  std::uint64_t allowed = 0;
  std::uint64_t denied = 0;
  std::uint64_t failed = 0;
  std::uint64_t peeked = 0;
  std::uint64_t admitted_cost = 0;  // whole tokens
  std::uint64_t refused_quota = 0;
  std::uint64_t refused_never = 0;
  std::uint64_t shadow_refused = 0;
  std::uint64_t shadow_refused_cost = 0;
  std::uint64_t refused_debt = 0;
  std::uint64_t refused_holds = 0;
  std::uint64_t holds_opened = 0;
  std::uint64_t holds_settled = 0;
  std::uint64_t holds_cancelled = 0;
  std::uint64_t holds_expired = 0;
  std::uint64_t given_back_cost = 0;
  std::uint64_t overrun_cost = 0;
  std::uint64_t uncovered_cost = 0;
  std::int64_t keys = 0;  // held now

  Tally& operator+=(const Tally& other);
};

// Everything but the constructor wants `mutex` held. Find costs two cache misses (one, if prefetched, is the index's,
// the other the entry's); nothing but Add allocates.
class alignas(64) ABSL_LOCKABLE Shard {
 public:
  Shard(EntryPool& pool, StoreBudget& budget) : pool_(pool), budget_(budget) {}
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.Lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.Unlock(); }
  // For code that holds several shards at once, which the analysis cannot follow.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK(this) {}

  // Two steps of fetching memory ahead: the index's cell, then the entry it names. That is nearly always the entry that
  // Find will want, and can be given to it as a guess; null if there is none.
  void PrefetchIndex(std::uint64_t hash) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) { index_.Prefetch(TagOf(hash)); }
  Entry* PrefetchEntry(std::uint64_t hash) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(this);

  // The entry of a key, or null. Entries stay where they are until removed. A guess, if any, is of this shard.
  Entry* Find(std::uint64_t hash, std::uint32_t limit_id, absl::string_view key, Entry* guess = nullptr) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(this);

  // A new entry for a key that has none, its state, policy and generation unset; null if the bounds are reached.
  Entry* Add(std::uint64_t hash, std::uint32_t limit_id, absl::string_view key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(this);

  // Pre: what the entry's state owned was freed. Its promises are forgotten.
  void Remove(std::uint64_t hash, Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(this);

  // What the entry's bucket has promised to reservations; null if nothing.
  Promises* FindPromises(const Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    return entry.has_promises ? promises_.find(&entry)->second.get() : nullptr;
  }
  Promises& AddPromises(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(this);
  void RemovePromises(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(this);

  // Calls visit(Entry&) for the next entries in use, looking at `steps` places, starting after those of the last call
  // with the same cursor. Visit may remove its entry. Returns false when the end was reached (the cursor starts anew).
  template <typename Visit>
  bool Sweep(std::uint64_t& cursor, int steps, const Visit& visit) ABSL_EXCLUSIVE_LOCKS_REQUIRED(this);

  // Grows the tallies to limits numbered below `n`.
  void ReserveTallies(std::size_t n) ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    if (tallies_.size() < n) tallies_.resize(n);
  }
  Tally& tally(std::uint32_t limit_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) { return tallies_[limit_id]; }

  // Of incremental expiry.
  std::uint64_t& expiry_cursor() ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) { return expiry_cursor_; }

 private:
  static std::uint32_t TagOf(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }
  Entry* TakeFree() ABSL_EXCLUSIVE_LOCKS_REQUIRED(this);

  Mutex mutex_;
  EntryPool& pool_;
  StoreBudget& budget_;

  TagIndex index_ ABSL_GUARDED_BY(this);
  std::vector<std::uint32_t> blocks_ ABSL_GUARDED_BY(this);  // first entries
  std::vector<std::uint32_t> free_ ABSL_GUARDED_BY(this);
  std::vector<Tally> tallies_ ABSL_GUARDED_BY(this);
  // Of few entries at a time; bounded by the engine, which counts holds.
  absl::flat_hash_map<const Entry*, std::unique_ptr<Promises>> promises_ ABSL_GUARDED_BY(this);
  std::uint64_t expiry_cursor_ ABSL_GUARDED_BY(this) = 0;
};

inline Entry* Shard::PrefetchEntry(std::uint64_t hash) const {
  const std::uint32_t index = index_.Guess(TagOf(hash));
  if (index == TagIndex::kNone) return nullptr;
  Entry* const entry = &pool_.At(index);
  __builtin_prefetch(entry, 1);
  return entry;
}

inline Entry* Shard::Find(std::uint64_t hash, std::uint32_t limit_id, absl::string_view key, Entry* guess) const {
  const auto holds = [&](const Entry& entry) { return entry.limit_id == limit_id && entry.HasKey(key); };
  // It may have been removed since.
  if (guess != nullptr && guess->in_use && holds(*guess)) return guess;
  const std::uint32_t found = index_.Find(TagOf(hash), [&](std::uint32_t index) { return holds(pool_.At(index)); });
  return found == TagIndex::kNone ? nullptr : &pool_.At(found);
}

template <typename Visit>
bool Shard::Sweep(std::uint64_t& cursor, int steps, const Visit& visit) {
  const std::uint64_t end = blocks_.size() * EntryPool::kBlockEntries;
  for (; steps > 0 && cursor < end; --steps, ++cursor) {
    Entry& entry = pool_.At(blocks_[cursor / EntryPool::kBlockEntries] +
                            static_cast<std::uint32_t>(cursor % EntryPool::kBlockEntries));
    if (entry.in_use) visit(entry);
  }
  if (cursor < end) return true;
  cursor = 0;
  return false;
}

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_STORE_SHARD_H_

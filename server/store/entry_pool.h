// Memory for entries, handed to shards in blocks. Grows in segments of 2 MiB, which fit one huge page; never moves an
// entry, never gives a segment back.
#ifndef EBBGATE_SERVER_STORE_ENTRY_POOL_H_
#define EBBGATE_SERVER_STORE_ENTRY_POOL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "server/store/entry.h"
#include "server/store/mutex.h"

namespace ebbgate {

// Thread-safe. At(i) costs two loads; AllocateBlock takes a mutex and, once in 512 blocks, maps a segment unless
// PrepareSpare was called since.
class EntryPool {
 public:
  static constexpr std::uint32_t kBlockEntries = 64;  // a page of 4 KiB

  explicit EntryPool(std::int64_t max_entries);
  ~EntryPool();
  EntryPool(const EntryPool&) = delete;
  EntryPool& operator=(const EntryPool&) = delete;

  Entry& At(std::uint32_t index) const {
    return segments_[index / kSegmentEntries].load(std::memory_order_relaxed)[index % kSegmentEntries];
  }

  // The index of the first of kBlockEntries entries, all zero; nothing if the bound or the memory is exhausted.
  std::optional<std::uint32_t> AllocateBlock();

  // Maps and touches the next segment ahead of its need, so that no call has to wait for it.
  void PrepareSpare();

  std::int64_t mapped_bytes() const { return mapped_bytes_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t kSegmentEntries = (2u << 20) / sizeof(Entry);

  Entry* MapSegment();

  const std::uint32_t max_segments_;
  const std::unique_ptr<std::atomic<Entry*>[]> segments_;
  std::atomic<std::int64_t> mapped_bytes_{0};

  Mutex mutex_;
  std::uint32_t used_segments_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint32_t used_entries_ ABSL_GUARDED_BY(mutex_) = kSegmentEntries;  // of the last segment
  Entry* spare_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_STORE_ENTRY_POOL_H_

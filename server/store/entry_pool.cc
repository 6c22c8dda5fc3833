#include "server/store/entry_pool.h"

#include <sys/mman.h>

#include <algorithm>

namespace ebbgate {
namespace {

constexpr std::size_t kSegmentBytes = 2u << 20;

}  // namespace

EntryPool::EntryPool(std::int64_t max_entries)
    : max_segments_(static_cast<std::uint32_t>(
          std::min<std::int64_t>(UINT32_MAX / kSegmentEntries, max_entries / kSegmentEntries + 1))),
      segments_(new std::atomic<Entry*>[max_segments_]()) {}

EntryPool::~EntryPool() {
  for (std::uint32_t i = 0; i < max_segments_; ++i) {
    if (Entry* segment = segments_[i].load(std::memory_order_relaxed)) munmap(segment, kSegmentBytes);
  }
  if (spare_ != nullptr) munmap(spare_, kSegmentBytes);
}

Entry* EntryPool::MapSegment() {
  // Twice the size, then trimmed to an aligned part: huge pages need the alignment.
  void* raw = mmap(nullptr, 2 * kSegmentBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(raw);
  const std::size_t skip = (kSegmentBytes - reinterpret_cast<std::uintptr_t>(begin) % kSegmentBytes) % kSegmentBytes;
  if (skip > 0) munmap(begin, skip);
  munmap(begin + skip + kSegmentBytes, kSegmentBytes - skip);
  madvise(begin + skip, kSegmentBytes, MADV_HUGEPAGE);  // A wish; without it only speed is lost.
  mapped_bytes_.fetch_add(kSegmentBytes, std::memory_order_relaxed);
  return reinterpret_cast<Entry*>(begin + skip);
}

std::optional<std::uint32_t> EntryPool::AllocateBlock() {
  MutexLock lock(mutex_);
  if (used_entries_ == kSegmentEntries) {
    if (used_segments_ == max_segments_) return std::nullopt;
    Entry* segment = spare_ != nullptr ? spare_ : MapSegment();
    spare_ = nullptr;
    if (segment == nullptr) return std::nullopt;
    segments_[used_segments_].store(segment, std::memory_order_relaxed);
    ++used_segments_;
    used_entries_ = 0;
  }
  const std::uint32_t first = (used_segments_ - 1) * kSegmentEntries + used_entries_;
  used_entries_ += kBlockEntries;
  return first;
}

void EntryPool::PrepareSpare() {
  {
    MutexLock lock(mutex_);
    const bool soon = used_segments_ > 0 && used_entries_ > kSegmentEntries / 2;
    if (!soon || spare_ != nullptr || used_segments_ == max_segments_) return;
  }
  Entry* segment = MapSegment();
  if (segment == nullptr) return;
  for (std::size_t i = 0; i < kSegmentEntries; i += kBlockEntries) segment[i].in_use = false;  // touch each page
  MutexLock lock(mutex_);
  if (spare_ == nullptr) {
    spare_ = segment;
  } else {
    munmap(segment, kSegmentBytes);
    mapped_bytes_.fetch_sub(kSegmentBytes, std::memory_order_relaxed);
  }
}

}  // namespace ebbgate

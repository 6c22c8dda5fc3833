// A hash index from 32-bit tags to entries, eight bytes a cell, that grows without a pause.
#ifndef EBBGATE_SERVER_STORE_TAG_INDEX_H_
#define EBBGATE_SERVER_STORE_TAG_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <memory>

namespace ebbgate {

// Open addressing with linear probing. A cell holds the tag (upper bits of the placement hash, which also say where the
// cell wants to be) and the number of an entry; whether the entry is the one sought is the caller's to say.
//
// Growing doubles the cells; the old ones are carried over a few at a time by later inserts, meanwhile both are looked
// in. So an insert moves at most kCellsPerStep cells, however many there are. A fresh array comes zeroed from the
// system page by page, which is no pause either.
//
// Not thread-safe. Find costs one cache miss, seldom two.
class TagIndex {
 public:
  TagIndex();

  // The entry with this tag for which `matches(entry)` holds, or kNone.
  template <typename Matches>
  std::uint32_t Find(std::uint32_t tag, const Matches& matches) const;

  // Pre: no equal key is in the index; GrowthBytes() were granted.
  void Insert(std::uint32_t tag, std::uint32_t entry);
  // Pre: the pair is in the index.
  void Erase(std::uint32_t tag, std::uint32_t entry);

  void Prefetch(std::uint32_t tag) const { __builtin_prefetch(&current_.cells[tag & current_.mask]); }
  // The first entry with this tag, without asking whether it is the one; kNone if there is none. For prefetching.
  std::uint32_t Guess(std::uint32_t tag) const {
    return FindIn(current_, tag, [](std::uint32_t) { return true; });
  }

  std::size_t size() const { return size_; }
  std::size_t bytes() const { return (Cells(current_) + Cells(old_)) * sizeof(std::uint64_t); }
  // What the next Insert will add to bytes().
  std::size_t GrowthBytes() const;

  static constexpr std::uint32_t kNone = UINT32_MAX;

 private:
  static constexpr std::size_t kFirstCells = 64;
  static constexpr std::size_t kCellsPerStep = 16;
  static constexpr std::uint64_t kEmpty = 0;
  // In old_ only: was here, look further.
  static constexpr std::uint64_t kGone = UINT32_MAX;

  struct Free {
    void operator()(std::uint64_t* cells) const;
  };
  struct Array {
    std::unique_ptr<std::uint64_t[], Free> cells;
    std::size_t mask = 0;
  };

  static std::size_t Cells(const Array& array) { return array.cells == nullptr ? 0 : array.mask + 1; }
  static Array Allocate(std::size_t cells);
  // The number is stored one higher, so that no cell in use is kEmpty (or kGone: entries end below 2^32 - 2).
  static std::uint64_t MakeCell(std::uint32_t tag, std::uint32_t entry) {
    return (static_cast<std::uint64_t>(tag) << 32) | (entry + 1);
  }
  static std::uint32_t TagOf(std::uint64_t cell) { return static_cast<std::uint32_t>(cell >> 32); }
  static std::uint32_t EntryOf(std::uint64_t cell) { return static_cast<std::uint32_t>(cell) - 1; }

  template <typename Matches>
  static std::uint32_t FindIn(const Array& array, std::uint32_t tag, const Matches& matches);
  static void Put(Array& array, std::uint64_t cell);
  bool NeedsToGrow() const { return (size_ + 1) * 4 > Cells(current_) * 3; }
  void Grow();
  void CarryOver(std::size_t cells);
  void CloseGap(std::size_t gap);

  Array current_;
  Array old_;
  std::size_t carried_ = 0;  // cells of old_ already empty
  std::size_t size_ = 0;
};

template <typename Matches>
std::uint32_t TagIndex::FindIn(const Array& array, std::uint32_t tag, const Matches& matches) {
  for (std::size_t at = tag & array.mask;; at = (at + 1) & array.mask) {
    const std::uint64_t cell = array.cells[at];
    if (cell == kEmpty) return kNone;
    if (cell != kGone && TagOf(cell) == tag && matches(EntryOf(cell))) return EntryOf(cell);
  }
}

template <typename Matches>
std::uint32_t TagIndex::Find(std::uint32_t tag, const Matches& matches) const {
  const std::uint32_t found = FindIn(current_, tag, matches);
  if (found != kNone || old_.cells == nullptr) return found;
  return FindIn(old_, tag, matches);
}

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_STORE_TAG_INDEX_H_

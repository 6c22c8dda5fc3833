#include "server/store/tag_index.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

namespace ebbgate {

void TagIndex::Free::operator()(std::uint64_t* cells) const { std::free(cells); }

TagIndex::Array TagIndex::Allocate(std::size_t cells) {
  auto* memory = static_cast<std::uint64_t*>(std::calloc(cells, sizeof(std::uint64_t)));
  if (memory == nullptr) throw std::bad_alloc();
  Array array;
  array.cells.reset(memory);
  array.mask = cells - 1;
  return array;
}

TagIndex::TagIndex() : current_(Allocate(kFirstCells)) {}

std::size_t TagIndex::GrowthBytes() const { return NeedsToGrow() ? 2 * Cells(current_) * sizeof(std::uint64_t) : 0; }

void TagIndex::Insert(std::uint32_t tag, std::uint32_t entry) {
  if (old_.cells != nullptr) CarryOver(kCellsPerStep);
  if (NeedsToGrow()) Grow();
  Put(current_, MakeCell(tag, entry));
  ++size_;
}

void TagIndex::Put(Array& array, std::uint64_t cell) {
  std::size_t at = TagOf(cell) & array.mask;
  while (array.cells[at] != kEmpty) at = (at + 1) & array.mask;
  array.cells[at] = cell;
}

void TagIndex::Grow() {
  // Between two doublings lie at least 3/8 of the cells' number of inserts, each of which carried 16 of them: the old
  // array has long been emptied. Finishing costs nothing then, and keeps the rule plain: at most two arrays.
  if (old_.cells != nullptr) CarryOver(Cells(old_));
  old_ = std::exchange(current_, Allocate(2 * Cells(current_)));
  carried_ = 0;
}

void TagIndex::CarryOver(std::size_t cells) {
  const std::size_t end = std::min(Cells(old_), carried_ + cells);
  for (; carried_ < end; ++carried_) {
    const std::uint64_t cell = old_.cells[carried_];
    if (cell == kEmpty || cell == kGone) continue;
    Put(current_, cell);
    old_.cells[carried_] = kGone;
  }
  if (carried_ == Cells(old_)) old_ = Array{};
}

void TagIndex::Erase(std::uint32_t tag, std::uint32_t entry) {
  const std::uint64_t sought = MakeCell(tag, entry);
  --size_;
  for (std::size_t at = tag & current_.mask; current_.cells[at] != kEmpty; at = (at + 1) & current_.mask) {
    if (current_.cells[at] == sought) return CloseGap(at);
  }
  for (std::size_t at = tag & old_.mask;; at = (at + 1) & old_.mask) {
    if (old_.cells[at] == sought) {
      old_.cells[at] = kGone;
      return;
    }
  }
}

// Moves later cells of the run back where that brings them nearer to where they want to be, so that no mark need stay.
void TagIndex::CloseGap(std::size_t gap) {
  std::uint64_t* const cells = current_.cells.get();
  const std::size_t mask = current_.mask;
  for (std::size_t at = (gap + 1) & mask; cells[at] != kEmpty; at = (at + 1) & mask) {
    const std::size_t wanted = TagOf(cells[at]) & mask;
    if (((at - wanted) & mask) >= ((at - gap) & mask)) {
      cells[gap] = cells[at];
      gap = at;
    }
  }
  cells[gap] = kEmpty;
}

}  // namespace ebbgate

#include "client/load/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ebbgate::client {

// Values below 2^kStepBits have a cell each. Above, a value's power of two picks the row and its next kStepBits bits
// the cell in it.
std::size_t Histogram::CellOf(std::uint64_t ns) {
  if (ns < kCells) return ns;
  const int shift = std::bit_width(ns) - 1 - kStepBits;
  return static_cast<std::size_t>(shift + 1) * kCells + ((ns >> shift) - kCells);
}

std::int64_t Histogram::TopOf(std::size_t cell) {
  if (cell < kCells) return static_cast<std::int64_t>(cell);
  const std::size_t shift = cell / kCells - 1;
  const std::uint64_t first = (cell % kCells + kCells) << shift;
  return static_cast<std::int64_t>(first + (std::uint64_t{1} << shift) - 1);
}

void Histogram::Add(std::int64_t ns) {
  ns = std::max<std::int64_t>(ns, 0);
  ++cells_[CellOf(static_cast<std::uint64_t>(ns))];
  ++count_;
  max_ns_ = std::max(max_ns_, ns);
}

void Histogram::Merge(const Histogram& other) {
  for (std::size_t i = 0; i < cells_.size(); ++i) cells_[i] += other.cells_[i];
  count_ += other.count_;
  max_ns_ = std::max(max_ns_, other.max_ns_);
}

std::int64_t Histogram::QuantileNs(double fraction) const {
  const auto wanted = std::max<std::int64_t>(1, std::llround(std::ceil(fraction * static_cast<double>(count_))));
  std::int64_t seen = 0;
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    seen += cells_[i];
    if (seen >= wanted) return std::min(TopOf(i), max_ns_);
  }
  return max_ns_;
}

}  // namespace ebbgate::client

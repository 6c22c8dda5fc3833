// Latencies in little memory: a count for each power of two of nanoseconds, divided into 64 steps (an error below 1.6
// %).
//
// Not thread-safe: one for each thread, merged when they have ended. 30 KiB; adding costs some 2 ns.
#ifndef EBBGATE_CLIENT_LOAD_HISTOGRAM_H_
#define EBBGATE_CLIENT_LOAD_HISTOGRAM_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace ebbgate::client {

class Histogram {
 public:
  // Below zero counts as zero.
  void Add(std::int64_t ns);
  void Merge(const Histogram& other);

  std::int64_t count() const { return count_; }
  std::int64_t max_ns() const { return max_ns_; }
  // The smallest value that at least `fraction` of all are not above, up to the error; 0 when empty.
  std::int64_t QuantileNs(double fraction) const;

 private:
  static constexpr int kStepBits = 6;
  static constexpr std::size_t kCells = std::size_t{1} << kStepBits;

  static std::size_t CellOf(std::uint64_t ns);
  // The largest value of a cell.
  static std::int64_t TopOf(std::size_t cell);

  std::array<std::int64_t, (64 - kStepBits + 1) * kCells> cells_{};
  std::int64_t count_ = 0;
  std::int64_t max_ns_ = 0;
};

}  // namespace ebbgate::client

#endif  // EBBGATE_CLIENT_LOAD_HISTOGRAM_H_

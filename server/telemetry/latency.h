// How long decisions take, counted where they are made and added up when somebody asks.
//
// Thread-safety: Record and Read from any thread. Cost: Record is some 2 ns (see stripes.h), Read some microseconds.
// Bounded: 24 buckets, 64 threads' worth of them (about 17 KiB).
#ifndef EBBGATE_SERVER_TELEMETRY_LATENCY_H_
#define EBBGATE_SERVER_TELEMETRY_LATENCY_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "server/telemetry/stripes.h"

namespace ebbgate {

class LatencyRecorder {
 public:
  // Upper bounds double from 125 ns to 1.048576 s; what is longer falls into no bucket but the last, unbounded one.
  static constexpr std::size_t kBuckets = 24;
  static constexpr std::int64_t kFirstBoundNs = 125;
  static constexpr std::int64_t BoundNs(std::size_t bucket) { return kFirstBoundNs << bucket; }

  // The bucket whose bound is the least that is >= `ns`; kBuckets if none is.
  static constexpr std::size_t BucketOf(std::int64_t ns) {
    if (ns <= kFirstBoundNs) return 0;
    const std::size_t bucket = std::bit_width(static_cast<std::uint64_t>(ns - 1) / kFirstBoundNs);
    return bucket < kBuckets ? bucket : kBuckets;
  }

  // `decisions` made together in `elapsed_ns`: each counts as the mean, so that the sum is time spent deciding. A
  // negative time counts as 0. Pre: decisions > 0.
  void Record(std::int64_t elapsed_ns, std::uint64_t decisions = 1) {
    if (elapsed_ns < 0) elapsed_ns = 0;
    const std::int64_t each_ns = decisions == 1 ? elapsed_ns : elapsed_ns / static_cast<std::int64_t>(decisions);
    const unsigned stripe = ThreadStripe();
    cells_.AddAt(stripe, BucketOf(each_ns), decisions);
    cells_.AddAt(stripe, kSumCell, static_cast<std::uint64_t>(elapsed_ns));
  }

  struct Snapshot {
    // Of each bucket by itself; the last one is without bound.
    std::array<std::uint64_t, kBuckets + 1> counts{};
    std::uint64_t sum_ns = 0;
  };
  Snapshot Read() const;

 private:
  static constexpr std::size_t kSumCell = kBuckets + 1;
  Striped<kBuckets + 2> cells_;
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_TELEMETRY_LATENCY_H_

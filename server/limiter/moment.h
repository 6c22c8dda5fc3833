// When a decision is made: a monotonic reading, and what the wall clock is taken to be beside it.
#ifndef EBBGATE_SERVER_LIMITER_MOMENT_H_
#define EBBGATE_SERVER_LIMITER_MOMENT_H_

#include <cstdint>
#include <limits>

#include "server/limiter/amount.h"

namespace ebbgate {

// How wall time follows from monotonic time. Plain values, made by AnchoredWallClock.
struct WallAnchor {
  // Added to a monotonic reading this gives nanoseconds since the epoch, as calendar windows see them.
  std::int64_t offset_ns = 0;
  // The same at the start of the process, and never changed: what sliding windows number themselves by.
  std::int64_t epoch_offset_ns = 0;
  // The last time the anchor followed a step back: when, and the wall time right after. No step: the least int64.
  std::int64_t stepped_back_at_ns = std::numeric_limits<std::int64_t>::min();
  std::int64_t stepped_back_to_wall_ns = 0;
};

struct Moment {
  // CLOCK_MONOTONIC, read under the lock that guards the bucket. A reading behind the bucket's last counts as its last.
  // Below 2^62 (146 years since boot), so that every time to full after it fits 64 bits.
  std::int64_t mono_ns = 0;
  WallAnchor wall;
};

// An absurd wall clock stops one short of the last instant: a window's end, which is not of the window, can then always
// lie beyond, and the window still limits.
constexpr std::int64_t WallAt(const WallAnchor& anchor, std::int64_t mono_ns) {
  const std::int64_t wall_ns = Saturate(static_cast<Int128>(mono_ns) + anchor.offset_ns);
  return wall_ns == kInt64Max ? kInt64Max - 1 : wall_ns;
}

// Where a process reads the time. One implementation reads the system's clock, another is moved by hand.
// Thread-safe; a read costs some 30 ns.
class TimeSource {
 public:
  virtual ~TimeSource() = default;
  virtual std::int64_t MonotonicNs() const = 0;
  virtual std::int64_t WallNs() const = 0;
};

// The process's real clocks.
const TimeSource& SystemTime();

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_LIMITER_MOMENT_H_

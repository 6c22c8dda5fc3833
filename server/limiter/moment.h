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
  std::int64_t mono_ns = 0;
  WallAnchor wall;
};

constexpr std::int64_t WallAt(const WallAnchor& anchor, std::int64_t mono_ns) {
  return Saturate(static_cast<Int128>(mono_ns) + anchor.offset_ns);
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

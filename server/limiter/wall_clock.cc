#include "server/limiter/wall_clock.h"

#include <time.h>

#include <cstdlib>
#include <limits>

namespace ebbgate {
namespace {

std::int64_t Read(clockid_t id) {
  timespec now;
  if (clock_gettime(id, &now) != 0) std::abort();  // These clocks exist on every Linux.
  return now.tv_sec * kNsPerSecond + now.tv_nsec;
}

class SystemTimeSource final : public TimeSource {
 public:
  std::int64_t MonotonicNs() const override { return Read(CLOCK_MONOTONIC); }
  std::int64_t WallNs() const override { return Read(CLOCK_REALTIME); }
};

bool Near(std::int64_t a, std::int64_t b) {
  const Int128 difference = static_cast<Int128>(a) - b;
  return difference <= kWallStepToleranceNs && difference >= -kWallStepToleranceNs;
}

}  // namespace

const TimeSource& SystemTime() {
  static const SystemTimeSource source;
  return source;
}

AnchoredWallClock::AnchoredWallClock(std::int64_t mono_ns, std::int64_t wall_ns, std::int64_t hold_ns)
    : hold_ns_(hold_ns),
      epoch_offset_ns_(wall_ns - mono_ns),
      offset_ns_(wall_ns - mono_ns),
      stepped_back_at_ns_(std::numeric_limits<std::int64_t>::min()) {}

void AnchoredWallClock::Observe(std::int64_t mono_ns, std::int64_t wall_ns) {
  const std::int64_t seen_offset_ns = Saturate(static_cast<Int128>(wall_ns) - mono_ns);
  if (Near(seen_offset_ns, offset_ns_.load(std::memory_order_relaxed))) {
    pending_ = false;
    return;
  }
  if (!pending_ || !Near(seen_offset_ns, pending_offset_ns_)) {
    pending_ = true;
    pending_offset_ns_ = seen_offset_ns;
    pending_since_ns_ = mono_ns;
  }
  if (mono_ns - pending_since_ns_ >= hold_ns_) {
    pending_ = false;
    Follow(mono_ns, pending_offset_ns_);
  }
}

void AnchoredWallClock::Follow(std::int64_t mono_ns, std::int64_t new_offset_ns) {
  const bool back = new_offset_ns < offset_ns_.load(std::memory_order_relaxed);
  const std::uint32_t version = version_.load(std::memory_order_relaxed);
  version_.store(version + 1, std::memory_order_relaxed);
  // Release on each field (and acquire in Anchor): whoever sees a new field sees the odd version too.
  offset_ns_.store(new_offset_ns, std::memory_order_release);
  if (back) {
    stepped_back_at_ns_.store(mono_ns, std::memory_order_release);
    stepped_back_to_wall_ns_.store(Saturate(static_cast<Int128>(mono_ns) + new_offset_ns), std::memory_order_release);
  }
  version_.store(version + 2, std::memory_order_release);
  (back ? steps_back_ : steps_forward_).fetch_add(1, std::memory_order_relaxed);
}

WallAnchor AnchoredWallClock::Anchor() const {
  WallAnchor anchor;
  anchor.epoch_offset_ns = epoch_offset_ns_;
  for (;;) {
    const std::uint32_t before = version_.load(std::memory_order_acquire);
    anchor.offset_ns = offset_ns_.load(std::memory_order_acquire);
    anchor.stepped_back_at_ns = stepped_back_at_ns_.load(std::memory_order_acquire);
    anchor.stepped_back_to_wall_ns = stepped_back_to_wall_ns_.load(std::memory_order_acquire);
    if ((before & 1) == 0 && version_.load(std::memory_order_relaxed) == before) return anchor;
  }
}

}  // namespace ebbgate

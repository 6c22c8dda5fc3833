// A clock moved by hand: for replays, the lab and tests.
#ifndef EBBGATE_SERVER_LIMITER_MANUAL_TIME_H_
#define EBBGATE_SERVER_LIMITER_MANUAL_TIME_H_

#include <atomic>
#include <cstdint>

#include "server/limiter/moment.h"

namespace ebbgate {

// Thread-safe. Both clocks stand still until set.
class ManualTime final : public TimeSource {
 public:
  explicit ManualTime(std::int64_t wall_ns = 0, std::int64_t mono_ns = 0) : mono_ns_(mono_ns), wall_ns_(wall_ns) {}

  std::int64_t MonotonicNs() const override { return mono_ns_.load(std::memory_order_relaxed); }
  std::int64_t WallNs() const override { return wall_ns_.load(std::memory_order_relaxed); }

  // Moves both clocks by the same amount.
  void Advance(std::int64_t ns) {
    mono_ns_.fetch_add(ns, std::memory_order_relaxed);
    wall_ns_.fetch_add(ns, std::memory_order_relaxed);
  }
  // Moves the monotonic clock to a reading, perhaps a smaller one, and the wall clock by as much.
  void MoveTo(std::int64_t mono_ns) { Advance(mono_ns - MonotonicNs()); }
  // Somebody sets the system's clock.
  void StepWall(std::int64_t ns) { wall_ns_.fetch_add(ns, std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> mono_ns_;
  std::atomic<std::int64_t> wall_ns_;
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_LIMITER_MANUAL_TIME_H_

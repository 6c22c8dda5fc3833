// The wall clock that calendar windows read: anchored to the monotonic clock, slow to believe a step.
#ifndef EBBGATE_SERVER_LIMITER_WALL_CLOCK_H_
#define EBBGATE_SERVER_LIMITER_WALL_CLOCK_H_

#include <atomic>
#include <cstdint>

#include "server/limiter/bounds.h"
#include "server/limiter/moment.h"

namespace ebbgate {

// **Calendar**: wall time runs at the pace of the monotonic clock from an anchor. When the system's wall clock has
// been seen to differ from that, by the same amount, for `hold_ns` on end, the anchor follows it and the step is
// counted; a difference that goes away before is forgotten. Differences within kWallStepToleranceNs are not steps.
//
// Observe is called by one thread, now and then (once a second is enough: it costs no more than its call). Anchor may
// be called by any thread, at any time; it is a handful of loads.
class AnchoredWallClock {
 public:
  AnchoredWallClock(std::int64_t mono_ns, std::int64_t wall_ns, std::int64_t hold_ns = kDefaultWallStepHoldNs);

  // What both clocks read at one moment (as nearly as possible).
  void Observe(std::int64_t mono_ns, std::int64_t wall_ns);

  WallAnchor Anchor() const;

  // Steps followed so far, by sign.
  std::int64_t steps_forward() const { return steps_forward_.load(std::memory_order_relaxed); }
  std::int64_t steps_back() const { return steps_back_.load(std::memory_order_relaxed); }

 private:
  void Follow(std::int64_t mono_ns, std::int64_t new_offset_ns);

  const std::int64_t hold_ns_;
  const std::int64_t epoch_offset_ns_;

  // A seqlock: odd while Follow writes. The fields are atomic so that a reader's overlapping loads are no data race.
  std::atomic<std::uint32_t> version_{0};
  std::atomic<std::int64_t> offset_ns_;
  std::atomic<std::int64_t> stepped_back_at_ns_;
  std::atomic<std::int64_t> stepped_back_to_wall_ns_{0};
  std::atomic<std::int64_t> steps_forward_{0};
  std::atomic<std::int64_t> steps_back_{0};

  // Of the observing thread: a step seen and not yet believed.
  bool pending_ = false;
  std::int64_t pending_offset_ns_ = 0;
  std::int64_t pending_since_ns_ = 0;
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_LIMITER_WALL_CLOCK_H_

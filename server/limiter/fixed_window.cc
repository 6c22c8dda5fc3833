#include "server/limiter/fixed_window.h"

#include <algorithm>

#include "server/limiter/calendar.h"

namespace ebbgate::fixed_window {
namespace {

void Label(const Window& window, std::int64_t wall_ns, FixedWindowState& state) {
  const WindowBounds bounds = WindowAt(window, wall_ns);
  state.start_ns = bounds.start_ns;
  state.end_ns = bounds.end_ns;
}

}  // namespace

void MakeFull(const Parameters& parameters, const Moment& moment, BucketState& state) {
  state.fixed_window.used = 0;
  Label(parameters.window, WallAt(moment.wall, state.last_ns), state.fixed_window);
}

// The step back is told by the anchor, not found by the first call after it: so the count is due to the same window
// whether or not anyone asked meanwhile, and an idle key is not shut out when its old window comes round again.
void FollowStepBack(const Parameters& parameters, const Moment& moment, BucketState& stored) {
  const WallAnchor& wall = moment.wall;
  const bool since = stored.last_ns < wall.stepped_back_at_ns && moment.mono_ns >= wall.stepped_back_at_ns;
  if (since && stored.fixed_window.start_ns > wall.stepped_back_to_wall_ns) {
    Label(parameters.window, wall.stepped_back_to_wall_ns, stored.fixed_window);
  }
}

void Advance(const Parameters& parameters, const Moment& moment, BucketState& state) {
  FollowStepBack(parameters, moment, state);
  state.last_ns = std::max(state.last_ns, moment.mono_ns);
  FixedWindowState& window = state.fixed_window;
  const std::int64_t wall_ns = WallAt(moment.wall, state.last_ns);
  if (wall_ns >= window.start_ns && wall_ns < window.end_ns) return;
  if (wall_ns >= window.end_ns) window.used = 0;
  Label(parameters.window, wall_ns, window);
}

}  // namespace ebbgate::fixed_window

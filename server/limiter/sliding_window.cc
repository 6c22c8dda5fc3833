#include "server/limiter/sliding_window.h"

#include <algorithm>

#include "server/limiter/calendar.h"

namespace ebbgate::sliding_window {
namespace {

std::int64_t EpochNs(const Moment& moment, std::int64_t mono_ns) {
  return Saturate(static_cast<Int128>(mono_ns) + moment.wall.epoch_offset_ns);
}

std::int64_t FloorQuotient(std::int64_t value, std::int64_t divisor) {
  return value / divisor - (value % divisor < 0 ? 1 : 0);
}

// Time since the current window began: 0 <= elapsed < window.
std::int64_t ElapsedNs(const Parameters& parameters, const Moment& moment, const BucketState& state) {
  const Int128 start = static_cast<Int128>(state.sliding_window.number) * parameters.window.length_ns;
  return static_cast<std::int64_t>(EpochNs(moment, state.last_ns) - start);
}

// The least elapsed time in a window at which `weight * (1 - elapsed/window) <= room`: window -
// floor(room*window/weight).
std::int64_t DecayedNs(std::int64_t window_ns, Microtokens weight, Microtokens room) {
  if (weight <= room) return 0;
  return window_ns - static_cast<std::int64_t>(FloorDiv(static_cast<Int128>(room) * window_ns, weight));
}

}  // namespace

void MakeFull(const Parameters& parameters, const Moment& moment, BucketState& state) {
  const std::int64_t now = EpochNs(moment, state.last_ns);
  state.sliding_window = {.current = 0, .previous = 0, .number = FloorQuotient(now, parameters.window.length_ns)};
}

void Advance(const Parameters& parameters, const Moment& moment, BucketState& state) {
  state.last_ns = std::max(state.last_ns, moment.mono_ns);
  SlidingWindowState& window = state.sliding_window;
  const std::int64_t number = FloorQuotient(EpochNs(moment, state.last_ns), parameters.window.length_ns);
  if (number == window.number) return;
  window.previous = number == window.number + 1 ? window.current : 0;
  window.current = 0;
  window.number = number;
}

Microtokens Available(const Parameters& parameters, const Moment& moment, const BucketState& state) {
  const SlidingWindowState& window = state.sliding_window;
  const std::int64_t remaining_ns = parameters.window.length_ns - ElapsedNs(parameters, moment, state);
  const Int128 weight = CeilDiv(static_cast<Int128>(window.previous) * remaining_ns, parameters.window.length_ns);
  return Saturate(static_cast<Int128>(parameters.capacity) - window.current - weight);
}

std::int64_t WaitNs(const Parameters& parameters, const Moment& moment, const BucketState& state, Microtokens amount) {
  const SlidingWindowState& window = state.sliding_window;
  const std::int64_t length_ns = parameters.window.length_ns;
  const std::int64_t elapsed_ns = ElapsedNs(parameters, moment, state);
  const Int128 room_now = static_cast<Int128>(parameters.capacity) - amount - window.current;
  if (room_now >= 0) {  // It will fit before this window ends, or at the latest when it does.
    const std::int64_t at = DecayedNs(length_ns, window.previous, static_cast<Microtokens>(room_now));
    return std::max<std::int64_t>(0, at - elapsed_ns);
  }
  // Only in the next window, where what is current now decays.
  return length_ns - elapsed_ns + DecayedNs(length_ns, window.current, parameters.capacity - amount);
}

std::int64_t UntilFullNs(const Parameters& parameters, const Moment& moment, const BucketState& state) {
  const std::int64_t rest_ns = parameters.window.length_ns - ElapsedNs(parameters, moment, state);
  if (state.sliding_window.current > 0) return Saturate(static_cast<Int128>(rest_ns) + parameters.window.length_ns);
  return state.sliding_window.previous > 0 ? rest_ns : 0;
}

void GiveBack(const Parameters& parameters, const Moment& moment, std::int64_t charged_at_ns, Microtokens amount,
              BucketState& state) {
  SlidingWindowState& window = state.sliding_window;
  const std::int64_t charged_in = FloorQuotient(EpochNs(moment, charged_at_ns), parameters.window.length_ns);
  if (charged_in == window.number) {
    window.current = std::max<Microtokens>(0, window.current - amount);
  } else if (charged_in == window.number - 1) {
    window.previous = std::max<Microtokens>(0, window.previous - amount);
  }
}

}  // namespace ebbgate::sliding_window

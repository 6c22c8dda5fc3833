#include "server/limiter/bucket.h"

#include <algorithm>

#include "server/limiter/exact_window.h"
#include "server/limiter/fixed_window.h"
#include "server/limiter/gcra.h"
#include "server/limiter/sliding_window.h"
#include "server/limiter/token_bucket.h"

namespace ebbgate {

BucketState FullBucket(const Parameters& parameters, const Moment& moment) {
  BucketState state{};
  state.last_ns = moment.mono_ns;
  switch (parameters.algorithm) {
    case Algorithm::kTokenBucket:
      token_bucket::MakeFull(parameters, state.token_bucket);
      break;
    case Algorithm::kGcra:
      gcra::MakeFull(state);
      break;
    case Algorithm::kFixedWindow:
      fixed_window::MakeFull(parameters, moment, state);
      break;
    case Algorithm::kSlidingWindow:
      sliding_window::MakeFull(parameters, moment, state);
      break;
    case Algorithm::kExactWindow:
      exact_window::MakeFull(state);
      break;
  }
  return state;
}

namespace other_algorithms {

void Advance(const Parameters& parameters, const Moment& moment, BucketState& state) {
  switch (parameters.algorithm) {
    case Algorithm::kTokenBucket:
      break;
    case Algorithm::kGcra:
      return gcra::Advance(moment, state);
    case Algorithm::kFixedWindow:
      return fixed_window::Advance(parameters, moment, state);
    case Algorithm::kSlidingWindow:
      return sliding_window::Advance(parameters, moment, state);
    case Algorithm::kExactWindow:
      return exact_window::Advance(parameters, moment, state);
  }
}

Microtokens Available(const Parameters& parameters, const Moment& moment, const BucketState& state) {
  switch (parameters.algorithm) {
    case Algorithm::kTokenBucket:
      break;
    case Algorithm::kGcra:
      return gcra::Available(parameters, state);
    case Algorithm::kFixedWindow:
      return fixed_window::Available(parameters, state);
    case Algorithm::kSlidingWindow:
      return sliding_window::Available(parameters, moment, state);
    case Algorithm::kExactWindow:
      return exact_window::Available(parameters, state);
  }
  return 0;
}

std::int64_t WaitNs(const Parameters& parameters, const Moment& moment, const BucketState& state, Microtokens cost) {
  switch (parameters.algorithm) {
    case Algorithm::kTokenBucket:
      break;
    case Algorithm::kGcra:
      return gcra::WaitNs(parameters, state, cost);
    case Algorithm::kFixedWindow:
      return cost <= fixed_window::Available(parameters, state) ? 0 : fixed_window::UntilTurnNs(moment, state);
    case Algorithm::kSlidingWindow:
      return sliding_window::WaitNs(parameters, moment, state, cost);
    case Algorithm::kExactWindow:
      return exact_window::WaitNs(parameters, state, cost);
  }
  return 0;
}

std::int64_t ResetNs(const Parameters& parameters, const Moment& moment, const BucketState& state) {
  switch (parameters.algorithm) {
    case Algorithm::kTokenBucket:
      break;
    case Algorithm::kGcra:
    case Algorithm::kExactWindow:
      return other_algorithms::WaitNs(parameters, moment, state, parameters.capacity);
    case Algorithm::kFixedWindow:
      return fixed_window::UntilTurnNs(moment, state);
    case Algorithm::kSlidingWindow:
      return sliding_window::UntilFullNs(parameters, moment, state);
  }
  return 0;
}

void Charge(const Parameters& parameters, BucketState& state, Microtokens cost) {
  switch (parameters.algorithm) {
    case Algorithm::kTokenBucket:
      break;
    case Algorithm::kGcra:
      return gcra::Charge(parameters, state, cost);
    case Algorithm::kFixedWindow:
      return fixed_window::Charge(state, cost);
    case Algorithm::kSlidingWindow:
      return sliding_window::Charge(state, cost);
    case Algorithm::kExactWindow:
      return exact_window::Charge(state, cost);
  }
}

}  // namespace other_algorithms

bool IsFull(const Parameters& parameters, const Moment& moment, const BucketState& state) {
  switch (parameters.algorithm) {
    case Algorithm::kFixedWindow:
      return state.fixed_window.used <= 0;
    default:
      return ResetNs(parameters, moment, state) == 0;
  }
}

bool MayForget(const Parameters& parameters, const Moment& moment, BucketState& stored) {
  if (parameters.algorithm == Algorithm::kFixedWindow) {
    fixed_window::FollowStepBack(parameters, moment, stored);
    if (!fixed_window::IsSurelyOver(moment, stored)) return false;
  }
  BucketState now = stored;
  Advance(parameters, moment, now);
  return IsFull(parameters, moment, now);
}

namespace {

// What every algorithm can say of itself: whole microtokens, and a fraction in units of 1/grain.
struct Level {
  Int128 whole;
  std::int64_t fraction;
  std::int64_t grain;
};

Level LevelOf(const Parameters& parameters, const Moment& moment, const BucketState& state) {
  const Microtokens whole = Available(parameters, moment, state);
  switch (parameters.algorithm) {
    case Algorithm::kTokenBucket:
      return {whole, state.token_bucket.remainder, parameters.refill.per_ns};
    case Algorithm::kGcra: {
      // (b - whole) * per - backlog: what rounding the level down left over.
      const Int128 backlog = std::max<Int128>(0, gcra::Backlog(parameters, state));
      const Int128 over = (static_cast<Int128>(parameters.capacity) - whole) * parameters.refill.per_ns - backlog;
      return {whole, static_cast<std::int64_t>(over), parameters.refill.per_ns};
    }
    case Algorithm::kFixedWindow:
      return {whole, 0, 1};
    case Algorithm::kSlidingWindow:
    case Algorithm::kExactWindow:
      // A window that holds more than its count, because the count was lowered, makes up for it when the window has
      // passed. That is no debt: paid back at another limit's rate it could shut a key out for years.
      return {std::max<Microtokens>(0, whole), 0, 1};
  }
  return {0, 0, 1};
}

// The level under new parameters, by the formula of **Settled change**.
Level Clamp(const Level& level, const Parameters& to) {
  const bool bucket = to.algorithm == Algorithm::kTokenBucket || to.algorithm == Algorithm::kGcra;
  const std::int64_t grain = bucket ? to.refill.per_ns : 1;
  if (level.whole >= to.capacity) return {to.capacity, 0, grain};
  const Int128 fraction = static_cast<Int128>(level.fraction) * grain / level.grain;
  return {level.whole, static_cast<std::int64_t>(fraction), grain};
}

// Makes a full bucket under `to` hold `level` instead.
void SetLevel(const Parameters& to, const Level& level, BucketState& state) {
  const Microtokens spent = Saturate(to.capacity - level.whole);
  switch (to.algorithm) {
    case Algorithm::kTokenBucket:
      state.token_bucket = {.level = static_cast<Microtokens>(level.whole), .remainder = level.fraction};
      break;
    case Algorithm::kGcra:
      gcra::SetBacklog(to, state, (to.capacity - level.whole) * to.refill.per_ns - level.fraction);
      break;
    default:
      if (spent > 0) Charge(to, state, spent);
  }
}

// A window that remembers its admissions keeps them; where that would leave more than was available before the change,
// the difference counts as admitted now. Less than nothing counts as nothing there: a count that was lowered below what
// the window holds makes no debt that would outlast the window when it is raised again.
bool KeepMemory(const Parameters& from, const Parameters& to, const Moment& moment, BucketState& state) {
  const bool same_windows = from.algorithm == to.algorithm && from.window == to.window;
  const bool remembers = to.algorithm == Algorithm::kSlidingWindow || to.algorithm == Algorithm::kExactWindow;
  if (!same_windows || !remembers) return false;
  const Microtokens before = std::max<Microtokens>(0, Available(from, moment, state));
  Advance(to, moment, state);
  const Microtokens after = Available(to, moment, state);
  if (after > before) Charge(to, state, after - before);
  return true;
}

}  // namespace

void Convert(const Parameters& from, const Parameters& to, const Moment& moment, BucketState& state) {
  if (from == to || KeepMemory(from, to, moment, state)) return;
  const Level level = Clamp(LevelOf(from, moment, state), to);
  Moment at = moment;
  at.mono_ns = state.last_ns;
  Free(from, state);
  state = FullBucket(to, at);
  SetLevel(to, level, state);
}

Int128 Missing(const Parameters& parameters, const BucketState& state) {
  switch (parameters.algorithm) {
    case Algorithm::kTokenBucket: {
      const Int128 whole = static_cast<Int128>(parameters.capacity) - state.token_bucket.level;
      return whole * parameters.refill.per_ns - state.token_bucket.remainder;
    }
    case Algorithm::kGcra:
      return std::max<Int128>(0, gcra::Backlog(parameters, state));
    case Algorithm::kFixedWindow:
      return std::max<Microtokens>(0, state.fixed_window.used);
    case Algorithm::kSlidingWindow:
    case Algorithm::kExactWindow:
      break;
  }
  return static_cast<Int128>(1) << 126;
}

Microtokens GiveBack(const Parameters& parameters, const Moment& moment, std::int64_t charged_at_ns, Int128 grains,
                     BucketState& state) {
  const Microtokens before = Available(parameters, moment, state);
  switch (parameters.algorithm) {
    case Algorithm::kTokenBucket:
      token_bucket::GiveBack(parameters, grains, state);
      break;
    case Algorithm::kGcra:
      gcra::SetBacklog(parameters, state, gcra::Backlog(parameters, state) - grains);
      break;
    case Algorithm::kFixedWindow:
      state.fixed_window.used -= static_cast<Microtokens>(grains);
      break;
    case Algorithm::kSlidingWindow:
      sliding_window::GiveBack(parameters, moment, charged_at_ns, static_cast<Microtokens>(grains), state);
      break;
    case Algorithm::kExactWindow:
      exact_window::GiveBack(charged_at_ns, static_cast<Microtokens>(grains), state);
      break;
  }
  return Available(parameters, moment, state) - before;
}

BucketState Clone(const Parameters& parameters, const BucketState& state) {
  BucketState copy = state;
  if (parameters.algorithm == Algorithm::kExactWindow) exact_window::Clone(copy);
  return copy;
}

std::size_t HeapBytes(const Parameters& parameters, const BucketState& state) {
  return parameters.algorithm == Algorithm::kExactWindow ? exact_window::HeapBytes(state) : 0;
}

std::size_t GrowthBytes(const Parameters& parameters, const BucketState& state) {
  return parameters.algorithm == Algorithm::kExactWindow ? exact_window::GrowthBytes(state) : 0;
}

void Free(const Parameters& parameters, BucketState& state) {
  if (parameters.algorithm == Algorithm::kExactWindow) exact_window::Free(state);
}

}  // namespace ebbgate

#include "server/drift/drift_window.h"

#include <algorithm>
#include <limits>

#include "server/limiter/bounds.h"

namespace ebbgate {
namespace {

constexpr std::int64_t kMicros = 1'000'000;

std::uint64_t Saturated(Uint128 value) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  return value > kMost ? kMost : static_cast<std::uint64_t>(value);
}

}  // namespace

absl::string_view Name(DriftState state) {
  static constexpr absl::string_view kNames[kDriftStates] = {"ok", "suspect", "drifting"};
  return kNames[static_cast<std::size_t>(state)];
}

void DriftWindow::Add(std::int64_t now_ns, const DriftCounters& counters) {
  if (!points_.empty()) {
    const Point& last = points_.back();
    now_ns = std::max(now_ns, last.at_ns);
    const bool fell = counters.admitted < last.counters.admitted || counters.given_back < last.counters.given_back;
    if (fell) points_.clear();
  }
  Age(now_ns);
  if (points_.empty()) reading_ = DriftReading();
  const std::int64_t previous_ns = points_.empty() ? now_ns : points_.back().at_ns;
  // A point close behind the one before the last takes the last one's place, so that they stay few.
  const std::size_t points = points_.size();
  if (points >= 2 && now_ns - points_[points - 2].at_ns < settings_.window_ns / kDriftPoints) points_.pop_back();
  points_.push_back({now_ns, counters});
  while (points_.front().at_ns <= now_ns - settings_.window_ns) points_.pop_front();
  Judge(previous_ns);
}

void DriftWindow::Age(std::int64_t now_ns) {
  if (points_.empty() || now_ns - points_.back().at_ns <= settings_.window_ns) return;
  points_.clear();
  reading_ = DriftReading();
}

bool DriftWindow::OutOfBounds() const {
  const Uint128 admitted = reading_.admitted;
  const Uint128 received = reading_.received;
  if (std::max(admitted, received) < static_cast<Uint128>(settings_.minimum)) return false;
  const Uint128 ratio = static_cast<Uint128>(settings_.ratio_micros);
  return received * kMicros > admitted * ratio || admitted * kMicros > received * ratio;
}

void DriftWindow::Judge(std::int64_t previous_ns) {
  const auto& [oldest_ns, oldest] = points_.front();
  const auto& [newest_ns, newest] = points_.back();
  const std::uint64_t admitted = newest.admitted - oldest.admitted;
  reading_.admitted = admitted - std::min(admitted, newest.given_back - oldest.given_back);
  reading_.received = Saturated(newest.received - oldest.received);
  reading_.span_ns = newest_ns - oldest_ns;
  reading_.state = DriftState::kOk;
  if (!OutOfBounds()) {
    reading_.out_since_ns.reset();
    return;
  }
  if (!reading_.out_since_ns) reading_.out_since_ns = previous_ns;
  if (reading_.span_ns < settings_.window_ns / kDriftYoungPart) return;
  const bool whole_window = newest_ns - *reading_.out_since_ns >= settings_.window_ns;
  reading_.state = whole_window ? DriftState::kDrifting : DriftState::kSuspect;
}

}  // namespace ebbgate

#include "server/limiter/exact_window.h"

#include <algorithm>
#include <utility>

namespace ebbgate {
namespace {

constexpr std::size_t kFirstEntries = 4;

}  // namespace

std::int64_t AdmissionLog::PlaceOf(std::int64_t at_ns) const {
  std::int64_t first = 0, last = size_;  // It lies in [first, last), if anywhere.
  while (first < last) {
    const std::int64_t middle = first + (last - first) / 2;
    if ((*this)[middle].at_ns == at_ns) return middle;
    if ((*this)[middle].at_ns < at_ns) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return -1;
}

Microtokens AdmissionLog::Reduce(std::int64_t i, Microtokens amount) {
  Admission& admission = ring_[(head_ + static_cast<std::size_t>(i)) % ring_.size()];
  const Microtokens taken = std::min(amount, admission.cost);
  admission.cost -= taken;
  return taken;
}

void AdmissionLog::DropFirst(std::int64_t n) {
  if (n == 0) return;
  head_ = (head_ + static_cast<std::size_t>(n)) % ring_.size();
  size_ -= n;
}

void AdmissionLog::Append(Admission admission) {
  if (size_ > 0) {
    Admission& newest = ring_[(head_ + static_cast<std::size_t>(size_ - 1)) % ring_.size()];
    if (newest.at_ns == admission.at_ns) {
      newest.cost += admission.cost;
      return;
    }
  }
  if (static_cast<std::size_t>(size_) == ring_.size()) {
    std::vector<Admission> larger;
    larger.reserve(std::max(kFirstEntries, 2 * ring_.size()));
    for (std::int64_t i = 0; i < size_; ++i) larger.push_back((*this)[i]);
    larger.resize(larger.capacity());
    ring_ = std::move(larger);
    head_ = 0;
  }
  ring_[(head_ + static_cast<std::size_t>(size_)) % ring_.size()] = admission;
  ++size_;
}

std::size_t AdmissionLog::HeapBytesAfterAppend(std::int64_t drop) const {
  const bool grows = static_cast<std::size_t>(size_ - drop) >= ring_.size();
  return HeapBytes() + (grows ? std::max(kFirstEntries, ring_.size()) * sizeof(Admission) : 0);
}

namespace exact_window {

void Advance(const Parameters& parameters, const Moment& moment, BucketState& state) {
  state.last_ns = std::max(state.last_ns, moment.mono_ns);
  ExactWindowState& window = state.exact_window;
  if (window.log == nullptr) return;
  const Int128 horizon = static_cast<Int128>(state.last_ns) - parameters.window.length_ns;
  const AdmissionLog& log = *window.log;
  while (window.first_live < log.size() && log[window.first_live].at_ns <= horizon) {
    window.used -= log[window.first_live].cost;
    ++window.first_live;
  }
}

std::int64_t WaitNs(const Parameters& parameters, const BucketState& state, Microtokens amount) {
  const ExactWindowState& window = state.exact_window;
  // In 128 bits: `used` may stand above a count that was lowered meanwhile.
  Int128 excess = static_cast<Int128>(window.used) + amount - parameters.capacity;
  std::int64_t wait_ns = 0;
  for (std::int64_t i = window.first_live; excess > 0 && window.log != nullptr && i < window.log->size(); ++i) {
    const AdmissionLog::Admission& oldest = (*window.log)[i];
    excess -= oldest.cost;
    wait_ns = Saturate(static_cast<Int128>(oldest.at_ns) + parameters.window.length_ns - state.last_ns);
  }
  return wait_ns;
}

void Charge(BucketState& state, Microtokens cost) {
  ExactWindowState& window = state.exact_window;
  if (window.log == nullptr) window.log = new AdmissionLog;
  window.log->DropFirst(window.first_live);
  window.first_live = 0;
  window.log->Append({.at_ns = state.last_ns, .cost = cost});
  window.used += cost;
}

void GiveBack(std::int64_t charged_at_ns, Microtokens amount, BucketState& state) {
  ExactWindowState& window = state.exact_window;
  if (window.log == nullptr) return;
  const std::int64_t place = window.log->PlaceOf(charged_at_ns);
  if (place >= window.first_live) window.used -= window.log->Reduce(place, amount);
}

void Clone(BucketState& state) {
  if (state.exact_window.log != nullptr) state.exact_window.log = new AdmissionLog(*state.exact_window.log);
}

std::size_t GrowthBytes(const BucketState& state) {
  const ExactWindowState& window = state.exact_window;
  if (window.log == nullptr) return sizeof(AdmissionLog) + kFirstEntries * sizeof(AdmissionLog::Admission);
  return window.log->HeapBytesAfterAppend(window.first_live) - window.log->HeapBytes();
}

std::size_t HeapBytes(const BucketState& state) {
  return state.exact_window.log == nullptr ? 0 : state.exact_window.log->HeapBytes();
}

void Free(BucketState& state) {
  delete state.exact_window.log;
  MakeFull(state);
}

}  // namespace exact_window
}  // namespace ebbgate

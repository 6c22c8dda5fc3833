// exact_window: remembers each admission; never more than `count` in any (t - window, t].
//
// Bound: count in any interval of at most the window's length, exactly; count * ceil(t / window) in any other. This is
// what b + r*t cannot say at full use, and it costs memory: 16 bytes for each admission still in the window, at most
// count of them (kMaxExactWindowCount). Admissions at the same nanosecond share an entry.
//
// Advance, Available and the waits are pure on a copy of the state; Charge and Reshape write to the log that the state
// owns, so they are for the state that is kept.
#ifndef EBBGATE_SERVER_LIMITER_EXACT_WINDOW_H_
#define EBBGATE_SERVER_LIMITER_EXACT_WINDOW_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/limiter/bucket_state.h"
#include "server/limiter/moment.h"
#include "server/limiter/parameters.h"

namespace ebbgate {

// A ring of admissions, oldest first. Grows by doubling; does not shrink. Guarded by whoever guards the bucket.
class AdmissionLog {
 public:
  struct Admission {
    std::int64_t at_ns;
    Microtokens cost;
  };

  std::int64_t size() const { return size_; }
  const Admission& operator[](std::int64_t i) const {
    return ring_[(head_ + static_cast<std::size_t>(i)) % ring_.size()];
  }
  // The place of the admission at that time; -1 if there is none.
  std::int64_t PlaceOf(std::int64_t at_ns) const;
  void DropFirst(std::int64_t n);
  // Takes up to `amount` off an admission. Returns how much.
  Microtokens Reduce(std::int64_t i, Microtokens amount);
  void Append(Admission admission);
  std::size_t HeapBytes() const { return sizeof(*this) + ring_.capacity() * sizeof(Admission); }
  // What HeapBytes may become when one more is appended after dropping `drop`.
  std::size_t HeapBytesAfterAppend(std::int64_t drop) const;

 private:
  std::vector<Admission> ring_;
  std::size_t head_ = 0;
  std::int64_t size_ = 0;
};

namespace exact_window {

inline void MakeFull(BucketState& state) { state.exact_window = {.log = nullptr, .used = 0, .first_live = 0}; }
void Advance(const Parameters& parameters, const Moment& moment, BucketState& state);

inline Microtokens Available(const Parameters& parameters, const BucketState& state) {
  return parameters.capacity - state.exact_window.used;
}

// From state.last_ns until `amount` fits: when enough of the oldest admissions have left. Pre: amount <= count.
std::int64_t WaitNs(const Parameters& parameters, const BucketState& state, Microtokens amount);

void Charge(BucketState& state, Microtokens cost);

// Takes `amount` off what was admitted at `charged_at_ns`, if that is still in the window.
void GiveBack(std::int64_t charged_at_ns, Microtokens amount, BucketState& state);

// Gives the state a log of its own.
void Clone(BucketState& state);

// Heap bytes that Charge may add; 0 almost always.
std::size_t GrowthBytes(const BucketState& state);
std::size_t HeapBytes(const BucketState& state);
void Free(BucketState& state);

}  // namespace exact_window
}  // namespace ebbgate

#endif  // EBBGATE_SERVER_LIMITER_EXACT_WINDOW_H_

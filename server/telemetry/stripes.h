// Counters that many threads add to without disturbing each other, in a nanosecond or two.
//
// A counter is spread over stripes. A thread takes one of 64 stripes for itself when it first counts, and gives it back
// when it ends; being its only writer it needs no locked instruction. Threads beyond those share one more stripe, with
// atomic additions: correct, and some nanoseconds slower. Reading adds up all stripes.
//
// The number of a thread's stripe is the only thing here that is global: it says where a thread writes, and holds no
// data. The same stripe number serves every Striped object of the process.
#ifndef EBBGATE_SERVER_TELEMETRY_STRIPES_H_
#define EBBGATE_SERVER_TELEMETRY_STRIPES_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace ebbgate {

// As many as fit one word of "taken" bits; a server has a thread or two for each core, and a few besides.
inline constexpr unsigned kOwnStripes = 64;
inline constexpr unsigned kSharedStripe = kOwnStripes;
inline constexpr unsigned kStripes = kOwnStripes + 1;

namespace stripes_internal {
// 0: none taken yet; else stripe + 1.
extern constinit thread_local unsigned stripe_plus_one;
unsigned TakeStripe();
}  // namespace stripes_internal

// The calling thread's stripe.
inline unsigned ThreadStripe() {
  const unsigned taken = stripes_internal::stripe_plus_one;
  if (taken != 0) [[likely]]
    return taken - 1;
  return stripes_internal::TakeStripe();
}

// `kCells` counters that start at 0 and wrap. Thread-safe: Add from any thread, Sum from any thread.
template <std::size_t kCells>
class Striped {
 public:
  void Add(std::size_t cell, std::uint64_t n) { AddAt(ThreadStripe(), cell, n); }

  // For several additions in a row: `stripe` is ThreadStripe().
  void AddAt(unsigned stripe, std::size_t cell, std::uint64_t n) {
    std::atomic<std::uint64_t>& counter = (*stripes_)[stripe].cells[cell];
    if (stripe != kSharedStripe) [[likely]] {
      counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    } else {
      counter.fetch_add(n, std::memory_order_relaxed);
    }
  }

  std::uint64_t Sum(std::size_t cell) const {
    std::uint64_t sum = 0;
    for (const Stripe& stripe : *stripes_) sum += stripe.cells[cell].load(std::memory_order_relaxed);
    return sum;
  }

 private:
  // Two cache lines, because processors fetch them in pairs.
  struct alignas(128) Stripe {
    std::array<std::atomic<std::uint64_t>, kCells> cells{};
  };

  std::unique_ptr<std::array<Stripe, kStripes>> stripes_ = std::make_unique<std::array<Stripe, kStripes>>();
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_TELEMETRY_STRIPES_H_

#include "server/telemetry/stripes.h"

#include <bit>

namespace ebbgate::stripes_internal {

constinit thread_local unsigned stripe_plus_one = 0;

namespace {

// A bit for each of the 64 own stripes that has a thread.
constinit std::atomic<std::uint64_t> taken_stripes{0};

// Gives a thread's stripe back when the thread ends. The release here and the acquire in TakeStripe make the last
// thread's counts visible to the next owner, which goes on from them.
struct GiveBack {
  unsigned stripe;

  ~GiveBack() {
    if (stripe == kSharedStripe) return;
    // A destructor that runs after this one may still count: it goes to the shared stripe.
    stripe_plus_one = kSharedStripe + 1;
    taken_stripes.fetch_and(~(std::uint64_t{1} << stripe), std::memory_order_release);
  }
};

unsigned FirstFree() {
  std::uint64_t taken = taken_stripes.load(std::memory_order_relaxed);
  while (~taken != 0) {
    const unsigned free = static_cast<unsigned>(std::countr_one(taken));
    if (taken_stripes.compare_exchange_weak(taken, taken | (std::uint64_t{1} << free), std::memory_order_acquire,
                                            std::memory_order_relaxed)) {
      return free;
    }
  }
  return kSharedStripe;
}

}  // namespace

unsigned TakeStripe() {
  thread_local GiveBack give_back{FirstFree()};
  stripe_plus_one = give_back.stripe + 1;
  return give_back.stripe;
}

}  // namespace ebbgate::stripes_internal

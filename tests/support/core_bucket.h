// One bucket of the decision core, used by the protocol that server/limiter/bucket.h prescribes: decide on a copy,
// store only what was admitted. For tests of the core, without store or engine.
#ifndef EBBGATE_TESTS_SUPPORT_CORE_BUCKET_H_
#define EBBGATE_TESTS_SUPPORT_CORE_BUCKET_H_

#include <cstdint>
#include <cstring>

#include "server/limiter/bucket.h"
#include "server/limiter/parameters.h"
#include "tests/support/durations.h"

namespace ebbgate::testing {

inline Parameters TokenBucket(std::int64_t capacity, std::int64_t tokens, std::int64_t per_ns) {
  Parameters parameters;
  parameters.capacity = FromTokens(capacity);
  parameters.refill = {.tokens = FromTokens(tokens), .per_ns = per_ns};
  return parameters;
}

inline Parameters Gcra(std::int64_t capacity, std::int64_t tokens, std::int64_t per_ns) {
  Parameters parameters = TokenBucket(capacity, tokens, per_ns);
  parameters.algorithm = Algorithm::kGcra;
  return parameters;
}

// fixed_window, sliding_window or exact_window over a length.
inline Parameters WindowOf(Algorithm algorithm, std::int64_t count, std::int64_t length_ns) {
  Parameters parameters;
  parameters.algorithm = algorithm;
  parameters.capacity = FromTokens(count);
  parameters.window.length_ns = length_ns;
  return parameters;
}

inline Parameters CalendarWindow(std::int64_t count, WindowUnit unit, absl::TimeZone zone) {
  Parameters parameters = WindowOf(Algorithm::kFixedWindow, count, 0);
  parameters.window.unit = unit;
  parameters.window.calendar = zone;
  return parameters;
}

// A moment by clocks that agree on `offset_ns` between them and were never set.
inline Moment At(std::int64_t mono_ns, std::int64_t offset_ns = 0) {
  Moment moment;
  moment.mono_ns = mono_ns;
  moment.wall.offset_ns = offset_ns;
  moment.wall.epoch_offset_ns = offset_ns;
  return moment;
}

struct Decision {
  bool allowed = false;
  bool never = false;         // the cost is above the capacity
  std::int64_t wait_ns = -1;  // of a refusal that is not `never`
  Microtokens available = 0;  // after the decision
  friend bool operator==(const Decision&, const Decision&) = default;
};

// Not copyable: an exact window owns its log. Single-threaded.
class CoreBucket {
 public:
  CoreBucket(const Parameters& parameters, const Moment& moment)
      : parameters_(parameters), state_(FullBucket(parameters, moment)) {}
  ~CoreBucket() { Free(parameters_, state_); }
  CoreBucket(const CoreBucket&) = delete;
  CoreBucket& operator=(const CoreBucket&) = delete;

  // In microtokens. A cost of 0 looks.
  Decision Ask(const Moment& moment, Microtokens cost) {
    BucketState now = state_;
    Advance(parameters_, moment, now);
    Decision decision;
    decision.available = Available(parameters_, moment, now);
    if (cost > parameters_.capacity) {
      decision.never = true;
    } else if (cost <= decision.available || cost == 0) {
      decision.allowed = true;
      if (cost > 0) {
        Charge(parameters_, now, cost);
        state_ = now;
        decision.available = Available(parameters_, moment, state_);
      }
    } else {
      decision.wait_ns = WaitNs(parameters_, moment, now, cost);
    }
    return decision;
  }

  // In whole tokens.
  Decision AskTokens(const Moment& moment, std::int64_t tokens) { return Ask(moment, FromTokens(tokens)); }

  // How many of `times` calls of one token each pass at this moment.
  int Admitted(const Moment& moment, int times) {
    int admitted = 0;
    for (int i = 0; i < times; ++i) admitted += AskTokens(moment, 1).allowed ? 1 : 0;
    return admitted;
  }

  // Stores the state as of the moment, which nothing may notice.
  void Settle(const Moment& moment) { Advance(parameters_, moment, state_); }

  void Change(const Parameters& to, const Moment& moment) {
    if (to == parameters_) return;
    Advance(parameters_, moment, state_);
    Convert(parameters_, to, moment, state_);
    parameters_ = to;
  }

  BucketState At(const Moment& moment) const {
    BucketState now = state_;
    Advance(parameters_, moment, now);
    return now;
  }
  Microtokens AvailableAt(const Moment& moment) const { return Available(parameters_, moment, At(moment)); }
  std::int64_t ResetAt(const Moment& moment) const { return ResetNs(parameters_, moment, At(moment)); }
  bool FullAt(const Moment& moment) const { return IsFull(parameters_, moment, At(moment)); }

  const Parameters& parameters() const { return parameters_; }
  const BucketState& state() const { return state_; }
  BucketState& mutable_state() { return state_; }

 private:
  Parameters parameters_;
  BucketState state_;
};

inline bool SameBytes(const BucketState& a, const BucketState& b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

}  // namespace ebbgate::testing

#endif  // EBBGATE_TESTS_SUPPORT_CORE_BUCKET_H_

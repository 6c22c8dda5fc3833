// The state of one bucket: 32 plain bytes that a table can hold by the million, in one cache line with their key.
#ifndef EBBGATE_SERVER_LIMITER_BUCKET_STATE_H_
#define EBBGATE_SERVER_LIMITER_BUCKET_STATE_H_

#include <cstdint>
#include <type_traits>

#include "server/limiter/amount.h"

namespace ebbgate {

class AdmissionLog;

struct TokenBucketState {
  Microtokens level;       // <= capacity; below 0 is debt
  std::int64_t remainder;  // fraction of a microtoken, in units of 1/per_ns: 0 <= remainder < per_ns
};

struct GcraState {
  std::int64_t arrival_ns;    // theoretical arrival time, monotonic, rounded down
  std::int64_t arrival_part;  // its fraction of a nanosecond, in units of 1/refill.tokens: 0 <= part < refill.tokens
};

struct FixedWindowState {
  Microtokens used;
  std::int64_t start_ns;  // bounds of the window that `used` belongs to, on the wall clock
  std::int64_t end_ns;
};

struct SlidingWindowState {
  Microtokens current;
  Microtokens previous;
  std::int64_t number;  // of the current window, from the epoch
};

struct ExactWindowState {
  AdmissionLog* log;        // owned; null while nothing was admitted
  Microtokens used;         // sum of the log's entries from `first_live` on
  std::int64_t first_live;  // entries before it have left the window
};

// Which member is in use follows from the bucket's parameters. `last_ns` is the monotonic time up to which the state
// speaks, and so of the last admitted charge.
struct BucketState {
  std::int64_t last_ns;
  union {
    TokenBucketState token_bucket;
    GcraState gcra;
    FixedWindowState fixed_window;
    SlidingWindowState sliding_window;
    ExactWindowState exact_window;
  };
};
static_assert(sizeof(BucketState) == 32 && std::is_trivially_copyable_v<BucketState>);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_LIMITER_BUCKET_STATE_H_

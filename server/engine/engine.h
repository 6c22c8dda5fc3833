// The door of the engine: one decision from start to end, over all the keys of this process.
//
//   Engine engine(options, SystemTime());
//   engine.InstallLimits(limits);
//   CallAnswer answer;
//   engine.Decide({.charges = charges}, answer);
//
// Thread-safety: everything may be called from any thread at any time. A call takes the locks of the shards its charges
// live in, in ascending order, reads the monotonic clock once under them, decides, charges all or nothing, and leaves;
// no I/O, no logging and, for keys already known, no allocation happens under them.
#ifndef EBBGATE_SERVER_ENGINE_ENGINE_H_
#define EBBGATE_SERVER_ENGINE_ENGINE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/engine/call.h"
#include "server/limiter/bounds.h"
#include "server/limiter/moment.h"
#include "server/limiter/parameters.h"

namespace ebbgate {

// What happens to a call when no memory is left for its key and nothing can be forgotten. Both are counted.
enum class WhenFull : std::uint8_t {
  kDeny,   // the call fails with STORE_FULL (UNAVAILABLE): no decision could be made
  kAllow,  // the charge is admitted without an account
};

// What happens to a charge on a limit that is not configured. All are counted.
enum class UnknownLimit : std::uint8_t { kReject, kAllow, kDeny };

struct EngineOptions {
  std::int64_t max_keys = kDefaultMaxKeys;
  // Of entries, long keys, indexes and admission logs together.
  std::int64_t max_store_bytes = kDefaultMaxStoreBytes;
  WhenFull when_full = WhenFull::kDeny;
  UnknownLimit unknown_limit = UnknownLimit::kReject;
  std::int64_t wall_step_hold_ns = kDefaultWallStepHoldNs;
  std::int64_t dedupe_window_ns = kDefaultDedupeWindowNs;
  std::int64_t max_request_ids = kDefaultMaxRequestIds;
  std::int64_t max_holds = kDefaultMaxHolds;
};

// Counters since the start. **Counted**: requests = allowed + denied + failed for each limit, and admitted_cost is the
// cost of all that was allowed and charged.
struct LimitCounters {
  std::string limit;
  std::uint64_t allowed = 0;  // charges of calls that were admitted (in shadow mode: also those it would have refused)
  std::uint64_t denied = 0;   // charges of calls that were refused, whichever charge was the cause
  std::uint64_t failed = 0;   // charges of calls that ended in an error
  std::uint64_t peeked = 0;   // looks: not requests
  std::uint64_t admitted_cost = 0;  // whole tokens charged
  std::uint64_t refused_quota = 0;  // where this limit was a cause, by reason
  std::uint64_t refused_never = 0;
  std::uint64_t shadow_refused = 0;       // in shadow mode: would have refused
  std::uint64_t shadow_refused_cost = 0;  // whole tokens admitted but not charged for that reason
  // Of holds, one for each bucket of a reservation. A reservation counts in `allowed` and `admitted_cost` when it is
  // granted; what was spent in the end is admitted_cost - given_back_cost + overrun_cost + uncovered_cost.
  std::uint64_t refused_debt = 0;
  std::uint64_t refused_holds = 0;
  std::uint64_t holds_open = 0;  // now
  std::uint64_t holds_settled = 0;
  std::uint64_t holds_cancelled = 0;
  std::uint64_t holds_expired = 0;
  std::uint64_t given_back_cost = 0;  // whole tokens reserved and not spent
  std::uint64_t overrun_cost = 0;     // whole tokens spent beyond what was reserved, and charged
  std::uint64_t uncovered_cost = 0;   // whole tokens spent beyond what may be owed: not charged
};

struct EngineCounters {
  std::vector<LimitCounters> limits;  // in the order of the limits in force, then limits that were removed
  std::uint64_t unknown_limit = 0;    // charges naming no configured limit
  std::uint64_t invalid_calls = 0;    // calls with INVALID_ARGUMENT
  std::uint64_t replayed_calls = 0;
  std::uint64_t request_ids = 0;  // remembered now
  std::uint64_t request_ids_refused = 0;
  std::uint64_t request_id_bytes = 0;  // held now
  std::uint64_t holds = 0;             // charges of open reservations
  std::uint64_t holds_refused = 0;     // reservations refused because there were too many
  std::uint64_t keys = 0;              // held now
  std::uint64_t store_bytes = 0;       // held now
  std::uint64_t keys_expired = 0;      // forgotten because full
  std::uint64_t keys_reset = 0;
  std::uint64_t keys_given_up = 0;  // forgotten although not full: of limits removed long ago, too many to keep
  std::uint64_t store_full_denied = 0;
  std::uint64_t store_full_allowed = 0;
  std::uint64_t clock_regressions = 0;  // monotonic readings behind a bucket's last
  std::uint64_t wall_steps_forward = 0;
  std::uint64_t wall_steps_back = 0;
  std::uint64_t generation = 0;
  std::uint64_t limit_changes = 0;  // InstallLimits that changed something
};

struct Inspection {
  bool known = false;
  Microtokens level = 0;
  std::int64_t capacity = 0;   // whole tokens
  std::int64_t remaining = 0;  // whole tokens: the largest cost that would be admitted now
  std::int64_t reset_after_ns = 0;
  std::int64_t last_change_age_ns = kNoWait;
  std::string last_change_label;  // "2026-11-01 01:47 EST"
  std::string parameters;
  std::string override_pattern;
  std::uint32_t slot = 0;
  struct Hold {
    std::int64_t cost = 0;  // whole tokens
    std::int64_t act_after_ns = 0;
    std::int64_t expires_after_ns = 0;
  };
  Microtokens debt = 0;  // what it lacks for what it has promised, and for overruns
  std::size_t open_holds = 0;
  std::vector<Hold> holds;      // the first kMaxHoldsShown of them to expire
  std::size_t request_ids = 0;  // remembered, that charged this bucket
};

struct LimitsInForce {
  std::uint64_t generation = 0;
  std::int64_t installed_at_wall_ns = 0;
  std::shared_ptr<const std::vector<Limit>> limits;
};

class Engine {
 public:
  Engine(const EngineOptions& options, const TimeSource& time);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Puts limits in force (**Settled change**), in one instant for all keys. Pre: each passed Validate, names differ.
  // Returns whether anything differs from what was in force. Then brings every key up to date, a few under a lock at a
  // time; returns when done. One caller at a time, others wait.
  bool InstallLimits(std::vector<Limit> limits);
  LimitsInForce limits() const;

  // Decides one call; the answer is overwritten. About 100 ns for one charge.
  void Decide(const CallRequest& call, CallAnswer& answer);

  // Decides calls as if one after the other, one lock a shard. Pre: answers.size() == calls.size().
  void DecideBatch(absl::Span<const CallRequest> calls, absl::Span<CallAnswer> answers);

  // Takes tokens now or from the future, at the earliest moment at which all charges fit and no promise made before is
  // broken. Some microseconds; where promises wait, a walk over those of the keys charged.
  void Reserve(const ReserveRequest& request, ReserveAnswer& answer);
  // Ends a hold with what was spent (one amount for each charge, whole tokens), or with nothing. Repeatable.
  void Settle(absl::string_view reservation_id, absl::Span<const std::int64_t> actual, SettleAnswer& answer);
  void Cancel(absl::string_view reservation_id, SettleAnswer& answer);

  // NOT_FOUND for an unknown limit, INVALID_ARGUMENT for a bad key.
  absl::StatusOr<Inspection> Inspect(absl::string_view limit, absl::string_view key) const;
  // Makes the bucket full. Returns whether there was state to forget.
  absl::StatusOr<bool> Reset(absl::string_view limit, absl::string_view key);

  // To be called now and then (ten times a second): watches the wall clock, forgets full buckets and old request ids.
  // Looks at a bounded number of entries.
  void Maintain();

  // Adds up the shards' counters under their locks, one after the other.
  EngineCounters Counters() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_ENGINE_ENGINE_H_

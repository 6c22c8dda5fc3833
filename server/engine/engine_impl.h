// What stands behind Engine's door; for the files of this folder only.
//
// engine.cc holds the limits in force, the looks from outside and the upkeep; resolving.cc checks calls and finds their
// limits and places; deciding.cc takes the locks and decides; reserving.cc keeps reservations.
#ifndef EBBGATE_SERVER_ENGINE_ENGINE_IMPL_H_
#define EBBGATE_SERVER_ENGINE_ENGINE_IMPL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/engine/decision.h"
#include "server/engine/engine.h"
#include "server/engine/limit_table.h"
#include "server/engine/request_ids.h"
#include "server/engine/reservations.h"
#include "server/limiter/wall_clock.h"
#include "server/store/mutex.h"
#include "server/store/store.h"

namespace ebbgate {

// One call of a batch, ready for its shards.
struct PreparedCall {
  std::uint32_t index = 0;  // in the batch
  std::uint32_t shard = 0;  // of the only charge, for calls that are grouped
  std::uint64_t generation = 0;
  std::uint32_t first_charge = 0;
  std::uint32_t charges = 0;
};

// Reused by a thread from call to call, so that deciding allocates nothing.
struct EngineScratch {
  std::vector<ResolvedCharge> charges;
  std::vector<PreparedCall> calls;
  std::vector<PreparedCall> sorted;
  // The limit found last, and in which table: the next charge mostly names the same one.
  std::uint64_t engine = 0;
  std::uint64_t generation = 0;
  const CompiledLimit* limit = nullptr;

  static EngineScratch& OfThread() {
    thread_local EngineScratch scratch;
    return scratch;
  }
};

std::shared_ptr<const CallError> MakeCallError(ErrorReason reason, std::string field, std::string message);

class Engine::Impl {
 public:
  Impl(const EngineOptions& options, const TimeSource& time)
      : options_(options),
        time_(time),
        number_(NextNumber()),
        wall_clock_(time.MonotonicNs(), time.WallNs(), options.wall_step_hold_ns),
        store_(options.max_keys, options.max_store_bytes),
        request_ids_(options.max_request_ids, options.dedupe_window_ns),
        reservations_(options.max_holds, options.dedupe_window_ns) {}

  ~Impl() { FreeAllState(); }

  bool InstallLimits(std::vector<Limit> limits);
  LimitsInForce limits() const;
  void Decide(const CallRequest& call, CallAnswer& answer);
  void DecideBatch(absl::Span<const CallRequest> calls, absl::Span<CallAnswer> answers);
  void Reserve(const ReserveRequest& request, ReserveAnswer& answer);
  // Pre: `state` is kSettled, or kCancelled and `actual` empty.
  void End(absl::string_view id, HoldState state, absl::Span<const std::int64_t> actual, SettleAnswer& answer);
  absl::StatusOr<Inspection> Inspect(absl::string_view limit, absl::string_view key);
  absl::StatusOr<bool> Reset(absl::string_view limit, absl::string_view key);
  void Maintain();
  EngineCounters Counters();

 private:
  static std::uint64_t NextNumber();
  const LimitTable& Table();
  Moment Now() const { return {.mono_ns = time_.MonotonicNs(), .wall = wall_clock_.Anchor()}; }

  // Checks a call and finds its limits; appends its charges. An error goes to the answer, and is counted.
  bool Resolve(const LimitTable& table, const CallRequest& call, CallAnswer& answer,
               std::vector<ResolvedCharge>& charges);
  const CompiledLimit* FindLimit(const LimitTable& table, absl::string_view name) const;
  static void Place(absl::string_view key, ResolvedCharge& resolved);
  bool ResolveCharge(const LimitTable& table, const ChargeRequest& charge, std::size_t i, ResolvedCharge& resolved,
                     CallAnswer& answer);
  void CountFailed(const LimitTable& table, const CallRequest& call);
  bool CountOneFailed(const LimitTable& table, absl::string_view name);

  void DecideNow(const CallRequest& call, CallAnswer& answer);
  template <typename OnLedger>
  bool DecideOnLedger(const CallRequest& call, CallAnswer& answer, const OnLedger& decide);
  void DecideOnce(const CallRequest& call, CallKind kind, CallAnswer& answer, Grant* grant,
                  const std::function<void()>& decide);
  void DecideRun(absl::Span<const CallRequest> calls, absl::Span<CallAnswer> answers);
  void DecideChunk(absl::Span<PreparedCall> chunk, absl::Span<const CallRequest> calls, absl::Span<CallAnswer> answers);
  void ExpireAfter(Ledger& ledger, ShardSet shards, std::int64_t keys_before);
  void MakeRoomBefore(Ledger& ledger, ShardSet shards, std::size_t calls);

  void ReserveNow(const ReserveRequest& request, CallAnswer& answer, Grant& grant);
  Reservation MakeReservation(const CallRequest& call, const ReserveTerms& terms, const Reserved& reserved) const;
  bool EndOpen(Reservation& reservation, HoldState state, absl::Span<const std::int64_t> actual);
  bool EndInBuckets(Reservation& reservation, HoldState state);
  static void CountEnd(Reservation& reservation, const SettledCharge& of, const HoldEnd& end, HoldState state,
                       Tally& tally);

  absl::StatusOr<Inspection> InspectBucket(absl::string_view limit, absl::string_view key);
  void InspectHolds(const Promises& promises, const Moment& moment, Inspection& inspection) const;
  absl::StatusOr<ResolvedCharge> Locate(const LimitTable& table, absl::string_view limit, absl::string_view key);
  void SettleAll(const LimitTable& table);
  bool SumTallies(const LimitTable& table, std::vector<Tally>& sums);
  void FreeAllState();

  const EngineOptions options_;
  const TimeSource& time_;
  const std::uint64_t number_;  // tells engines apart in the threads' caches
  AnchoredWallClock wall_clock_;
  Store store_;
  StoreEvents events_;
  RequestIds request_ids_;
  Reservations reservations_;
  std::atomic<std::uint64_t> next_hold_{1};
  std::atomic<std::uint64_t> unknown_limit_{0};
  std::atomic<std::uint64_t> invalid_calls_{0};
  std::atomic<std::uint64_t> limit_changes_{0};

  Mutex maintain_mutex_;
  std::uint32_t maintain_shard_ ABSL_GUARDED_BY(maintain_mutex_) = 0;

  Mutex install_mutex_;
  mutable Mutex table_mutex_;
  std::shared_ptr<const LimitTable> table_ ABSL_GUARDED_BY(table_mutex_) = std::make_shared<LimitTable>();
  // Of table_. Written with all shards locked: under any shard's lock it does not change.
  std::atomic<std::uint64_t> generation_{0};
};

inline void Engine::Impl::Place(absl::string_view key, ResolvedCharge& resolved) {
  resolved.key = key;
  resolved.shard = ShardOfSlot(SlotOf(resolved.limit->ownership_seed, key));
  resolved.hash = PlacementHash(resolved.limit->placement_key, key);
}

// Resolves a call, locks its shards, and has `decide(Ledger&, charges)` decide it, which is as Ledger::Decide. False if
// the call ends in an error, which is then in the answer and counted.
template <typename OnLedger>
bool Engine::Impl::DecideOnLedger(const CallRequest& call, CallAnswer& answer, const OnLedger& decide) {
  std::vector<ResolvedCharge>& charges = EngineScratch::OfThread().charges;
  for (;;) {
    const LimitTable& table = Table();
    charges.clear();
    if (!Resolve(table, call, answer, charges)) return false;
    ShardSet shards = 0;
    for (const ResolvedCharge& charge : charges) {
      if (charge.limit != nullptr) shards |= OneShard(charge.shard);
    }
    ShardLocks locks(store_, shards);
    if (shards != 0 && generation_.load(std::memory_order_relaxed) != table.generation()) continue;
    const Moment moment = Now();
    Ledger ledger(store_, table, options_, moment, events_);
    const std::int64_t keys_before = store_.budget().keys();
    MakeRoomBefore(ledger, shards, charges.size());
    const bool decided = decide(ledger, absl::MakeConstSpan(charges));
    ExpireAfter(ledger, shards, keys_before);
    if (decided) return true;
    break;
  }
  answer.error = MakeCallError(ErrorReason::kStoreFull, "", "no memory is left for another key; ask later");
  CountFailed(Table(), call);
  return false;
}

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_ENGINE_ENGINE_IMPL_H_

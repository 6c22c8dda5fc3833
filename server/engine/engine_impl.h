// What stands behind Engine's door; for the files of this folder only.
//
// engine.cc holds the limits in force, the looks from outside and the upkeep; resolving.cc checks calls and finds their
// limits and places; deciding.cc takes the locks and decides.
#ifndef EBBGATE_SERVER_ENGINE_ENGINE_IMPL_H_
#define EBBGATE_SERVER_ENGINE_ENGINE_IMPL_H_

#include <atomic>
#include <cstdint>
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

  static EngineScratch& OfThread();
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
        request_ids_(options.max_request_ids, options.dedupe_window_ns) {}

  ~Impl() { FreeAllState(); }

  bool InstallLimits(std::vector<Limit> limits);
  LimitsInForce limits() const;
  void Decide(const CallRequest& call, CallAnswer& answer);
  void DecideBatch(absl::Span<const CallRequest> calls, absl::Span<CallAnswer> answers);
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
  void DecideOnLedger(Ledger& ledger, const LimitTable& table, const CallRequest& call,
                      absl::Span<const ResolvedCharge> charges, CallAnswer& answer);
  void DecideRun(absl::Span<const CallRequest> calls, absl::Span<CallAnswer> answers);
  void DecideChunk(absl::Span<PreparedCall> chunk, absl::Span<const CallRequest> calls, absl::Span<CallAnswer> answers);
  void ExpireAfter(Ledger& ledger, ShardSet shards, std::int64_t keys_before);
  void MakeRoomBefore(Ledger& ledger, ShardSet shards, std::size_t calls);

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

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_ENGINE_ENGINE_IMPL_H_

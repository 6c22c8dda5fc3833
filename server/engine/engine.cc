#include "server/engine/engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/decision.h"
#include "server/engine/limit_table.h"
#include "server/engine/request_ids.h"
#include "server/limiter/calendar.h"
#include "server/limiter/wall_clock.h"
#include "server/store/store.h"

namespace ebbgate {
namespace {

// Calls decided under one taking of locks: enough to hide the latency of memory, few enough to keep others waiting for
// microseconds only.
constexpr std::size_t kCallsPerChunk = 64;
// Entries visited under one lock by a reload or by expiry.
constexpr int kEntriesPerLock = 256;
// Share of all entries that one Maintain looks at, as a divisor.
constexpr std::int64_t kMaintainShare = 100;

std::shared_ptr<const CallError> MakeError(ErrorReason reason, std::string field, std::string message) {
  return std::make_shared<const CallError>(CallError{reason, std::move(field), std::move(message)});
}

std::string ChargeField(std::size_t i, absl::string_view field) { return absl::StrCat("charges[", i, "].", field); }

// One call of a batch, ready for its shards.
struct PreparedCall {
  std::uint32_t index = 0;  // in the batch
  std::uint32_t shard = 0;  // of the only charge, for calls that are grouped
  std::uint64_t generation = 0;
  std::uint32_t first_charge = 0;
  std::uint32_t charges = 0;
};

// Reused by a thread from call to call, so that deciding allocates nothing.
struct Scratch {
  std::vector<ResolvedCharge> charges;
  std::vector<PreparedCall> calls;
  std::vector<PreparedCall> sorted;
  // The limit found last, and in which table: the next charge mostly names the same one.
  std::uint64_t engine = 0;
  std::uint64_t generation = 0;
  const CompiledLimit* limit = nullptr;
};

Scratch& ThreadScratch() {
  thread_local Scratch scratch;
  return scratch;
}

std::atomic<std::uint64_t> next_engine_number{1};

}  // namespace

class Engine::Impl {
 public:
  Impl(const EngineOptions& options, const TimeSource& time)
      : options_(options),
        time_(time),
        number_(next_engine_number.fetch_add(1)),
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

// --- Limits in force -------------------------------------------------------------------------------------------------

// Each thread keeps the table it used last, so that a call costs no shared counter: only a look at the generation.
const LimitTable& Engine::Impl::Table() {
  struct Cached {
    std::uint64_t engine = 0;
    std::uint64_t generation = 0;
    std::shared_ptr<const LimitTable> table;
  };
  thread_local Cached cached;
  if (cached.engine != number_ || cached.generation != generation_.load(std::memory_order_acquire)) {
    MutexLock lock(table_mutex_);
    cached = {number_, table_->generation(), table_};
  }
  return *cached.table;
}

LimitsInForce Engine::Impl::limits() const {
  MutexLock lock(table_mutex_);
  return {table_->generation(), table_->installed_at_wall_ns, table_->limits()};
}

bool Engine::Impl::InstallLimits(std::vector<Limit> limits) {
  MutexLock one_at_a_time(install_mutex_);
  std::shared_ptr<const LimitTable> before;
  {
    MutexLock lock(table_mutex_);
    before = table_;
  }
  if (before->generation() > 0 && SameLimits(*before->limits(), limits)) return false;
  const auto has_keys = [this](std::uint32_t id) {
    for (std::uint32_t i = 0; i < kShards; ++i) {
      Shard& shard = store_.shard(i);
      ShardLocks lock(store_, OneShard(i));
      shard.AssertHeld();
      if (shard.tally(id).keys > 0) return true;
    }
    return false;
  };
  const std::shared_ptr<LimitTable> table =
      LimitTable::Build(before, std::move(limits), store_.placement_key(), time_.MonotonicNs(), has_keys);
  {
    // One instant for all keys: no decision is under way while the clock is read.
    ShardLocks all(store_, kAllShards);
    table->installed_at = Now();
    table->installed_at_wall_ns = time_.WallNs();
    for (std::uint32_t i = 0; i < kShards; ++i) {
      Shard& shard = store_.shard(i);
      shard.AssertHeld();
      shard.ReserveTallies(table->ids());
      for (const std::uint32_t id : table->reused_ids()) shard.tally(id) = Tally{};
    }
    MutexLock lock(table_mutex_);
    table_ = table;
    generation_.store(table->generation(), std::memory_order_release);
  }
  limit_changes_.fetch_add(1, std::memory_order_relaxed);
  SettleAll(*table);
  return true;
}

void Engine::Impl::SettleAll(const LimitTable& table) {
  const Moment moment = table.installed_at;
  Ledger ledger(store_, table, options_, moment, events_);
  for (std::uint32_t i = 0; i < kShards; ++i) {
    Shard& shard = store_.shard(i);
    std::uint64_t cursor = 0;
    for (bool more = true; more;) {
      ShardLocks lock(store_, OneShard(i));
      shard.AssertHeld();
      more = shard.Sweep(cursor, kEntriesPerLock, [&](Entry& entry) { ledger.Settle(shard, entry); });
    }
  }
  table.previous.reset();  // No entry speaks of it any more.
}

// --- Checking and finding --------------------------------------------------------------------------------------------

std::shared_ptr<const CallError> CallFault(const CallRequest& call) {
  if (call.charges.empty()) {
    return MakeError(ErrorReason::kInvalidField, "charges", "must hold at least one charge");
  }
  if (call.charges.size() > kMaxChargesPerCall) {
    return MakeError(ErrorReason::kInvalidField, "charges",
                     absl::StrCat("must hold at most ", kMaxChargesPerCall, " charges, not ", call.charges.size()));
  }
  if (call.request_id.size() > kMaxRequestIdBytes) {
    return MakeError(ErrorReason::kInvalidField, "request_id",
                     absl::StrCat("must be at most ", kMaxRequestIdBytes, " bytes, not ", call.request_id.size()));
  }
  return nullptr;
}

bool IsSound(const ChargeRequest& charge) {
  return !charge.limit.empty() && charge.limit.size() <= kMaxLimitNameBytes && !charge.key.empty() &&
         charge.key.size() <= kMaxKeyBytes && (!charge.cost || (*charge.cost >= 0 && *charge.cost <= kMaxCostTokens));
}

// Pre: the charge is not sound.
std::shared_ptr<const CallError> ChargeFault(const ChargeRequest& charge, std::size_t i) {
  if (charge.limit.empty()) {
    return MakeError(ErrorReason::kInvalidField, ChargeField(i, "limit"), "must name a limit");
  }
  if (charge.limit.size() > kMaxLimitNameBytes) {
    return MakeError(ErrorReason::kInvalidField, ChargeField(i, "limit"),
                     absl::StrCat("must be at most ", kMaxLimitNameBytes, " bytes, not ", charge.limit.size()));
  }
  if (charge.key.empty()) {
    return MakeError(ErrorReason::kInvalidField, ChargeField(i, "key"), "must not be empty");
  }
  if (charge.key.size() > kMaxKeyBytes) {
    return MakeError(ErrorReason::kKeyTooLong, ChargeField(i, "key"),
                     absl::StrCat("must be at most ", kMaxKeyBytes, " bytes, not ", charge.key.size()));
  }
  return MakeError(ErrorReason::kCostOutOfRange, ChargeField(i, "cost"),
                   absl::StrCat("must be from 0 to ", kMaxCostTokens, " tokens, not ", *charge.cost));
}

const CompiledLimit* Engine::Impl::FindLimit(const LimitTable& table, absl::string_view name) const {
  Scratch& scratch = ThreadScratch();
  if (scratch.engine == number_ && scratch.generation == table.generation() && scratch.limit->config->name == name) {
    return scratch.limit;
  }
  const CompiledLimit* const found = table.Find(name);
  if (found != nullptr) {
    scratch.engine = number_;
    scratch.generation = table.generation();
    scratch.limit = found;
  }
  return found;
}

void Engine::Impl::Place(absl::string_view key, ResolvedCharge& resolved) {
  resolved.key = key;
  resolved.shard = ShardOfSlot(SlotOf(resolved.limit->ownership_seed, key));
  resolved.hash = PlacementHash(resolved.limit->placement_key, key);
}

bool Engine::Impl::ResolveCharge(const LimitTable& table, const ChargeRequest& charge, std::size_t i,
                                 ResolvedCharge& resolved, CallAnswer& answer) {
  if (!IsSound(charge)) {
    answer.error = ChargeFault(charge, i);
    return false;
  }
  resolved.limit = FindLimit(table, charge.limit);
  if (resolved.limit == nullptr) {
    unknown_limit_.fetch_add(1, std::memory_order_relaxed);
    resolved.cost = charge.cost.value_or(1);
    if (options_.unknown_limit != UnknownLimit::kReject) return true;
    answer.error = MakeError(ErrorReason::kUnknownLimit, ChargeField(i, "limit"),
                             absl::StrCat("no limit named '", charge.limit, "' is configured"));
    return false;
  }
  const Limit& limit = *resolved.limit->config;
  resolved.cost = charge.cost.value_or(limit.default_cost);
  if (limit.max_cost && resolved.cost > *limit.max_cost) {
    answer.error =
        MakeError(ErrorReason::kCostAboveMaximum, ChargeField(i, "cost"),
                  absl::StrCat("must be at most the limit's max_cost of ", *limit.max_cost, ", not ", resolved.cost));
    return false;
  }
  Place(charge.key, resolved);
  return true;
}

bool Engine::Impl::Resolve(const LimitTable& table, const CallRequest& call, CallAnswer& answer,
                           std::vector<ResolvedCharge>& charges) {
  const std::size_t first = charges.size();
  const std::size_t n = call.charges.size();
  answer.replayed = false;
  if (answer.error != nullptr) answer.error.reset();
  bool sound = n > 0 && n <= kMaxChargesPerCall && call.request_id.size() <= kMaxRequestIdBytes;
  if (!sound) answer.error = CallFault(call);
  if (sound) charges.resize(first + n);
  for (std::size_t i = 0; i < n && sound; ++i) {
    sound = ResolveCharge(table, call.charges[i], i, charges[first + i], answer);
  }
  if (sound) return true;
  charges.resize(first);
  if (answer.error->code() == absl::StatusCode::kInvalidArgument) {
    invalid_calls_.fetch_add(1, std::memory_order_relaxed);
  }
  CountFailed(table, call);
  return false;
}

// A call in error still was a request to each limit that it names (**Counted**).
void Engine::Impl::CountFailed(const LimitTable& table, const CallRequest& call) {
  const std::size_t n = std::min(call.charges.size(), kMaxChargesPerCall);
  for (std::size_t i = 0; i < n; ++i) {
    bool counted = CountOneFailed(table, call.charges[i].limit);
    while (!counted) {  // Not by Table(): the caller still reads the one it has.
      std::shared_ptr<const LimitTable> in_force;
      {
        MutexLock lock(table_mutex_);
        in_force = table_;
      }
      counted = CountOneFailed(*in_force, call.charges[i].limit);
    }
  }
}

// False if the limits changed meanwhile.
bool Engine::Impl::CountOneFailed(const LimitTable& table, absl::string_view name) {
  const CompiledLimit* limit = table.Find(name);
  if (limit == nullptr) return true;
  // Any shard will do; one that follows from the limit keeps them apart.
  const std::uint32_t shard_number = limit->id % kShards;
  Shard& shard = store_.shard(shard_number);
  ShardLocks lock(store_, OneShard(shard_number));
  shard.AssertHeld();
  if (generation_.load(std::memory_order_relaxed) != table.generation()) return false;
  ++shard.tally(limit->id).failed;
  return true;
}

// --- Deciding --------------------------------------------------------------------------------------------------------

void Engine::Impl::Decide(const CallRequest& call, CallAnswer& answer) {
  if (call.request_id.empty() || call.peek || call.request_id.size() > kMaxRequestIdBytes) {
    return DecideNow(call, answer);
  }
  answer.error = nullptr;
  bool decided = false;
  request_ids_.Once(call, time_.MonotonicNs(), answer, [&] {
    decided = true;
    DecideNow(call, answer);
  });
  if (!decided && answer.error != nullptr) {
    if (answer.error->code() == absl::StatusCode::kInvalidArgument) {
      invalid_calls_.fetch_add(1, std::memory_order_relaxed);
    }
    CountFailed(Table(), call);
  }
}

void Engine::Impl::DecideNow(const CallRequest& call, CallAnswer& answer) {
  std::vector<ResolvedCharge>& charges = ThreadScratch().charges;
  for (;;) {
    const LimitTable& table = Table();
    charges.clear();
    if (!Resolve(table, call, answer, charges)) return;
    ShardSet shards = 0;
    for (const ResolvedCharge& charge : charges) {
      if (charge.limit != nullptr) shards |= OneShard(charge.shard);
    }
    bool done = false;
    {
      ShardLocks locks(store_, shards);
      if (shards == 0 || generation_.load(std::memory_order_relaxed) == table.generation()) {
        const Moment moment = Now();
        Ledger ledger(store_, table, options_, moment, events_);
        const std::int64_t keys_before = store_.budget().keys();
        MakeRoomBefore(ledger, shards, charges.size());
        done = ledger.Decide(charges, call.peek, answer);
        if (!done)
          answer.error = MakeError(ErrorReason::kStoreFull, "", "no memory is left for another key; ask later");
        ExpireAfter(ledger, shards, keys_before);
        if (!done) break;
      }
    }
    if (done) return;
  }
  CountFailed(Table(), call);
}

// A few entries of each shard in use for every key that was added, so that forgetting keeps pace without a pause.
void Engine::Impl::ExpireAfter(Ledger& ledger, ShardSet shards, std::int64_t keys_before) {
  if (store_.budget().keys() <= keys_before) return;
  for (ShardSet rest = shards; rest != 0; rest &= rest - 1) {
    Shard& shard = store_.shard(ShardLocks::First(rest));
    shard.AssertHeld();
    ledger.ExpireSome(shard, shard.expiry_cursor(), kExpiryStepsPerInsert, kMinIdleNs);
  }
}

// Before a decision and not in its midst: entries that it uses must stay.
void Engine::Impl::MakeRoomBefore(Ledger& ledger, ShardSet shards, std::size_t calls) {
  if (!store_.budget().NearlyFull(static_cast<std::int64_t>(calls))) return;
  for (ShardSet rest = shards; rest != 0; rest &= rest - 1) {
    Shard& shard = store_.shard(ShardLocks::First(rest));
    shard.AssertHeld();
    ledger.ExpireSome(shard, shard.expiry_cursor(), kExpiryStepsWhenFull, 0);
  }
}

void Engine::Impl::DecideBatch(absl::Span<const CallRequest> calls, absl::Span<CallAnswer> answers) {
  // Runs of calls with one charge and no request id are grouped by shard; any other call is decided between them, so
  // that each finds the state that the calls before it left.
  const auto groups = [](const CallRequest& call) { return call.charges.size() == 1 && call.request_id.empty(); };
  for (std::size_t i = 0; i < calls.size();) {
    std::size_t end = i;
    while (end < calls.size() && groups(calls[end])) ++end;
    if (end - i > 1) {
      DecideRun(calls.subspan(i, end - i), answers.subspan(i, end - i));
      i = end;
    } else {
      Decide(calls[i], answers[i]);
      ++i;
    }
  }
}

void Engine::Impl::DecideRun(absl::Span<const CallRequest> calls, absl::Span<CallAnswer> answers) {
  Scratch& scratch = ThreadScratch();
  scratch.charges.clear();
  scratch.calls.clear();
  const LimitTable& table = Table();
  const std::uint64_t generation = table.generation();
  std::array<std::uint32_t, kShards + 1> begins{};
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const auto first = static_cast<std::uint32_t>(scratch.charges.size());
    if (!Resolve(table, calls[i], answers[i], scratch.charges)) continue;
    const std::uint32_t shard = scratch.charges[first].shard;
    scratch.calls.push_back({static_cast<std::uint32_t>(i), shard, generation, first, 1});
    ++begins[shard + 1];
  }
  // Counting sort by shard; stable, so that calls on one key stay in order.
  for (std::uint32_t shard = 0; shard < kShards; ++shard) begins[shard + 1] += begins[shard];
  scratch.sorted.resize(scratch.calls.size());
  for (const PreparedCall& call : scratch.calls) scratch.sorted[begins[call.shard]++] = call;
  const absl::Span<PreparedCall> sorted = absl::MakeSpan(scratch.sorted);
  for (std::size_t i = 0; i < sorted.size(); i += kCallsPerChunk) {
    DecideChunk(sorted.subspan(i, kCallsPerChunk), calls, answers);
  }
}

void Engine::Impl::DecideChunk(absl::Span<PreparedCall> chunk, absl::Span<const CallRequest> calls,
                               absl::Span<CallAnswer> answers) {
  std::vector<ResolvedCharge>& charges = ThreadScratch().charges;
  for (;;) {
    const LimitTable& table = Table();
    ShardSet shards = 0;
    for (PreparedCall& call : chunk) {
      if (call.charges != 0 && call.generation != table.generation()) {  // The limits changed meanwhile.
        call.first_charge = static_cast<std::uint32_t>(charges.size());
        call.generation = table.generation();
        call.charges = Resolve(table, calls[call.index], answers[call.index], charges) ? 1 : 0;
        // A limit that was unknown before, and had no shard, may have one now.
        if (call.charges != 0) call.shard = charges[call.first_charge].shard;
      }
      if (call.charges != 0) shards |= OneShard(call.shard);
    }
    ShardLocks locks(store_, shards);
    if (generation_.load(std::memory_order_relaxed) != table.generation()) continue;
    const Moment moment = Now();
    Ledger ledger(store_, table, options_, moment, events_);
    const std::int64_t keys_before = store_.budget().keys();
    MakeRoomBefore(ledger, shards, chunk.size());
    for (const PreparedCall& call : chunk) {
      if (call.charges == 0) continue;
      store_.shard(call.shard).AssertHeld();
      store_.shard(call.shard).PrefetchIndex(charges[call.first_charge].hash);
    }
    for (const PreparedCall& call : chunk) {
      if (call.charges == 0) continue;
      store_.shard(call.shard).AssertHeld();
      store_.shard(call.shard).PrefetchEntry(charges[call.first_charge].hash);
    }
    for (PreparedCall& call : chunk) {
      if (call.charges == 0) continue;
      const absl::Span<const ResolvedCharge> charge(&charges[call.first_charge], 1);
      CallAnswer& answer = answers[call.index];
      if (!ledger.Decide(charge, calls[call.index].peek, answer)) {
        answer.error = MakeError(ErrorReason::kStoreFull, "", "no memory is left for another key; ask later");
        store_.shard(call.shard).AssertHeld();
        ++store_.shard(call.shard).tally(charge[0].limit->id).failed;
      }
    }
    ExpireAfter(ledger, shards, keys_before);
    return;
  }
}

// --- Looking in from outside -----------------------------------------------------------------------------------------

absl::StatusOr<ResolvedCharge> Engine::Impl::Locate(const LimitTable& table, absl::string_view limit,
                                                    absl::string_view key) {
  const ChargeRequest charge{.limit = limit, .key = key, .cost = 0};
  ResolvedCharge resolved;
  if (!IsSound(charge)) {
    const std::shared_ptr<const CallError> fault = ChargeFault(charge, 0);
    return absl::InvalidArgumentError(
        absl::StrCat(fault->field.substr(fault->field.find('.') + 1), ": ", fault->message));
  }
  resolved.limit = table.Find(limit);
  if (resolved.limit == nullptr) return absl::NotFoundError(absl::StrCat("no limit named '", limit, "' is configured"));
  Place(key, resolved);
  return resolved;
}

absl::StatusOr<Inspection> Engine::Impl::Inspect(absl::string_view limit_name, absl::string_view key) {
  for (;;) {
    const LimitTable& table = Table();
    const absl::StatusOr<ResolvedCharge> found = Locate(table, limit_name, key);
    if (!found.ok()) return found.status();
    Shard& shard = store_.shard(found->shard);
    ShardLocks lock(store_, OneShard(found->shard));
    shard.AssertHeld();
    if (generation_.load(std::memory_order_relaxed) != table.generation()) continue;
    const Moment moment = Now();
    Ledger ledger(store_, table, options_, moment, events_);
    const Entry* const entry = ledger.Find(*found);
    const Limit& limit = *found->limit->config;
    const Policy& policy = table.policy(entry != nullptr ? entry->policy : found->limit->PolicyFor(key));
    BucketState state = entry != nullptr ? entry->state : FullBucket(policy.parameters, moment);
    Inspection inspection;
    if (entry != nullptr) {
      inspection.known = true;
      inspection.last_change_age_ns = std::max<std::int64_t>(0, moment.mono_ns - state.last_ns);
      inspection.last_change_label = LocalLabel(WallAt(moment.wall, state.last_ns), limit.display_zone);
      Advance(policy.parameters, moment, state);
    }
    inspection.level = Available(policy.parameters, moment, state);
    inspection.capacity = WholeTokens(policy.parameters.capacity);
    inspection.remaining = WholeTokens(inspection.level);
    inspection.reset_after_ns = ResetNs(policy.parameters, moment, state);
    inspection.parameters = absl::StrCat(Name(policy.parameters.algorithm), " ", Describe(policy.parameters));
    if (policy.override_index >= 0) {
      inspection.override_pattern = limit.overrides[static_cast<std::size_t>(policy.override_index)].key;
    }
    inspection.slot = SlotOf(found->limit->ownership_seed, key);
    return inspection;
  }
}

absl::StatusOr<bool> Engine::Impl::Reset(absl::string_view limit, absl::string_view key) {
  for (;;) {
    const LimitTable& table = Table();
    const absl::StatusOr<ResolvedCharge> found = Locate(table, limit, key);
    if (!found.ok()) return found.status();
    ShardLocks lock(store_, OneShard(found->shard));
    if (generation_.load(std::memory_order_relaxed) != table.generation()) continue;
    const Moment moment = Now();
    Ledger ledger(store_, table, options_, moment, events_);
    Entry* const entry = ledger.Find(*found);
    if (entry == nullptr) return false;
    ledger.Forget(store_.shard(found->shard), *entry);
    events_.keys_reset.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
}

void Engine::Impl::Maintain() {
  MutexLock one_at_a_time(maintain_mutex_);
  wall_clock_.Observe(time_.MonotonicNs(), time_.WallNs());
  store_.pool().PrepareSpare();
  request_ids_.Expire(time_.MonotonicNs());
  std::int64_t budget = std::max<std::int64_t>(kShards * kEntriesPerLock, store_.budget().keys() / kMaintainShare);
  while (budget > 0) {
    const LimitTable& table = Table();
    const std::uint32_t shard_number = maintain_shard_++ % kShards;
    Shard& shard = store_.shard(shard_number);
    bool more = true;
    for (; more && budget > 0; budget -= kEntriesPerLock) {
      ShardLocks lock(store_, OneShard(shard_number));
      shard.AssertHeld();
      if (generation_.load(std::memory_order_relaxed) != table.generation()) break;
      const Moment moment = Now();
      Ledger ledger(store_, table, options_, moment, events_);
      const std::uint64_t before = shard.expiry_cursor();
      ledger.ExpireSome(shard, shard.expiry_cursor(), kEntriesPerLock, kMinIdleNs);
      more = shard.expiry_cursor() > before;
    }
    budget -= kEntriesPerLock;
  }
}

// False if the limits changed meanwhile, so that numbers may mean other limits.
bool Engine::Impl::SumTallies(const LimitTable& table, std::vector<Tally>& sums) {
  sums.assign(table.ids(), Tally{});
  for (std::uint32_t i = 0; i < kShards; ++i) {
    Shard& shard = store_.shard(i);
    ShardLocks lock(store_, OneShard(i));
    shard.AssertHeld();
    if (generation_.load(std::memory_order_relaxed) != table.generation()) return false;
    for (std::uint32_t id = 0; id < table.ids(); ++id) sums[id] += shard.tally(id);
  }
  return true;
}

EngineCounters Engine::Impl::Counters() {
  EngineCounters counters;
  std::vector<Tally> sums;
  const LimitTable* in_force = &Table();
  while (!SumTallies(*in_force, sums)) in_force = &Table();
  const LimitTable& table = *in_force;
  const auto add = [&](const CompiledLimit& limit) {
    const Tally& sum = sums[limit.id];
    counters.limits.push_back({limit.config->name, sum.allowed, sum.denied, sum.failed, sum.peeked, sum.admitted_cost,
                               sum.refused_quota, sum.refused_never, sum.shadow_refused, sum.shadow_refused_cost});
  };
  for (const Limit& limit : *table.limits()) add(*table.Find(limit.name));
  for (std::uint32_t id = 0; id < table.ids(); ++id) {
    if (table.limit(id).config != nullptr && table.limit(id).retired) add(table.limit(id));
  }
  const auto read = [](const std::atomic<std::uint64_t>& value) { return value.load(std::memory_order_relaxed); };
  counters.unknown_limit = read(unknown_limit_);
  counters.invalid_calls = read(invalid_calls_);
  counters.replayed_calls = request_ids_.replayed();
  counters.request_ids = request_ids_.remembered();
  counters.request_ids_refused = request_ids_.refused();
  counters.keys = static_cast<std::uint64_t>(std::max<std::int64_t>(0, store_.budget().keys()));
  counters.store_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, store_.budget().bytes()));
  counters.keys_expired = read(events_.keys_expired);
  counters.keys_reset = read(events_.keys_reset);
  counters.keys_given_up = read(events_.keys_given_up);
  counters.store_full_denied = read(events_.full_denied);
  counters.store_full_allowed = read(events_.full_allowed);
  counters.clock_regressions = read(events_.clock_regressions);
  counters.wall_steps_forward = static_cast<std::uint64_t>(wall_clock_.steps_forward());
  counters.wall_steps_back = static_cast<std::uint64_t>(wall_clock_.steps_back());
  counters.generation = table.generation();
  counters.limit_changes = read(limit_changes_);
  return counters;
}

void Engine::Impl::FreeAllState() {
  const LimitTable& table = Table();
  for (std::uint32_t i = 0; i < kShards; ++i) {
    Shard& shard = store_.shard(i);
    ShardLocks lock(store_, OneShard(i));
    shard.AssertHeld();
    std::uint64_t cursor = 0;
    shard.Sweep(cursor, INT32_MAX, [&](Entry& entry) { Free(table.policy(entry.policy).parameters, entry.state); });
  }
}

// --- The door --------------------------------------------------------------------------------------------------------

Engine::Engine(const EngineOptions& options, const TimeSource& time) : impl_(std::make_unique<Impl>(options, time)) {}
Engine::~Engine() = default;
bool Engine::InstallLimits(std::vector<Limit> limits) { return impl_->InstallLimits(std::move(limits)); }
LimitsInForce Engine::limits() const { return impl_->limits(); }
void Engine::Decide(const CallRequest& call, CallAnswer& answer) { impl_->Decide(call, answer); }
void Engine::DecideBatch(absl::Span<const CallRequest> calls, absl::Span<CallAnswer> answers) {
  impl_->DecideBatch(calls, answers);
}
absl::StatusOr<Inspection> Engine::Inspect(absl::string_view limit, absl::string_view key) const {
  return impl_->Inspect(limit, key);
}
absl::StatusOr<bool> Engine::Reset(absl::string_view limit, absl::string_view key) { return impl_->Reset(limit, key); }
void Engine::Maintain() { impl_->Maintain(); }
EngineCounters Engine::Counters() const { return impl_->Counters(); }

}  // namespace ebbgate

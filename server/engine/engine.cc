#include "server/engine/engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/engine_impl.h"
#include "server/limiter/calendar.h"

namespace ebbgate {
namespace {

// Entries visited under one lock by a reload or by expiry.
constexpr int kEntriesPerLock = 256;
// Share of all entries that one Maintain looks at, as a divisor.
constexpr std::int64_t kMaintainShare = 100;

std::uint64_t OpenHolds(const Tally& tally) {
  return tally.holds_opened - tally.holds_settled - tally.holds_cancelled - tally.holds_expired;
}

}  // namespace

std::uint64_t Engine::Impl::NextNumber() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

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

// --- Looking in from outside -----------------------------------------------------------------------------------------

absl::StatusOr<Inspection> Engine::Impl::Inspect(absl::string_view limit, absl::string_view key) {
  absl::StatusOr<Inspection> inspection = InspectBucket(limit, key);
  if (inspection.ok()) inspection->request_ids = request_ids_.CountOf(limit, key);
  return inspection;
}

absl::StatusOr<Inspection> Engine::Impl::InspectBucket(absl::string_view limit_name, absl::string_view key) {
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
    Entry* const entry = ledger.Find(*found);
    const Promises* const promises = entry != nullptr ? ledger.BringUp(shard, *entry) : nullptr;
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
    inspection.debt = std::max<Microtokens>(0, -inspection.level);
    const bool may_spend = inspection.level >= Needed(policy.parameters, 0);
    inspection.remaining = may_spend ? WholeTokens(inspection.level) : 0;
    inspection.reset_after_ns = ResetNs(policy.parameters, moment, state);
    if (promises != nullptr) {
      inspection.debt = std::max<Microtokens>(0, promises->Owed(policy.parameters, moment, state));
      inspection.remaining = WholeTokens(promises->LargestCost(policy.parameters, moment, state));
      inspection.reset_after_ns = promises->ResetNs(policy.parameters, moment, state);
      InspectHolds(*promises, moment, inspection);
    }
    inspection.parameters = absl::StrCat(Name(policy.parameters.algorithm), " ", Describe(policy.parameters));
    if (policy.override_index >= 0) {
      inspection.override_pattern = limit.overrides[static_cast<std::size_t>(policy.override_index)].key;
    }
    inspection.slot = SlotOf(found->limit->ownership_seed, key);
    return inspection;
  }
}

void Engine::Impl::InspectHolds(const Promises& promises, const Moment& moment, Inspection& inspection) const {
  promises.ForEachOpen([&](const Promise& hold) {
    ++inspection.open_holds;
    inspection.holds.push_back({.cost = WholeTokens(hold.cost),
                                .act_after_ns = std::max<std::int64_t>(0, hold.act_ns - moment.mono_ns),
                                .expires_after_ns = hold.expires_ns - moment.mono_ns});
  });
  const auto sooner = [](const Inspection::Hold& a, const Inspection::Hold& b) {
    return a.expires_after_ns < b.expires_after_ns;
  };
  std::stable_sort(inspection.holds.begin(), inspection.holds.end(), sooner);
  if (inspection.holds.size() > kMaxHoldsShown) inspection.holds.resize(kMaxHoldsShown);
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
    Shard& shard = store_.shard(found->shard);
    shard.AssertHeld();
    if (Promises* const promises = ledger.BringUp(shard, *entry)) {
      ledger.MakeFull(*entry);  // What was promised stays promised.
      promises->ForgetReturnable();
    } else {
      ledger.Forget(shard, *entry);
    }
    events_.keys_reset.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
}

void Engine::Impl::Maintain() {
  MutexLock one_at_a_time(maintain_mutex_);
  wall_clock_.Observe(time_.MonotonicNs(), time_.WallNs());
  store_.pool().PrepareSpare();
  request_ids_.Expire(time_.MonotonicNs());
  reservations_.Expire(time_.MonotonicNs());
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
    counters.limits.push_back({.limit = limit.config->name,
                               .allowed = sum.allowed,
                               .denied = sum.denied,
                               .failed = sum.failed,
                               .peeked = sum.peeked,
                               .admitted_cost = sum.admitted_cost,
                               .refused_quota = sum.refused_quota,
                               .refused_never = sum.refused_never,
                               .shadow_refused = sum.shadow_refused,
                               .shadow_refused_cost = sum.shadow_refused_cost,
                               .refused_debt = sum.refused_debt,
                               .refused_holds = sum.refused_holds,
                               .holds_open = OpenHolds(sum),
                               .holds_settled = sum.holds_settled,
                               .holds_cancelled = sum.holds_cancelled,
                               .holds_expired = sum.holds_expired,
                               .given_back_cost = sum.given_back_cost,
                               .overrun_cost = sum.overrun_cost,
                               .uncovered_cost = sum.uncovered_cost});
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
  counters.request_id_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, request_ids_.bytes()));
  counters.holds = static_cast<std::uint64_t>(std::max<std::int64_t>(0, reservations_.open()));
  counters.holds_refused = reservations_.refused();
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
void Engine::Reserve(const ReserveRequest& request, ReserveAnswer& answer) { impl_->Reserve(request, answer); }
void Engine::Settle(absl::string_view reservation_id, absl::Span<const std::int64_t> actual, SettleAnswer& answer) {
  impl_->End(reservation_id, HoldState::kSettled, actual, answer);
}
void Engine::Cancel(absl::string_view reservation_id, SettleAnswer& answer) {
  impl_->End(reservation_id, HoldState::kCancelled, {}, answer);
}
absl::StatusOr<Inspection> Engine::Inspect(absl::string_view limit, absl::string_view key) const {
  return impl_->Inspect(limit, key);
}
absl::StatusOr<bool> Engine::Reset(absl::string_view limit, absl::string_view key) { return impl_->Reset(limit, key); }
void Engine::Maintain() { impl_->Maintain(); }
EngineCounters Engine::Counters() const { return impl_->Counters(); }

}  // namespace ebbgate

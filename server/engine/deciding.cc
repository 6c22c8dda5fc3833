#include <algorithm>
#include <array>

#include "server/engine/engine_impl.h"
#include "server/limiter/bounds.h"

namespace ebbgate {
namespace {

// Calls decided under one taking of locks: enough to hide the latency of memory, few enough to keep others waiting for
// microseconds only.
constexpr std::size_t kCallsPerChunk = 64;

}  // namespace

void Engine::Impl::Decide(const CallRequest& call, CallAnswer& answer) {
  if (call.request_id.empty() || call.peek || call.request_id.size() > kMaxRequestIdBytes) {
    return DecideNow(call, answer);
  }
  DecideOnce(call, CallKind::kShouldAllow, answer, nullptr, [&] { DecideNow(call, answer); });
}

void Engine::Impl::DecideOnce(const CallRequest& call, CallKind kind, CallAnswer& answer, Grant* grant,
                              const std::function<void()>& decide) {
  answer.error = nullptr;
  bool decided = false;
  request_ids_.Once(call, kind, time_.MonotonicNs(), answer, grant, [&] {
    decided = true;
    decide();
  });
  if (!decided && answer.error != nullptr) {
    if (answer.error->code() == absl::StatusCode::kInvalidArgument) {
      invalid_calls_.fetch_add(1, std::memory_order_relaxed);
    }
    CountFailed(Table(), call);
  }
}

void Engine::Impl::DecideNow(const CallRequest& call, CallAnswer& answer) {
  DecideOnLedger(call, answer, [&](Ledger& ledger, absl::Span<const ResolvedCharge> charges) {
    return ledger.Decide(charges, call.peek, answer);
  });
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
  // Twice, because the first look may be cut short by the end of the shard.
  for (int look = 0; look < 2 && store_.budget().NearlyFull(static_cast<std::int64_t>(calls)); ++look) {
    for (ShardSet rest = shards; rest != 0; rest &= rest - 1) {
      Shard& shard = store_.shard(ShardLocks::First(rest));
      shard.AssertHeld();
      ledger.ExpireSome(shard, shard.expiry_cursor(), kExpiryStepsWhenFull, 0);
    }
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
  EngineScratch& scratch = EngineScratch::OfThread();
  std::vector<ResolvedCharge>& charges = scratch.charges;
  charges.clear();
  scratch.calls.resize(calls.size());
  std::size_t prepared = 0;
  const LimitTable& table = Table();
  const std::uint64_t generation = table.generation();
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (!Resolve(table, calls[i], answers[i], charges)) continue;
    scratch.calls[prepared] = {static_cast<std::uint32_t>(i), charges.back().shard, generation,
                               static_cast<std::uint32_t>(prepared), 1};
    ++prepared;
  }
  scratch.calls.resize(prepared);
  // What fits one chunk takes all its locks at once, in whatever order the calls stand.
  if (scratch.calls.size() <= kCallsPerChunk) return DecideChunk(absl::MakeSpan(scratch.calls), calls, answers);
  // Counting sort by shard; stable, so that calls on one key stay in order.
  std::array<std::uint32_t, kShards + 1> begins{};
  for (const PreparedCall& call : scratch.calls) ++begins[call.shard + 1];
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
  std::vector<ResolvedCharge>& charges = EngineScratch::OfThread().charges;
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
      charges[call.first_charge].guess = store_.shard(call.shard).PrefetchEntry(charges[call.first_charge].hash);
    }
    for (PreparedCall& call : chunk) {
      if (call.charges == 0) continue;
      const absl::Span<const ResolvedCharge> charge(&charges[call.first_charge], 1);
      CallAnswer& answer = answers[call.index];
      if (!ledger.Decide(charge, calls[call.index].peek, answer)) {
        answer.error = MakeCallError(ErrorReason::kStoreFull, "", "no memory is left for another key; ask later");
        store_.shard(call.shard).AssertHeld();
        ++store_.shard(call.shard).tally(charge[0].limit->id).failed;
      }
    }
    ExpireAfter(ledger, shards, keys_before);
    return;
  }
}

}  // namespace ebbgate

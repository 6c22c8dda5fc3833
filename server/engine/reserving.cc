// Reserve, Settle, Cancel: from the call to the shards and back.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/engine_impl.h"
#include "server/limiter/bounds.h"

namespace ebbgate {
namespace {

std::shared_ptr<const CallError> TermsFault(const ReserveRequest& request) {
  if (request.max_wait_ns < 0 || request.max_wait_ns > kMaxHoldNs) {
    return MakeCallError(ErrorReason::kInvalidField, "max_wait",
                         absl::StrCat("must be from 0s to ", DescribeNs(kMaxHoldNs)));
  }
  if (request.hold_ns < 1 || request.hold_ns > kMaxHoldNs) {
    return MakeCallError(ErrorReason::kInvalidField, "hold_for",
                         absl::StrCat("must be longer than 0s and at most ", DescribeNs(kMaxHoldNs)));
  }
  return nullptr;
}

std::shared_ptr<const CallError> ActualFault(const Reservation& reservation, absl::Span<const std::int64_t> actual) {
  if (actual.size() != reservation.charges.size()) {
    return MakeCallError(ErrorReason::kInvalidField, "actual",
                         absl::StrCat("must hold one cost for each of the reservation's ", reservation.charges.size(),
                                      " charges, not ", actual.size()));
  }
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (actual[i] >= 0 && actual[i] <= kMaxCostTokens) continue;
    return MakeCallError(ErrorReason::kCostOutOfRange, absl::StrCat("actual[", i, "]"),
                         absl::StrCat("must be from 0 to ", kMaxCostTokens, " tokens, not ", actual[i]));
  }
  return nullptr;
}

// All of a reservation's charges to one bucket.
struct HeldBucket {
  const ReservedCharge* first = nullptr;
  std::int64_t actual = 0;
  ResolvedCharge place;
};

std::vector<HeldBucket> BucketsOf(const Reservation& reservation) {
  std::vector<HeldBucket> buckets;
  for (const ReservedCharge& charge : reservation.charges) {
    if (!charge.held) continue;
    const auto same = [&](const HeldBucket& bucket) {
      return bucket.first->sum.limit == charge.sum.limit && bucket.first->sum.key == charge.sum.key;
    };
    auto bucket = std::find_if(buckets.begin(), buckets.end(), same);
    if (bucket == buckets.end()) bucket = buckets.insert(bucket, HeldBucket{.first = &charge, .place = {}});
    bucket->actual += charge.sum.actual;
  }
  return buckets;
}

}  // namespace

// --- Reserve ---------------------------------------------------------------------------------------------------------

void Engine::Impl::Reserve(const ReserveRequest& request, ReserveAnswer& answer) {
  answer = ReserveAnswer{};
  CallAnswer& call = answer.call;
  if ((call.error = TermsFault(request)) != nullptr) {
    invalid_calls_.fetch_add(1, std::memory_order_relaxed);
    return CountFailed(Table(), request.call);
  }
  Grant grant;
  if (request.call.request_id.empty() || request.call.request_id.size() > kMaxRequestIdBytes) {
    ReserveNow(request, call, grant);
  } else {
    DecideOnce(request.call, CallKind::kReserve, call, &grant, [&] { ReserveNow(request, call, grant); });
  }
  if (call.error != nullptr || !call.allowed) return;
  // A repeated call is told the same times, from its own now.
  const std::int64_t now_ns = call.replayed ? time_.MonotonicNs() : grant.granted_ns;
  answer.reservation_id = FormatReservationId(grant.id);
  answer.act_after_ns = std::max<std::int64_t>(0, grant.act_ns - now_ns);
  answer.expires_after_ns = std::max<std::int64_t>(0, grant.expires_ns - now_ns);
}

void Engine::Impl::ReserveNow(const ReserveRequest& request, CallAnswer& answer, Grant& grant) {
  const auto room =
      static_cast<std::int64_t>(std::clamp<std::size_t>(request.call.charges.size(), 1, kMaxChargesPerCall));
  if (!reservations_.TakeRoom(room)) {
    answer.error = MakeCallError(ErrorReason::kHoldsFull, "", "no room for another reservation; ask again later");
    return CountFailed(Table(), request.call);
  }
  const ReserveTerms terms = {.hold = next_hold_.fetch_add(1, std::memory_order_relaxed),
                              .max_wait_ns = request.max_wait_ns,
                              .hold_ns = request.hold_ns};
  Reserved reserved;
  const auto reserve = [&](Ledger& ledger, absl::Span<const ResolvedCharge> charges) {
    grant.granted_ns = ledger.moment().mono_ns;
    return ledger.Reserve(charges, terms, answer, reserved);
  };
  if (!DecideOnLedger(request.call, answer, reserve) || !answer.allowed) return reservations_.ReturnRoom(room);
  grant.act_ns = reserved.act_ns;
  grant.expires_ns = reserved.expires_ns;
  grant.id = reservations_.Add(MakeReservation(request.call, terms, reserved));
}

// Pre: the charges of the call were resolved by this thread a moment ago.
Reservation Engine::Impl::MakeReservation(const CallRequest& call, const ReserveTerms& terms,
                                          const Reserved& reserved) const {
  const std::vector<ResolvedCharge>& charges = EngineScratch::OfThread().charges;
  Reservation reservation;
  reservation.hold = terms.hold;
  reservation.act_ns = reserved.act_ns;
  reservation.expires_ns = reserved.expires_ns;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    ReservedCharge& charge = reservation.charges.emplace_back();
    charge.sum.limit = std::string(call.charges[i].limit);
    charge.sum.key = std::string(call.charges[i].key);
    charge.sum.reserved = charges[i].cost;
    charge.held = (reserved.held >> i & 1) != 0;
    if (charges[i].limit != nullptr) charge.on_expiry = charges[i].limit->config->on_hold_expiry;
  }
  return reservation;
}

// --- Settle and Cancel -----------------------------------------------------------------------------------------------

void Engine::Impl::End(absl::string_view id, HoldState state, absl::Span<const std::int64_t> actual,
                       SettleAnswer& answer) {
  answer = SettleAnswer{};
  const std::optional<ReservationId> parsed = ParseReservationId(id);
  if (!parsed) {
    invalid_calls_.fetch_add(1, std::memory_order_relaxed);
    answer.error = MakeCallError(
        ErrorReason::kInvalidField, "reservation_id",
        absl::StrCat("must be the ", kReservationIdBytes, " characters (0-9, a-f) that Reserve answered"));
    return;
  }
  const bool known = reservations_.Visit(*parsed, [&](Reservation& reservation) {
    if (state == HoldState::kSettled && (answer.error = ActualFault(reservation, actual)) != nullptr) return;
    answer.repeated = !EndOpen(reservation, state, actual);
    answer.state = reservation.state;
    for (const ReservedCharge& charge : reservation.charges) answer.charges.push_back(charge.sum);
  });
  if (!known) {
    answer.error = MakeCallError(ErrorReason::kUnknownHold, "reservation_id",
                                 "names no reservation that is open or has ended a short while ago");
  } else if (answer.error != nullptr) {
    invalid_calls_.fetch_add(1, std::memory_order_relaxed);
  }
}

// Returns whether this call ended the reservation.
bool Engine::Impl::EndOpen(Reservation& reservation, HoldState state, absl::Span<const std::int64_t> actual) {
  if (reservation.state != HoldState::kOpen) return false;
  for (std::size_t i = 0; i < reservation.charges.size(); ++i) {
    SettledCharge& sum = reservation.charges[i].sum;
    sum.actual = state == HoldState::kSettled ? actual[i] : 0;
    sum.given_back = std::max<std::int64_t>(0, sum.reserved - sum.actual);
    sum.overrun = std::max<std::int64_t>(0, sum.actual - sum.reserved);
    sum.uncovered = sum.overrun;  // until its bucket says that it was charged
  }
  if (!EndInBuckets(reservation, state)) {
    for (ReservedCharge& charge : reservation.charges) {
      charge.sum.overrun = 0;
      charge.sum.uncovered = 0;
    }
    reservation.Expire();
    return false;
  }
  reservation.state = state;
  return true;
}

// Gives back and charges in all buckets at one instant; false, having changed nothing, if the hold has expired.
bool Engine::Impl::EndInBuckets(Reservation& reservation, HoldState state) {
  std::vector<HeldBucket> buckets = BucketsOf(reservation);
  for (;;) {
    const LimitTable& table = Table();
    ShardSet shards = 0;
    for (HeldBucket& bucket : buckets) {
      bucket.place.limit = table.FindHeld(bucket.first->sum.limit);
      if (bucket.place.limit == nullptr) continue;  // Removed long ago, and its keys forgotten.
      Place(bucket.first->sum.key, bucket.place);
      shards |= OneShard(bucket.place.shard);
    }
    ShardLocks locks(store_, shards);
    if (shards != 0 && generation_.load(std::memory_order_relaxed) != table.generation()) continue;
    const Moment moment = Now();
    if (moment.mono_ns >= reservation.expires_ns) return false;
    reservation.ended_ns = moment.mono_ns;
    Ledger ledger(store_, table, options_, moment, events_);
    for (const HeldBucket& bucket : buckets) {
      if (bucket.place.limit == nullptr) continue;
      const HoldEnd end = ledger.EndHold(bucket.place, reservation.hold, bucket.actual);
      Shard& shard = store_.shard(bucket.place.shard);
      shard.AssertHeld();
      if (end.found) CountEnd(reservation, bucket.first->sum, end, state, shard.tally(bucket.place.limit->id));
    }
    return true;
  }
}

// Spreads what one bucket said of all its charges over them, and counts.
void Engine::Impl::CountEnd(Reservation& reservation, const SettledCharge& of, const HoldEnd& end, HoldState state,
                            Tally& tally) {
  // A part of a token that was not charged is said to be a whole one: nobody is told less than what is missing.
  std::int64_t uncovered = WholeTokens(Saturate(static_cast<Int128>(end.uncovered) + kMicrotokensPerToken - 1));
  Microtokens returned = end.returned;
  for (ReservedCharge& charge : reservation.charges) {
    SettledCharge& sum = charge.sum;
    if (!charge.held || sum.limit != of.limit || sum.key != of.key) continue;
    sum.uncovered = std::min(uncovered, sum.overrun);
    uncovered -= sum.uncovered;
    sum.returned = returned;
    returned = 0;
    tally.given_back_cost += static_cast<std::uint64_t>(sum.given_back);
    tally.overrun_cost += static_cast<std::uint64_t>(sum.overrun - sum.uncovered);
    tally.uncovered_cost += static_cast<std::uint64_t>(sum.uncovered);
  }
  ++(state == HoldState::kSettled ? tally.holds_settled : tally.holds_cancelled);
}

}  // namespace ebbgate

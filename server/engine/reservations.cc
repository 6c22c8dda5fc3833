#include "server/engine/reservations.h"

#include <sodium/randombytes.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/escaping.h"
#include "server/limiter/bounds.h"

namespace ebbgate {
namespace {

// Of a stripe, however few holds may be open: the answer of one that has just ended can be repeated.
constexpr std::int64_t kLeastEndedKept = 64;

}  // namespace

std::string FormatReservationId(const ReservationId& id) {
  static_assert(2 * sizeof(id) == kReservationIdBytes);
  return absl::BytesToHexString({reinterpret_cast<const char*>(id.data()), sizeof(id)});
}

std::optional<ReservationId> ParseReservationId(absl::string_view text) {
  if (text.size() != kReservationIdBytes) return std::nullopt;
  for (const char c : text) {
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return std::nullopt;
  }
  const std::string bytes = absl::HexStringToBytes(text);
  ReservationId id;
  std::memcpy(id.data(), bytes.data(), sizeof(id));
  return id;
}

void Reservation::Expire() {
  state = HoldState::kExpired;
  ended_ns = expires_ns;
  for (ReservedCharge& charge : charges) {
    const bool back = charge.on_expiry == OnHoldExpiry::kGiveBack;
    charge.sum.actual = back ? 0 : charge.sum.reserved;
    charge.sum.given_back = back ? charge.sum.reserved : 0;
  }
}

Reservations::Reservations(std::int64_t max_holds, std::int64_t keep_ended_ns)
    : max_holds_(max_holds), keep_ended_ns_(keep_ended_ns) {
  for (std::int64_t i = 0; i < kStripes; ++i) stripes_.push_back(std::make_unique<Stripe>());
}

bool Reservations::TakeRoom(std::int64_t charges) {
  if (open_.fetch_add(charges, std::memory_order_relaxed) + charges <= max_holds_) return true;
  ReturnRoom(charges);
  refused_.fetch_add(1, std::memory_order_relaxed);
  return false;
}

ReservationId Reservations::Add(Reservation reservation) {
  ReservationId id;
  randombytes_buf(id.data(), sizeof(id));
  const std::int64_t expires_ns = reservation.expires_ns;
  auto kept = std::make_unique<Reservation>(std::move(reservation));
  Stripe& stripe = StripeOf(id);
  MutexLock lock(stripe.mutex);
  stripe.all.emplace(id, std::move(kept));
  stripe.by_expiry.emplace(expires_ns, id);
  return id;
}

void Reservations::NoteEnd(Stripe& stripe, const ReservationId& id, const Reservation& reservation) {
  stripe.by_expiry.erase({reservation.expires_ns, id});
  ReturnRoom(static_cast<std::int64_t>(reservation.charges.size()));
  stripe.ended.emplace_back(reservation.ended_ns, id);
  if (static_cast<std::int64_t>(stripe.ended.size()) > std::max(max_holds_ / kStripes, kLeastEndedKept)) {
    ForgetOldest(stripe);
  }
}

void Reservations::ForgetOldest(Stripe& stripe) {
  stripe.all.erase(stripe.ended.front().second);
  stripe.ended.pop_front();
}

void Reservations::Expire(std::int64_t now_ns) {
  for (const auto& stripe : stripes_) {
    MutexLock lock(stripe->mutex);
    for (int i = 0; i < kReservationsPerLock && !stripe->by_expiry.empty(); ++i) {
      const auto [expires_ns, id] = *stripe->by_expiry.begin();
      if (expires_ns > now_ns) break;
      Reservation& reservation = *stripe->all.find(id)->second;
      reservation.Expire();
      NoteEnd(*stripe, id, reservation);
    }
    for (int i = 0; i < kReservationsPerLock && !stripe->ended.empty(); ++i) {
      if (now_ns - stripe->ended.front().first < keep_ended_ns_) break;
      ForgetOldest(*stripe);
    }
  }
}

}  // namespace ebbgate

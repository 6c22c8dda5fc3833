// Reservations by id: those that are open, and for a while those that have ended, so that ending one again repeats the
// first answer.
#ifndef EBBGATE_SERVER_ENGINE_RESERVATIONS_H_
#define EBBGATE_SERVER_ENGINE_RESERVATIONS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "server/engine/call.h"
#include "server/limiter/parameters.h"
#include "server/store/mutex.h"

namespace ebbgate {

// 128 random bits: whoever knows them may end the reservation.
using ReservationId = std::array<std::uint64_t, 2>;

// kReservationIdBytes characters of lower-case hexadecimal.
std::string FormatReservationId(const ReservationId& id);
std::optional<ReservationId> ParseReservationId(absl::string_view text);

struct ReservedCharge {
  // Its end once it has ended; until then limit, key and what was reserved.
  SettledCharge sum;
  // False: nothing was taken for it.
  bool held = false;
  OnHoldExpiry on_expiry = OnHoldExpiry::kSpend;
};

struct Reservation {
  std::uint64_t hold = 0;  // its number in the buckets
  std::int64_t act_ns = 0;
  std::int64_t expires_ns = 0;
  std::vector<ReservedCharge> charges;
  HoldState state = HoldState::kOpen;
  std::int64_t ended_ns = 0;

  // Nobody ended it in time.
  void Expire();
};

// Thread-safe. `max_holds` bounds the charges of open reservations, and with them those that have ended: beyond it the
// oldest of these are forgotten early.
class Reservations {
 public:
  Reservations(std::int64_t max_holds, std::int64_t keep_ended_ns);

  // Room for the charges of one more reservation: to be taken before Add, and returned if none is added.
  bool TakeRoom(std::int64_t charges);
  void ReturnRoom(std::int64_t charges) { open_.fetch_sub(charges, std::memory_order_relaxed); }

  ReservationId Add(Reservation reservation);

  // Calls end(Reservation&) while nobody else can see the reservation; it may set state and ended_ns. Returns false if
  // the id is not known. Locks of shards may be taken inside.
  template <typename End>
  bool Visit(const ReservationId& id, const End& end);

  // Ends what has expired, and forgets what ended long ago; a bounded number at a time.
  void Expire(std::int64_t now_ns);

  // Charges of open reservations.
  std::int64_t open() const { return open_.load(std::memory_order_relaxed); }
  std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::int64_t kStripes = 16;

  struct alignas(64) Stripe {
    Mutex mutex;
    absl::flat_hash_map<ReservationId, std::unique_ptr<Reservation>> all ABSL_GUARDED_BY(mutex);
    absl::btree_set<std::pair<std::int64_t, ReservationId>> by_expiry ABSL_GUARDED_BY(mutex);  // open ones
    std::deque<std::pair<std::int64_t, ReservationId>> ended ABSL_GUARDED_BY(mutex);
  };

  Stripe& StripeOf(const ReservationId& id) { return *stripes_[id[0] % static_cast<std::uint64_t>(kStripes)]; }
  // The reservation is not open any more.
  void NoteEnd(Stripe& stripe, const ReservationId& id, const Reservation& reservation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(stripe.mutex);
  void ForgetOldest(Stripe& stripe) ABSL_EXCLUSIVE_LOCKS_REQUIRED(stripe.mutex);

  const std::int64_t max_holds_;
  const std::int64_t keep_ended_ns_;
  std::vector<std::unique_ptr<Stripe>> stripes_;
  std::atomic<std::int64_t> open_{0};
  std::atomic<std::uint64_t> refused_{0};
};

template <typename End>
bool Reservations::Visit(const ReservationId& id, const End& end) {
  Stripe& stripe = StripeOf(id);
  MutexLock lock(stripe.mutex);
  const auto found = stripe.all.find(id);
  if (found == stripe.all.end()) return false;
  Reservation& reservation = *found->second;
  const bool was_open = reservation.state == HoldState::kOpen;
  end(reservation);
  if (was_open && reservation.state != HoldState::kOpen) NoteEnd(stripe, id, reservation);
  return true;
}

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_ENGINE_RESERVATIONS_H_

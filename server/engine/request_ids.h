// Answers remembered by request id, so that a repeated call is answered again and charged no more (**Once**).
#ifndef EBBGATE_SERVER_ENGINE_REQUEST_IDS_H_
#define EBBGATE_SERVER_ENGINE_REQUEST_IDS_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "server/engine/call.h"
#include "server/engine/reservations.h"
#include "server/store/hashing.h"
#include "server/store/mutex.h"

namespace ebbgate {

// What a call asks for. An id belongs to one kind.
enum class CallKind : std::uint8_t { kShouldAllow, kReserve };

// What a granted reservation is told beyond the answer, in monotonic times.
struct Grant {
  ReservationId id = {};
  std::int64_t granted_ns = 0;
  std::int64_t act_ns = 0;
  std::int64_t expires_ns = 0;
};

// Thread-safe. An id's stripe stays locked while its call is decided, so of twins that arrive together one decides and
// the other gets its answer. Bounded by `max_ids`, where an answer of many charges counts as several; forgets in order
// of age, a few with each call.
class RequestIds {
 public:
  RequestIds(std::int64_t max_ids, std::int64_t window_ns);

  // Answers from memory, or by `decide` and remembers the decision (not an error: asking again may then succeed).
  // The same id with other charges or for another kind of call, or no room, is an error in the answer. `grant` is null
  // for calls that are no reservations.
  void Once(const CallRequest& call, CallKind kind, std::int64_t now_ns, CallAnswer& answer, Grant* grant,
            const std::function<void()>& decide);

  // How many ids are remembered that charged this bucket. Looks at all of them: for people, not for calls.
  std::size_t CountOf(absl::string_view limit, absl::string_view key) const;

  // Forgets what has grown old; at most some thousands at a time.
  void Expire(std::int64_t now_ns);

  std::uint64_t remembered() const;
  // Memory that they take, about.
  std::int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  std::uint64_t replayed() const { return replayed_.load(std::memory_order_relaxed); }
  std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kStripes = 16;

  // What was asked, as 128 bits of keyed hash.
  struct Fingerprint {
    std::uint64_t halves[2];
    friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
  };
  struct Remembered {
    Fingerprint asked;
    std::int64_t recorded_at_ns;
    std::int64_t weight;
    CallAnswer answer;
    Grant grant;                                    // of a reservation that was granted
    absl::InlinedVector<std::uint64_t, 2> buckets;  // that it charges, each as keyed hash
    std::int64_t bytes;
  };
  struct Hash {
    using is_transparent = void;
    PlacementKey key;
    std::size_t operator()(absl::string_view id) const { return PlacementHash(key, id); }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(absl::string_view a, absl::string_view b) const { return a == b; }
  };
  struct alignas(64) Stripe {
    explicit Stripe(const PlacementKey& key) : answers(0, Hash{key}) {}
    mutable Mutex mutex;
    absl::flat_hash_map<std::string, Remembered, Hash, Equal> answers ABSL_GUARDED_BY(mutex);
    struct Age {
      std::int64_t recorded_at_ns;
      std::string id;
    };
    std::deque<Age> by_age ABSL_GUARDED_BY(mutex);
  };

  Fingerprint FingerprintOf(const CallRequest& call, CallKind kind) const;
  std::uint64_t BucketHash(absl::string_view limit, absl::string_view key) const;
  void Remember(Stripe& stripe, const CallRequest& call, Remembered remembered)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(stripe.mutex);
  void ExpireSome(Stripe& stripe, std::int64_t now_ns, int at_most) ABSL_EXCLUSIVE_LOCKS_REQUIRED(stripe.mutex);
  void Forget(Stripe& stripe, absl::string_view id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(stripe.mutex);
  bool TakeRoom(std::int64_t weight);

  const std::int64_t max_weight_;
  const std::int64_t window_ns_;
  const PlacementKey keys_[2];
  std::vector<std::unique_ptr<Stripe>> stripes_;
  std::atomic<std::int64_t> weight_{0};
  std::atomic<std::int64_t> bytes_{0};
  std::atomic<std::uint64_t> replayed_{0};
  std::atomic<std::uint64_t> refused_{0};
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_ENGINE_REQUEST_IDS_H_

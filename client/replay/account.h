// Who was admitted how much and when: an EnvelopeCheck for each key of a case, once the case is over.
//
// A reservation counts when its work may begin, which may be after calls that came later, and with what was finally
// settled, which may be known only at the end. So admissions are gathered first and judged in order of their times.
// What was spent beyond a reservation is left out: it is no admission, but a debt for later ones to pay. So are, after
// a change of a key's parameters, the promises made before it: they are kept, whatever the new ones say.
#ifndef EBBGATE_CLIENT_REPLAY_ACCOUNT_H_
#define EBBGATE_CLIENT_REPLAY_ACCOUNT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/call.h"
#include "server/limiter/parameters.h"

namespace ebbgate::replay {

// A breach of **Envelope**, and the admission that made it.
struct Breach {
  int step = 0;
  std::int64_t at_ns = 0;
  std::string what;
};

// Not thread-safe. Follows the limits by itself, overrides included, so that a bucket given wrong parameters is seen.
// Memory: under 100 bytes for each instant at which a key was admitted something.
class Account {
 public:
  explicit Account(const std::vector<Limit>& limits) : limits_(limits) {}

  // Enters what a call of step `step` was charged.
  void Take(const CallRequest& call, const CallAnswer& answer, std::int64_t at_ns, int step);
  // Enters what a reservation may spend, and what became of one.
  void Reserve(const CallRequest& call, const ReserveAnswer& answer, std::int64_t at_ns, int step);
  void End(const std::string& reservation_id, const SettleAnswer& answer);

  void Reload(const std::vector<Limit>& limits, std::int64_t at_ns);

  // The case ends at `now_ns`.
  std::vector<Breach> Judge(std::int64_t now_ns);

 private:
  using BucketName = std::pair<std::string, std::string>;

  // Something that happened to a bucket: an admission, or new parameters (null where the bound ends).
  struct Event {
    std::int64_t at_ns = 0;
    std::size_t entered = 0;  // in this order
    int step = 0;
    bool promised = false;
    bool change = false;
    Microtokens cost = 0;
    std::shared_ptr<const Parameters> parameters = nullptr;
  };
  struct Bucket {
    std::shared_ptr<const Parameters> parameters;  // now; null: without a bound
    std::int64_t last_ns = 0;                      // the latest reading that counted
    std::vector<Event> events;
  };
  struct Reservation {
    // For each charge its event, as its bucket and its place there; no bucket where nothing was taken.
    std::vector<std::pair<Bucket*, std::size_t>> events;
    std::vector<std::string> limits;
    std::int64_t expires_at_ns = 0;
    bool ended = false;
  };

  const Limit* Find(absl::string_view name) const;
  // The bucket of a charge that took `cost`; null where no bound holds or nothing was taken.
  Bucket* Charged(const ChargeRequest& charge, const ChargeAnswer& answer, Microtokens& cost);
  static void Judge(const BucketName& name, Bucket& bucket, std::vector<Breach>& breaches);

  std::vector<Limit> limits_;
  std::map<BucketName, Bucket> buckets_;
  std::map<std::string, Reservation> reservations_;
  std::size_t entered_ = 0;
};

// The parameters of a key: an exact override, else the first pattern that matches, else the limit's own.
const Parameters& ParametersOf(const Limit& limit, absl::string_view key);

}  // namespace ebbgate::replay

#endif  // EBBGATE_CLIENT_REPLAY_ACCOUNT_H_

// One call decided over locked shards: find the buckets, see whether all fit, charge all or none, say what is left.
//
// decision.cc decides what may be done now; promising.cc what may be done later, and how a hold ends.
#ifndef EBBGATE_SERVER_ENGINE_DECISION_H_
#define EBBGATE_SERVER_ENGINE_DECISION_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/engine/call.h"
#include "server/engine/engine.h"
#include "server/engine/limit_table.h"
#include "server/limiter/bounds.h"
#include "server/limiter/bucket.h"
#include "server/limiter/promises.h"
#include "server/store/store.h"

namespace ebbgate {

// A charge whose limit was found and whose fields were checked.
struct ResolvedCharge {
  const CompiledLimit* limit = nullptr;  // null: not configured, and the settings say what becomes of it
  absl::string_view key;
  std::int64_t cost = 0;  // whole tokens
  std::uint32_t shard = 0;
  std::uint64_t hash = 0;
  Entry* guess = nullptr;  // where the key's entry probably is, if it was fetched ahead
};

// On what terms tokens are reserved.
struct ReserveTerms {
  std::uint64_t hold = 0;  // which hold, unique in this process
  std::int64_t max_wait_ns = 0;
  std::int64_t hold_ns = 0;
};

// When the work of a granted reservation may start, and which charges were taken: not those that only look, that a
// limit in shadow mode would have refused, or that found no room and were admitted without an account.
struct Reserved {
  std::int64_t act_ns = 0;
  std::int64_t expires_ns = 0;
  std::uint32_t held = 0;  // bit i: charge i
};
static_assert(kMaxChargesPerCall <= 32, "Reserved::held has one bit for each charge");

// What the engine counts beside the tallies of limits.
struct StoreEvents {
  std::atomic<std::uint64_t> keys_expired{0};
  std::atomic<std::uint64_t> keys_given_up{0};
  std::atomic<std::uint64_t> keys_reset{0};
  std::atomic<std::uint64_t> full_denied{0};
  std::atomic<std::uint64_t> full_allowed{0};
  std::atomic<std::uint64_t> clock_regressions{0};
};

// The buckets of all keys, at one moment, under the locks of the shards that are used. Cheap to make.
class Ledger {
 public:
  Ledger(Store& store, const LimitTable& limits, const EngineOptions& options, const Moment& moment,
         StoreEvents& events)
      : store_(store), limits_(limits), options_(options), moment_(moment), events_(events) {}

  // Decides and charges (not if `peek`). Sets everything in `answer` but `replayed`; counts in the shards' tallies.
  // Returns false, having charged nothing, if there was no room and the policy is to deny.
  bool Decide(absl::Span<const ResolvedCharge> charges, bool peek, CallAnswer& answer);

  // Reserves for all charges or for none, at the earliest time that suits all of them. Sets everything in `answer` but
  // `replayed`, and `reserved` if granted. Returns false as Decide does.
  bool Reserve(absl::Span<const ResolvedCharge> charges, const ReserveTerms& terms, CallAnswer& answer,
               Reserved& reserved);

  // Ends a hold on one bucket; `actual` is what was spent, whole tokens.
  HoldEnd EndHold(const ResolvedCharge& charge, std::uint64_t hold, std::int64_t actual);

  // What a bucket has promised, brought up to the moment; null if nothing (any more).
  Promises* BringUp(Shard& shard, Entry& entry);

  // The entry of a key, its state brought up to date with the limits in force; null if there is none.
  Entry* Find(const ResolvedCharge& charge);

  // Gives an entry the state of a full bucket.
  void MakeFull(Entry& entry);

  // Forgets an entry and what it owns.
  void Forget(Shard& shard, Entry& entry);

  // Looks at `steps` entries of a shard and forgets those that cannot be told from full and were not charged for
  // `min_idle_ns`.
  void ExpireSome(Shard& shard, std::uint64_t& cursor, int steps, std::int64_t min_idle_ns);

  // Brings an entry written under the limits before these up to date: **Settled change**.
  void Settle(Shard& shard, Entry& entry);

  const Moment& moment() const { return moment_; }

 private:
  // A bucket that the call touches, on a copy; charges to one bucket share it. Trivial, so that making room for many
  // costs nothing.
  struct Account {
    const ResolvedCharge* charge;  // the first to this bucket
    Shard* shard;
    const Parameters* parameters;
    Entry* entry;        // null: none yet, or none to be had
    Promises* promises;  // null nearly always
    BucketState state;
    Microtokens available;
    std::int64_t cost;           // whole tokens, of all its charges
    std::int64_t granted_bytes;  // heap memory that was taken from the budget for this charge
    std::uint32_t policy;
    bool fits;
    bool never;
    bool added;
    Reason refusal;  // of a reservation only

    const Limit& limit() const { return *charge->limit->config; }
    bool to_be_charged() const { return cost > 0 && fits; }
    // An entry that only changes in place.
    bool has_room() const { return entry != nullptr && parameters->algorithm != Algorithm::kExactWindow; }
  };
  static_assert(std::is_trivially_default_constructible_v<Account>);

  bool IsSettled(const Entry& entry) const {
    return entry.generation == static_cast<std::uint8_t>(limits_.generation());
  }

  // Steps of a decision, for one account each.
  void Open(const ResolvedCharge& charge, Account& account);
  void Weigh(Account& account) const;
  static bool Refuses(const Account& account) { return !account.fits && !account.limit().shadow; }
  bool HasRoom(Account& account) { return !account.to_be_charged() || account.has_room() || MakeRoomFor(account); }
  bool MakeRoomFor(Account& account);
  void TakeRoomBack(Account& account);
  void ChargeOne(Account& account);
  Microtokens Spendable(const Account& account) const;
  std::int64_t WaitOf(const Account& account) const;
  void AnswerOne(const Account& account, ChargeAnswer& answer) const;
  static void CountOne(const ResolvedCharge& charge, Account& account, bool peek, bool allowed, Reason reason);

  bool DecideSingle(const ResolvedCharge& charge, bool peek, CallAnswer& answer);
  bool DecideSeveral(absl::Span<const ResolvedCharge> charges, bool peek, CallAnswer& answer);
  void OpenAll(absl::Span<const ResolvedCharge> charges);
  bool MakeRoomForAll();
  void AnswerAll(absl::Span<const ResolvedCharge> charges, CallAnswer& answer) const;
  void AnswerUnknown(const ResolvedCharge& charge, ChargeAnswer& answer) const;
  void CountAll(absl::Span<const ResolvedCharge> charges, bool peek, const CallAnswer& answer);
  bool PromisesAny() const;

  // Steps of a reservation.
  static bool Hinders(const Account& account) { return account.cost > 0 && !account.never && !account.limit().shadow; }
  std::int64_t EarliestOf(const Account& account, std::int64_t not_before_ns) const;
  std::int64_t EarliestTogether() const;
  std::int64_t LastActNs() const;
  Reason WhyNot(const Account& account, const ReserveTerms& terms, std::int64_t act_ns) const;
  void Judge(absl::Span<const ResolvedCharge> charges, const ReserveTerms& terms, std::int64_t act_ns);
  void Hold(Account& account, const ReserveTerms& terms, const Reserved& reserved);
  std::uint32_t HeldOf(absl::Span<const ResolvedCharge> charges) const;
  void ExplainRefusal(absl::Span<const ResolvedCharge> charges, std::int64_t retry_after_ns, CallAnswer& answer) const;

  Store& store_;
  const LimitTable& limits_;
  const EngineOptions& options_;
  const Moment& moment_;
  StoreEvents& events_;

  std::size_t accounts_used_ = 0;
  std::array<Account, kMaxChargesPerCall> accounts_;
  std::array<std::uint8_t, kMaxChargesPerCall> account_of_;
  bool refused_ = false;
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_ENGINE_DECISION_H_

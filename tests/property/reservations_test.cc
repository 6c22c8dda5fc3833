// Random histories of Reserve, Settle, Cancel and ShouldAllow over several limits, with holds that expire, calls that
// are repeated and limits that change, through the engine and a model that remembers everything.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/engine.h"
#include "server/limiter/manual_time.h"
#include "tests/property/engine_model.h"
#include "tests/property/envelope.h"
#include "tests/property/history.h"
#include "tests/property/promise_model.h"
#include "tests/property/random.h"
#include "tests/support/durations.h"

namespace ebbgate::testing {
namespace {

using Key = std::pair<std::string, std::string>;

constexpr std::int64_t kStartNs = 1'000'000'000'000;

std::string Wrong(const std::string& what, std::int64_t is, std::int64_t due) {
  return is == due ? "" : absl::StrCat(what, " is ", is, " and should be ", due, "; ");
}

// Small numbers, so that calls wait for seconds and promises get into each other's way.
Parameters SmallParameters(Random& random, Algorithm algorithm) {
  Parameters p;
  p.algorithm = algorithm;
  p.capacity = FromTokens(random.OneIn(3) ? random.Between(10, 30) : random.Between(1, 9));
  if (IsBucket(algorithm)) {
    p.refill = {.tokens = FromTokens(random.Between(1, 4)), .per_ns = random.Between(1, 7) * kSecond / 3};
    p.pace = random.OneIn(6);
  } else {
    p.window.length_ns = random.Between(2, 20) * kSecond;
  }
  return p;
}

Limit SmallLimit(Random& random, const std::string& name, bool refills) {
  Limit limit;
  limit.name = name;
  limit.parameters = SmallParameters(random, kAllAlgorithms[random.Between(0, refills ? 1 : 4)]);
  limit.shadow = random.OneIn(8);
  limit.max_debt = random.Pick<std::int64_t>({0, 5, 12, 1000, 1000, 1000});
  limit.max_holds = random.Pick<std::int64_t>({2, 4, 1000, 1000});
  limit.on_hold_expiry = random.OneIn(3) ? OnHoldExpiry::kGiveBack : OnHoldExpiry::kSpend;
  return limit;
}

// What is asked of one bucket by one call.
struct Asked {
  PromiseModel* model;
  std::int64_t tokens = 0;

  Microtokens cost() const { return FromTokens(tokens); }
  bool never() const { return cost() > model->limit().parameters.capacity; }
  bool shadow() const { return model->limit().shadow; }
  bool hinders() const { return tokens > 0 && !never() && !shadow(); }
};

struct Made {
  std::string id;
  std::uint64_t hold = 0;
  std::vector<OwnCharge> charges;
  std::set<Key> held;
  std::int64_t expires_ns = 0;
  HoldState state = HoldState::kOpen;
  SettleAnswer end;
};

struct Shape {
  bool changes = false;
  // One key, and many small holds on it that stay open for long.
  bool narrow = false;
};

class ReservationHistory {
 public:
  ReservationHistory(std::uint64_t stream, const Shape& shape)
      : random_(Seed(), stream), changes_(shape.changes), narrow_(shape.narrow) {
    const bool changes = shape.changes;
    for (int i = 0; i < (narrow_ ? 1 : 3); ++i) {
      limits_.push_back(SmallLimit(random_, absl::StrCat("limit-", i), changes));
      if (!changes) continue;
      limits_.back().shadow = false;
      limits_.back().max_debt = 1'000'000;
      limits_.back().max_holds = 1000;
    }
    engine_.InstallLimits(limits_);
  }

  // What went wrong, or "".
  std::string Step() {
    Pause();
    now_ns_ = time_.MonotonicNs();
    if (random_.OneIn(6)) engine_.Maintain();
    for (auto& [key, model] : models_) model.Expire(now_ns_);
    for (Made& made : made_) {
      if (made.state == HoldState::kOpen && made.expires_ns <= now_ns_) made.state = HoldState::kExpired;
    }
    const std::int64_t kind = random_.Between(0, 9);
    std::string wrong;
    if (kind < 3) {
      wrong = changes_ ? FollowCheck() : Check();
    } else if (kind < 7) {
      wrong = changes_ ? FollowReserve() : Reserve();
    } else {
      wrong = kind == 9 && changes_ ? Change() : End();
    }
    return wrong + CompareLevels();
  }

  // What held over the whole history.
  std::string Sum() {
    std::string wrong;
    for (const auto& [key, model] : models_) {
      if (changes_) break;
      if (!KeepsBounds(model, key)) absl::StrAppend(&wrong, key.first, "/", key.second, " broke Envelope; ");
    }
    return wrong;
  }

 private:
  void Pause() {
    std::set<std::int64_t> events;
    for (const auto& [key, model] : models_) {
      for (const PromisedCharge& charge : model.charges()) {
        if (charge.at_ns > now_ns_) events.insert(charge.at_ns);
        if (charge.open && charge.expires_ns > now_ns_) events.insert(charge.expires_ns);
      }
    }
    switch (random_.Between(0, 7)) {
      case 0:
      case 1:
        break;
      case 2:  // To where something happens, or a nanosecond before it.
        if (!events.empty()) time_.MoveTo(std::max(now_ns_, *events.begin() - random_.Between(0, 1)));
        break;
      case 3:
        time_.Advance(random_.Magnitude(1, 60 * kSecond));
        break;
      default:
        time_.Advance(random_.Between(0, 3 * kSecond));
    }
  }

  Limit& AnyLimit() {
    return limits_[static_cast<std::size_t>(random_.Between(0, static_cast<std::int64_t>(limits_.size()) - 1))];
  }

  OwnCall RandomCall() {
    OwnCall call;
    for (std::int64_t i = random_.OneIn(3) ? random_.Between(2, 4) : 1; i > 0; --i) {
      const Limit& limit = AnyLimit();
      const std::int64_t capacity = limit.parameters.capacity / kMicrotokensPerToken;
      const std::int64_t most = narrow_ ? std::max<std::int64_t>(1, capacity / 3) : capacity + random_.OneIn(9);
      call.charges.push_back({limit.name, absl::StrCat("key-", random_.Between(0, narrow_ ? 0 : 1)),
                              random_.OneIn(12) ? 0 : random_.Between(1, most)});
    }
    return call;
  }

  PromiseModel& ModelOf(const Key& key) {
    const auto limit =
        std::find_if(limits_.begin(), limits_.end(), [&](const Limit& each) { return each.name == key.first; });
    return models_.try_emplace(key, *limit, now_ns_).first->second;
  }

  // Charges to one bucket add up.
  std::map<Key, Asked> Buckets(const OwnCall& call) {
    std::map<Key, Asked> buckets;
    for (const OwnCharge& charge : call.charges) {
      const Key key = {charge.limit, charge.key};
      buckets.try_emplace(key, Asked{&ModelOf(key)}).first->second.tokens += *charge.cost;
    }
    return buckets;
  }

  // The earliest time that suits all that can refuse.
  std::int64_t Together(const std::map<Key, Asked>& buckets) const {
    std::set<std::int64_t> candidates = {now_ns_};
    for (const auto& [key, asked] : buckets) {
      if (!asked.hinders()) continue;
      for (const std::int64_t at_ns : asked.model->Candidates(now_ns_, asked.cost())) candidates.insert(at_ns);
    }
    for (const std::int64_t at_ns : candidates) {
      const bool suits = std::all_of(buckets.begin(), buckets.end(), [&](const auto& bucket) {
        return !bucket.second.hinders() || bucket.second.model->MayHappen(at_ns, bucket.second.cost());
      });
      if (suits) return at_ns;
    }
    return -1;
  }

  std::int64_t Alone(const Asked& asked) const {
    for (const std::int64_t at_ns : asked.model->Candidates(now_ns_, asked.cost())) {
      if (asked.model->MayHappen(at_ns, asked.cost())) return at_ns;
    }
    return -1;
  }

  // --- ShouldAllow ---

  std::string Check() {
    OwnCall call = RandomCall();
    call.peek = random_.OneIn(10);
    const std::map<Key, Asked> buckets = Buckets(call);
    bool refused = false, never = false;
    for (const auto& [key, asked] : buckets) {
      if (asked.shadow()) continue;
      never |= asked.never();
      refused |= asked.never() || !asked.model->MayHappen(now_ns_, asked.cost());
    }
    std::map<Key, std::int64_t> alone;
    for (const auto& [key, asked] : buckets) alone[key] = asked.never() ? -1 : Alone(asked);
    const std::int64_t together = refused ? Together(buckets) - now_ns_ : kNoWait;
    CallAnswer answer;
    std::vector<ChargeRequest> charges;
    engine_.Decide(View(call, charges), answer);
    if (answer.error != nullptr) return absl::StrCat("an error: ", answer.error->message);
    std::string wrong = Wrong("allowed", answer.allowed, !refused) +
                        Wrong("retry_after", answer.retry_after_ns, never ? kNoWait : together);
    for (const auto& [key, asked] : buckets) {
      const bool fits = !asked.never() && asked.model->MayHappen(now_ns_, asked.cost());
      if (!refused && !call.peek && fits) asked.model->Charge({.at_ns = now_ns_, .cost = asked.cost()});
    }
    for (std::size_t i = 0; i < call.charges.size(); ++i) {
      const Key key = {call.charges[i].limit, call.charges[i].key};
      const ChargeAnswer& each = answer.charges[i];
      wrong += Wrong("remaining", each.remaining, buckets.at(key).model->Remaining(now_ns_));
      if (each.reason == Reason::kQuotaExceeded) {
        wrong += Wrong("its retry_after", each.retry_after_ns, alone.at(key) - now_ns_);
      }
    }
    return wrong;
  }

  // --- Reserve ---

  bool TooMuchDebt(const Asked& asked, std::int64_t act_ns) const {
    return asked.tokens > 0 && act_ns > now_ns_ &&
           asked.model->Owed(now_ns_) + asked.cost() > FromTokens(*asked.model->limit().max_debt);
  }
  bool TooManyHolds(const Asked& asked) const {
    std::int64_t holds = 0;
    for (const PromisedCharge& charge : asked.model->charges()) {
      holds += charge.hold != 0 && (charge.open || (charge.at_ns > now_ns_ && charge.cost > 0));
    }
    return asked.tokens > 0 && holds >= asked.model->limit().max_holds;
  }

  std::string Reserve() {
    if (!remembered_.empty() && random_.OneIn(8)) return ReserveAgain();
    const OwnCall call = RandomCall();
    const std::map<Key, Asked> buckets = Buckets(call);
    const std::int64_t max_wait_ns = random_.OneIn(3) ? 0 : random_.Between(0, 30 * kSecond);
    const std::int64_t hold_ns = random_.OneIn(narrow_ ? 8 : 2) ? random_.Between(1, 5 * kSecond) : 100 * kSecond;
    const std::int64_t act_ns = Together(buckets);
    bool never = false, debt = false, holds = false;
    for (const auto& [key, asked] : buckets) {
      if (asked.shadow()) continue;
      never |= asked.never();
      debt |= TooMuchDebt(asked, act_ns);
      holds |= TooManyHolds(asked);
    }
    const bool late = act_ns - now_ns_ > max_wait_ns;
    std::vector<ChargeRequest> charges;
    const std::string request_id = random_.OneIn(3) ? absl::StrCat("id-", next_request_id_++) : "";
    ReserveRequest request = {.call = View(call, charges), .max_wait_ns = max_wait_ns, .hold_ns = hold_ns};
    request.call.request_id = request_id;
    ReserveAnswer answer;
    engine_.Reserve(request, answer);
    if (answer.call.error != nullptr) return absl::StrCat("an error: ", answer.call.error->message);
    const bool granted = !never && !debt && !holds && !late;
    std::string wrong = Wrong("granted", answer.call.allowed, granted);
    if (!request_id.empty()) remembered_.push_back({call, request, answer, now_ns_});
    if (!granted) {
      const Reason due = never  ? Reason::kCostExceedsCapacity
                         : late ? Reason::kQuotaExceeded
                         : debt ? Reason::kTooMuchDebt
                                : Reason::kTooManyHolds;
      return wrong + Wrong("reason", static_cast<int>(answer.call.reason), static_cast<int>(due)) +
             Wrong("retry_after", answer.call.retry_after_ns,
                   due == Reason::kQuotaExceeded ? act_ns - now_ns_ - max_wait_ns : kNoWait);
    }
    wrong += Wrong("act_after", answer.act_after_ns, act_ns - now_ns_) +
             Wrong("expires_after", answer.expires_after_ns, act_ns - now_ns_ + hold_ns);
    Made made{.id = answer.reservation_id, .hold = ++next_hold_, .charges = call.charges, .held = {}, .end = {}};
    made.expires_ns = act_ns + hold_ns;
    // **All or nothing**, but for limits in shadow mode, which take part where it suits them.
    for (const auto& [key, asked] : buckets) {
      const bool fits = !asked.never() && asked.tokens > 0 && asked.model->MayHappen(act_ns, asked.cost()) &&
                        !TooMuchDebt(asked, act_ns) && !TooManyHolds(asked);
      if (!fits) continue;
      asked.model->Charge({act_ns, asked.cost(), made.hold, true, made.expires_ns});
      made.held.insert(key);
    }
    for (std::size_t i = 0; i < call.charges.size(); ++i) {
      const Key key = {call.charges[i].limit, call.charges[i].key};
      wrong += Wrong("remaining", answer.call.charges[i].remaining, buckets.at(key).model->Remaining(now_ns_));
    }
    made_.push_back(std::move(made));
    return wrong;
  }

  // **Once**.
  std::string ReserveAgain() {
    const Remembered& before =
        remembered_[static_cast<std::size_t>(random_.Between(0, static_cast<std::int64_t>(remembered_.size()) - 1))];
    std::vector<ChargeRequest> charges;
    ReserveRequest request = before.request;
    const std::string request_id(before.request_id);
    request.call = View(before.call, charges);
    request.call.request_id = request_id;
    ReserveAnswer answer;
    engine_.Reserve(request, answer);
    CallAnswer due = before.answer.call;
    due.replayed = true;
    const std::int64_t passed_ns = now_ns_ - before.at_ns;
    const auto left = [&](std::int64_t ns) { return std::max<std::int64_t>(0, ns - passed_ns); };
    return Difference(answer.call, due) +
           Wrong("act_after", answer.act_after_ns, due.allowed ? left(before.answer.act_after_ns) : 0) +
           Wrong("expires_after", answer.expires_after_ns, due.allowed ? left(before.answer.expires_after_ns) : 0) +
           Wrong("same id", answer.reservation_id == before.answer.reservation_id, 1);
  }

  // --- Settle and Cancel ---

  std::string End() {
    if (made_.empty()) return "";
    const std::int64_t newest = static_cast<std::int64_t>(made_.size()) - 1;
    Made& made = made_[static_cast<std::size_t>(
        random_.OneIn(3) ? random_.Between(0, newest) : std::max<std::int64_t>(0, newest - random_.Between(0, 4)))];
    const bool cancel = random_.OneIn(2);
    std::vector<std::int64_t> actual;
    for (const OwnCharge& charge : made.charges) {
      actual.push_back(cancel             ? 0
                       : random_.OneIn(4) ? *charge.cost + random_.Between(1, 15)
                                          : random_.Between(0, *charge.cost));
    }
    SettleAnswer answer;
    if (cancel) {
      engine_.Cancel(made.id, answer);
    } else {
      engine_.Settle(made.id, actual, answer);
    }
    if (answer.error != nullptr) return absl::StrCat("an error: ", answer.error->message);
    if (made.state != HoldState::kOpen) {
      std::string wrong = Wrong("state", static_cast<int>(answer.state), static_cast<int>(made.state)) +
                          Wrong("repeated", answer.repeated, true);
      for (std::size_t i = 0; i < made.end.charges.size(); ++i) {
        wrong += Wrong("actual", answer.charges[i].actual, made.end.charges[i].actual) +
                 Wrong("given_back", answer.charges[i].given_back, made.end.charges[i].given_back);
      }
      return wrong;
    }
    made.state = cancel ? HoldState::kCancelled : HoldState::kSettled;
    made.end = answer;
    return Wrong("state", static_cast<int>(answer.state), static_cast<int>(made.state)) +
           Wrong("repeated", answer.repeated, false) + EndInModel(made, actual, answer);
  }

  std::string EndInModel(const Made& made, const std::vector<std::int64_t>& actual, const SettleAnswer& answer) {
    std::map<Key, std::pair<std::int64_t, std::int64_t>> sums;  // actual, and what the engine left uncovered
    std::string wrong;
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const SettledCharge& each = answer.charges[i];
      wrong += Wrong("reserved", each.reserved, *made.charges[i].cost) + Wrong("actual", each.actual, actual[i]) +
               Wrong("sum", each.reserved + each.overrun, each.actual + each.given_back);
      auto& [spent, uncovered] = sums[{made.charges[i].limit, made.charges[i].key}];
      spent += actual[i];
      uncovered += each.uncovered;
    }
    for (const auto& [key, sum] : sums) {
      if (made.held.count(key) == 0) continue;
      PromiseModel& model = ModelOf(key);
      const Microtokens cost = model.Find(made.hold)->cost;
      const Microtokens spent = FromTokens(sum.first);
      model.End(made.hold, std::min(cost, spent));
      if (spent <= cost) continue;
      const mpz_class room = FromTokens(*model.limit().max_debt) - model.Owed(now_ns_);
      const Microtokens overrun = spent - cost;
      const Microtokens covered = room <= 0 ? 0 : room >= overrun ? overrun : room.get_si();
      if (covered > 0) model.Charge({.at_ns = now_ns_, .cost = covered, .hold = kOverrun});
      wrong += Wrong("uncovered", sum.second, (overrun - covered + kMicrotokensPerToken - 1) / kMicrotokensPerToken);
    }
    return wrong;
  }

  // --- Limits change ---
  //
  // A change rounds the fraction of a microtoken down, and so may a bucket be behind the model, which rounds what would
  // have been, by the rounding of its changes. So the engine's decisions are followed here and not foretold; what it
  // admits the model must have, too.

  std::string FollowCheck() {
    const OwnCall call = RandomCall();
    const std::map<Key, Asked> buckets = Buckets(call);
    CallAnswer answer;
    std::vector<ChargeRequest> charges;
    engine_.Decide(View(call, charges), answer);
    if (answer.error != nullptr) return absl::StrCat("an error: ", answer.error->message);
    return answer.allowed ? Follow(buckets, {.at_ns = now_ns_}) : "";
  }

  std::string FollowReserve() {
    const OwnCall call = RandomCall();
    const std::map<Key, Asked> buckets = Buckets(call);
    std::vector<ChargeRequest> charges;
    const std::int64_t hold_ns = random_.Between(1, 20 * kSecond);
    ReserveAnswer answer;
    engine_.Reserve({.call = View(call, charges), .max_wait_ns = random_.Between(0, 30 * kSecond), .hold_ns = hold_ns},
                    answer);
    if (answer.call.error != nullptr) return absl::StrCat("an error: ", answer.call.error->message);
    if (!answer.call.allowed) return "";
    Made made{.id = answer.reservation_id, .hold = ++next_hold_, .charges = call.charges, .held = {}, .end = {}};
    const std::int64_t act_ns = now_ns_ + answer.act_after_ns;
    made.expires_ns = act_ns + hold_ns;
    for (const auto& [key, asked] : buckets) {
      if (asked.tokens > 0) made.held.insert(key);
    }
    const PromisedCharge charge = {.at_ns = act_ns, .hold = made.hold, .open = true, .expires_ns = made.expires_ns};
    made_.push_back(std::move(made));
    return Follow(buckets, charge);
  }

  std::string Follow(const std::map<Key, Asked>& buckets, PromisedCharge charge) {
    std::string wrong;
    for (const auto& [key, asked] : buckets) {
      if (asked.tokens == 0) continue;
      if (!asked.model->MayHappen(charge.at_ns, asked.cost())) {
        absl::StrAppend(&wrong, key.first, "/", key.second, " had no ", asked.tokens, "; ");
      }
      charge.cost = asked.cost();
      asked.model->Charge(charge);
    }
    return wrong;
  }

  std::string Change() {
    time_.Advance(1);
    now_ns_ = time_.MonotonicNs();
    for (auto& [key, model] : models_) model.Expire(now_ns_);
    Limit& limit = AnyLimit();
    std::string wrong;
    // What the engine does not know is full, and becomes as full as the new limit says.
    for (auto model = models_.begin(); model != models_.end();) {
      const bool known = engine_.Inspect(model->first.first, model->first.second)->known;
      if (!known && model->second.Available(now_ns_) != model->second.limit().parameters.capacity) {
        absl::StrAppend(&wrong, model->first.first, "/", model->first.second, " was forgotten and not full; ");
      }
      model = known ? std::next(model) : models_.erase(model);
    }
    limit.parameters = SmallLimit(random_, limit.name, true).parameters;
    engine_.InstallLimits(limits_);
    for (auto& [key, model] : models_) {
      if (key.first == limit.name) model.Change(limit, now_ns_);
    }
    ++changes_made_;
    time_.Advance(1);
    now_ns_ = time_.MonotonicNs();
    return wrong;
  }

  std::string CompareLevels() {
    std::string wrong;
    for (auto& [key, model] : models_) {
      const absl::StatusOr<Inspection> is = engine_.Inspect(key.first, key.second);
      const mpz_class due = model.Available(now_ns_);
      // Each change may have cost less than a microtoken.
      const std::int64_t behind = changes_made_;
      if (is->level > due || is->level < due - behind)
        absl::StrAppend(&wrong, key.first, "/", key.second, " holds ", is->level, " and not ", due.get_str(), "; ");
      if (changes_ || !IsBucket(model.limit().parameters.algorithm)) continue;
      // Conservation: tokens in = spent + held + level + what ran over.
      const PromiseModel::Books books = model.BooksAt(now_ns_);
      const mpq_class there = books.in - books.spent - books.held - books.ran_over;
      const mpq_class off = there - is->level;
      if (off < 0 || off >= 1) absl::StrAppend(&wrong, key.first, "/", key.second, " does not balance; ");
    }
    return wrong;
  }

  // **Envelope**: each hold at its act with what was spent of it, overruns apart.
  bool KeepsBounds(const PromiseModel& model, const Key&) const {
    const Parameters& p = model.limit().parameters;
    std::vector<BucketEvent> events = {{.at_ns = kStartNs, .cost = 0, .capacity = p.capacity, .refill = p.refill}};
    std::vector<Admission> admissions;
    for (const PromisedCharge& charge : model.charges()) {
      if (charge.cost == 0 || charge.hold == kOverrun) continue;
      events.push_back({.at_ns = charge.at_ns, .cost = charge.cost});
      admissions.push_back({charge.at_ns, charge.cost});
    }
    if (IsBucket(p.algorithm)) return KeepsEnvelope(events);
    if (p.algorithm == Algorithm::kExactWindow) return KeepsExactWindow(admissions, p.capacity, p.window.length_ns);
    return KeepsEachWindow(admissions, p.capacity, p.window.length_ns);
  }

  static constexpr std::uint64_t kOverrun = UINT64_MAX;

  struct Remembered {
    OwnCall call;
    ReserveRequest request;
    ReserveAnswer answer;
    std::int64_t at_ns;
    std::string request_id;
    Remembered(const OwnCall& c, const ReserveRequest& r, const ReserveAnswer& a, std::int64_t at)
        : call(c), request(r), answer(a), at_ns(at), request_id(r.call.request_id) {}
  };

  Random random_;
  const bool changes_;
  const bool narrow_;
  // Monotonic time counts as epoch time, as in the references.
  ManualTime time_{kStartNs, kStartNs};
  Engine engine_{{.dedupe_window_ns = 24 * kHour}, time_};
  std::vector<Limit> limits_;
  std::map<Key, PromiseModel> models_;
  std::vector<Made> made_;
  std::vector<Remembered> remembered_;
  std::uint64_t next_hold_ = 0;
  int next_request_id_ = 0;
  int changes_made_ = 0;
  std::int64_t now_ns_ = kStartNs;
};

void Replay(int histories, const Shape& shape) {
  for (int history = 0; history < Times(histories); ++history) {
    SCOPED_TRACE(Again(Seed(), history));
    ReservationHistory one(static_cast<std::uint64_t>(history), shape);
    for (int i = 0; i < 60; ++i) {
      const std::string wrong = one.Step();
      ASSERT_EQ(wrong, "") << "at step " << i;
    }
    ASSERT_EQ(one.Sum(), "");
  }
}

// Every answer, every level, conservation after every step; **Envelope**, **Once**, **All or nothing**.
TEST(ReservationsExact, HistoriesGoAsByTheModel) { Replay(400, {}); }
TEST(ReservationsExact, ManyHoldsOnOneKey) { Replay(1500, {.narrow = true}); }
TEST(ReservationsSettledChange, HistoriesGoAsByTheModel) { Replay(400, {.changes = true}); }
TEST(ReservationsSettledChange, ManyHoldsOnOneKey) { Replay(400, {.changes = true, .narrow = true}); }

}  // namespace
}  // namespace ebbgate::testing

#include "client/replay/account.h"

#include <algorithm>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "client/replay/envelope.h"

namespace ebbgate::replay {
namespace {

bool HasEnvelope(const Parameters& parameters) {
  return parameters.algorithm == Algorithm::kTokenBucket || parameters.algorithm == Algorithm::kGcra;
}

// Whole tokens and what is over: "2.5".
std::string Tokens(Int128 microtokens) {
  std::string text = absl::StrCat(static_cast<std::int64_t>(microtokens / kMicrotokensPerToken));
  const auto rest = static_cast<std::int64_t>(microtokens % kMicrotokensPerToken);
  if (rest != 0) absl::StrAppend(&text, ".", absl::Dec(rest, absl::kZeroPad6));
  return text;
}

std::string Describe(const EnvelopeViolation& violation, const std::string& limit, const std::string& key) {
  return absl::StrCat(Tokens(violation.admitted), " admitted to ", limit, " / ", key, " from ",
                      DescribeNs(violation.from_ns), " to ", DescribeNs(violation.to_ns), ", at most ",
                      Tokens(violation.bound), " may be");
}

}  // namespace

const Parameters& ParametersOf(const Limit& limit, absl::string_view key) {
  const Override* chosen = nullptr;
  for (const Override& override : limit.overrides) {
    if (!override.is_pattern() && override.key == key) return override.parameters;
    if (chosen == nullptr && override.is_pattern() && MatchesPattern(override.key, key)) chosen = &override;
  }
  return chosen == nullptr ? limit.parameters : chosen->parameters;
}

const Limit* Account::Find(absl::string_view name) const {
  const auto found = absl::c_find_if(limits_, [&](const Limit& limit) { return limit.name == name; });
  return found == limits_.end() ? nullptr : &*found;
}

Account::Bucket* Account::Charged(const ChargeRequest& charge, const ChargeAnswer& answer, Microtokens& cost) {
  const Limit* limit = Find(charge.limit);
  if (limit == nullptr || answer.reason != Reason::kAllowed) return nullptr;
  cost = FromTokens(charge.cost.value_or(limit->default_cost));
  const Parameters& parameters = ParametersOf(*limit, charge.key);
  if (cost == 0 || !HasEnvelope(parameters)) return nullptr;
  Bucket& bucket = buckets_[BucketName(charge.limit, charge.key)];
  if (bucket.parameters == nullptr) bucket.parameters = std::make_shared<const Parameters>(parameters);
  return &bucket;
}

void Account::Take(const CallRequest& call, const CallAnswer& answer, std::int64_t at_ns, int step) {
  if (answer.error != nullptr || !answer.allowed || answer.replayed || call.peek) return;
  for (std::size_t i = 0; i < call.charges.size(); ++i) {
    Microtokens cost = 0;
    Bucket* bucket = Charged(call.charges[i], answer.charges[i], cost);
    if (bucket == nullptr) continue;
    // A reading behind an earlier one counts as that one (**One clock**).
    bucket->last_ns = std::max(bucket->last_ns, at_ns);
    Event event = {.at_ns = bucket->last_ns, .entered = ++entered_, .step = step, .cost = cost};
    event.parameters = bucket->parameters;
    // What is admitted at one instant is one admission.
    if (!bucket->events.empty()) {
      Event& last = bucket->events.back();
      if (!last.promised && !last.change && last.at_ns == event.at_ns) {
        event.cost += last.cost;
        last = event;
        continue;
      }
    }
    bucket->events.push_back(std::move(event));
  }
}

void Account::Reserve(const CallRequest& call, const ReserveAnswer& answer, std::int64_t at_ns, int step) {
  if (answer.call.error != nullptr || !answer.call.allowed || answer.call.replayed) return;
  Reservation& reservation = reservations_[answer.reservation_id];
  reservation.expires_at_ns = at_ns + answer.expires_after_ns;
  for (std::size_t i = 0; i < call.charges.size(); ++i) {
    Microtokens cost = 0;
    Bucket* bucket = Charged(call.charges[i], answer.call.charges[i], cost);
    reservation.limits.emplace_back(call.charges[i].limit);
    reservation.events.emplace_back(bucket, bucket == nullptr ? 0 : bucket->events.size());
    if (bucket == nullptr) continue;
    bucket->last_ns = std::max(bucket->last_ns, at_ns);
    Event event = {.at_ns = std::max(bucket->last_ns, at_ns + answer.act_after_ns),
                   .entered = ++entered_,
                   .step = step,
                   .promised = true,
                   .cost = cost};
    event.parameters = bucket->parameters;
    bucket->events.push_back(std::move(event));
  }
}

void Account::End(const std::string& reservation_id, const SettleAnswer& answer) {
  const auto found = reservations_.find(reservation_id);
  if (found == reservations_.end() || answer.error != nullptr || std::exchange(found->second.ended, true)) return;
  const auto& events = found->second.events;
  for (std::size_t i = 0; i < events.size() && i < answer.charges.size(); ++i) {
    if (events[i].first == nullptr) continue;
    Event& event = events[i].first->events[events[i].second];
    event.cost = std::min(event.cost, FromTokens(answer.charges[i].actual));
  }
}

void Account::Reload(const std::vector<Limit>& limits, std::int64_t at_ns) {
  limits_ = limits;
  for (auto& [name, bucket] : buckets_) {
    const Limit* limit = Find(name.first);
    if (limit == nullptr) continue;  // Removed: nobody is admitted, and if it comes back it is as it was.
    const Parameters& parameters = ParametersOf(*limit, name.second);
    if (bucket.parameters != nullptr && *bucket.parameters == parameters) continue;
    if (bucket.parameters == nullptr && !HasEnvelope(parameters)) continue;
    bucket.parameters = HasEnvelope(parameters) ? std::make_shared<const Parameters>(parameters) : nullptr;
    bucket.last_ns = std::max(bucket.last_ns, at_ns);
    Event event = {.at_ns = bucket.last_ns, .entered = ++entered_, .change = true};
    event.parameters = bucket.parameters;
    bucket.events.push_back(std::move(event));
  }
}

void Account::Judge(const BucketName& name, Bucket& bucket, std::vector<Breach>& breaches) {
  absl::c_stable_sort(bucket.events, [](const Event& a, const Event& b) { return a.at_ns < b.at_ns; });
  std::optional<EnvelopeCheck> check;
  std::size_t changed = 0;
  for (const Event& event : bucket.events) {
    if (event.change) {
      changed = event.entered;
      if (event.parameters == nullptr) {
        check.reset();
      } else if (check.has_value()) {
        check->Change(*event.parameters, event.at_ns);
      }
      continue;
    }
    if (event.cost == 0 || event.entered < changed) continue;
    if (!check.has_value()) check.emplace(*event.parameters, event.at_ns);
    if (const auto violation = check->Admit(event.at_ns, event.cost)) {
      breaches.push_back({event.step, event.at_ns, Describe(*violation, name.first, name.second)});
    }
  }
}

std::vector<Breach> Account::Judge(std::int64_t now_ns) {
  for (const auto& [id, reservation] : reservations_) {
    if (reservation.ended || reservation.expires_at_ns > now_ns) continue;
    for (std::size_t i = 0; i < reservation.events.size(); ++i) {
      const auto& [bucket, at] = reservation.events[i];
      const Limit* limit = Find(reservation.limits[i]);
      const bool given_back = limit != nullptr && limit->on_hold_expiry == OnHoldExpiry::kGiveBack;
      if (bucket != nullptr && given_back) bucket->events[at].cost = 0;
    }
  }
  reservations_.clear();
  std::vector<Breach> breaches;
  for (auto& [name, bucket] : buckets_) Judge(name, bucket, breaches);
  absl::c_stable_sort(breaches, [](const Breach& a, const Breach& b) { return a.step < b.step; });
  return breaches;
}

}  // namespace ebbgate::replay

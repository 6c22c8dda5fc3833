#include "server/engine/request_ids.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace ebbgate {
namespace {

constexpr int kExpireWithEachCall = 4;
constexpr int kExpireAtOnce = 1024;
// An answer of up to this many charges counts as one id.
constexpr std::int64_t kChargesPerWeight = 4;

void Fail(ErrorReason reason, absl::string_view field, absl::string_view message, CallAnswer& answer) {
  answer.error = std::make_shared<CallError>(CallError{reason, std::string(field), std::string(message)});
}

void AppendNumber(std::int64_t number, std::string& text) {
  text.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

void AppendBucket(absl::string_view limit, absl::string_view key, std::string& text) {
  AppendNumber(static_cast<std::int64_t>(limit.size()), text);
  absl::StrAppend(&text, limit);
  AppendNumber(static_cast<std::int64_t>(key.size()), text);
  absl::StrAppend(&text, key);
}

}  // namespace

RequestIds::RequestIds(std::int64_t max_ids, std::int64_t window_ns)
    : max_weight_(max_ids), window_ns_(window_ns), keys_{RandomPlacementKey(), RandomPlacementKey()} {
  for (std::size_t i = 0; i < kStripes; ++i) stripes_.push_back(std::make_unique<Stripe>(RandomPlacementKey()));
}

RequestIds::Fingerprint RequestIds::FingerprintOf(const CallRequest& call, CallKind kind) const {
  std::string asked(1, static_cast<char>(kind));
  for (const ChargeRequest& charge : call.charges) {
    AppendBucket(charge.limit, charge.key, asked);
    AppendNumber(charge.cost.value_or(-1), asked);
  }
  return {{PlacementHash(keys_[0], asked), PlacementHash(keys_[1], asked)}};
}

std::uint64_t RequestIds::BucketHash(absl::string_view limit, absl::string_view key) const {
  std::string name;
  AppendBucket(limit, key, name);
  return PlacementHash(keys_[1], name);
}

bool RequestIds::TakeRoom(std::int64_t weight) {
  if (weight_.fetch_add(weight, std::memory_order_relaxed) + weight <= max_weight_) return true;
  weight_.fetch_sub(weight, std::memory_order_relaxed);
  return false;
}

void RequestIds::Once(const CallRequest& call, CallKind kind, std::int64_t now_ns, CallAnswer& answer, Grant* grant,
                      const std::function<void()>& decide) {
  Stripe& stripe = *stripes_[PlacementHash(keys_[0], call.request_id) % kStripes];
  const Fingerprint asked = FingerprintOf(call, kind);
  const std::int64_t weight =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(call.charges.size()) / kChargesPerWeight);
  MutexLock lock(stripe.mutex);
  ExpireSome(stripe, now_ns, kExpireWithEachCall);
  if (const auto found = stripe.answers.find(call.request_id);
      found != stripe.answers.end() && now_ns - found->second.recorded_at_ns < window_ns_) {
    if (!(found->second.asked == asked)) {
      return Fail(ErrorReason::kRequestIdReused, "request_id",
                  "was used for another call a moment ago; every call needs an id of its own", answer);
    }
    answer = found->second.answer;
    answer.replayed = true;
    if (grant != nullptr) *grant = found->second.grant;
    replayed_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (!TakeRoom(weight)) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    return Fail(ErrorReason::kRequestIdsFull, "", "no room to remember another request id; ask again later", answer);
  }
  decide();
  if (answer.error != nullptr) {
    weight_.fetch_sub(weight, std::memory_order_relaxed);
    return;
  }
  Remember(stripe, call, {asked, now_ns, weight, answer, grant != nullptr ? *grant : Grant{}, {}, 0});
}

void RequestIds::Remember(Stripe& stripe, const CallRequest& call, Remembered remembered) {
  Forget(stripe, call.request_id);  // One too old to count, and still waiting for its turn to go.
  for (const ChargeRequest& charge : call.charges) remembered.buckets.push_back(BucketHash(charge.limit, charge.key));
  const auto bytes = static_cast<std::int64_t>(sizeof(Remembered) + sizeof(std::string) + sizeof(Stripe::Age) +
                                               2 * call.request_id.size() +
                                               call.charges.size() * (sizeof(ChargeAnswer) + sizeof(std::uint64_t)));
  remembered.bytes = bytes;
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  stripe.by_age.push_back({remembered.recorded_at_ns, std::string(call.request_id)});
  stripe.answers.emplace(std::string(call.request_id), std::move(remembered));
}

std::size_t RequestIds::CountOf(absl::string_view limit, absl::string_view key) const {
  const std::uint64_t bucket = BucketHash(limit, key);
  std::size_t count = 0;
  for (const auto& stripe : stripes_) {
    MutexLock lock(stripe->mutex);
    for (const auto& [id, remembered] : stripe->answers) {
      count += std::count(remembered.buckets.begin(), remembered.buckets.end(), bucket) > 0;
    }
  }
  return count;
}

void RequestIds::Forget(Stripe& stripe, absl::string_view id) {
  const auto found = stripe.answers.find(id);
  if (found == stripe.answers.end()) return;
  weight_.fetch_sub(found->second.weight, std::memory_order_relaxed);
  bytes_.fetch_sub(found->second.bytes, std::memory_order_relaxed);
  stripe.answers.erase(found);
}

void RequestIds::ExpireSome(Stripe& stripe, std::int64_t now_ns, int at_most) {
  for (; at_most > 0 && !stripe.by_age.empty(); --at_most) {
    const Stripe::Age& oldest = stripe.by_age.front();
    if (now_ns - oldest.recorded_at_ns < window_ns_) return;
    const auto found = stripe.answers.find(oldest.id);
    // The id may have been used again since; that record has its own turn.
    const bool same = found != stripe.answers.end() && found->second.recorded_at_ns == oldest.recorded_at_ns;
    if (same) Forget(stripe, oldest.id);
    stripe.by_age.pop_front();
  }
}

void RequestIds::Expire(std::int64_t now_ns) {
  for (const auto& stripe : stripes_) {
    MutexLock lock(stripe->mutex);
    ExpireSome(*stripe, now_ns, kExpireAtOnce);
  }
}

std::uint64_t RequestIds::remembered() const {
  std::uint64_t sum = 0;
  for (const auto& stripe : stripes_) {
    MutexLock lock(stripe->mutex);
    sum += stripe->answers.size();
  }
  return sum;
}

}  // namespace ebbgate

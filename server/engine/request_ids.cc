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

}  // namespace

RequestIds::RequestIds(std::int64_t max_ids, std::int64_t window_ns)
    : max_weight_(max_ids), window_ns_(window_ns), keys_{RandomPlacementKey(), RandomPlacementKey()} {
  for (std::size_t i = 0; i < kStripes; ++i) stripes_.push_back(std::make_unique<Stripe>(RandomPlacementKey()));
}

RequestIds::Fingerprint RequestIds::FingerprintOf(const CallRequest& call) const {
  std::string asked;
  for (const ChargeRequest& charge : call.charges) {
    AppendNumber(static_cast<std::int64_t>(charge.limit.size()), asked);
    absl::StrAppend(&asked, charge.limit);
    AppendNumber(static_cast<std::int64_t>(charge.key.size()), asked);
    absl::StrAppend(&asked, charge.key);
    AppendNumber(charge.cost.value_or(-1), asked);
  }
  return {{PlacementHash(keys_[0], asked), PlacementHash(keys_[1], asked)}};
}

bool RequestIds::TakeRoom(std::int64_t weight) {
  if (weight_.fetch_add(weight, std::memory_order_relaxed) + weight <= max_weight_) return true;
  weight_.fetch_sub(weight, std::memory_order_relaxed);
  return false;
}

void RequestIds::Once(const CallRequest& call, std::int64_t now_ns, CallAnswer& answer,
                      const std::function<void()>& decide) {
  Stripe& stripe = *stripes_[PlacementHash(keys_[0], call.request_id) % kStripes];
  const Fingerprint asked = FingerprintOf(call);
  const std::int64_t weight =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(call.charges.size()) / kChargesPerWeight);
  MutexLock lock(stripe.mutex);
  ExpireSome(stripe, now_ns, kExpireWithEachCall);
  if (const auto found = stripe.answers.find(call.request_id);
      found != stripe.answers.end() && now_ns - found->second.recorded_at_ns < window_ns_) {
    if (!(found->second.asked == asked)) {
      return Fail(ErrorReason::kRequestIdReused, "request_id",
                  "was used for other charges a moment ago; every call needs an id of its own", answer);
    }
    answer = found->second.answer;
    answer.replayed = true;
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
  Forget(stripe, call.request_id);  // One too old to count, and still waiting for its turn to go.
  stripe.answers.emplace(std::string(call.request_id), Remembered{asked, now_ns, weight, answer});
  stripe.by_age.push_back({now_ns, std::string(call.request_id)});
}

void RequestIds::Forget(Stripe& stripe, absl::string_view id) {
  const auto found = stripe.answers.find(id);
  if (found == stripe.answers.end()) return;
  weight_.fetch_sub(found->second.weight, std::memory_order_relaxed);
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

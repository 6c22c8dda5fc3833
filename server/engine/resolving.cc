#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/engine/engine_impl.h"
#include "server/limiter/bounds.h"

namespace ebbgate {
namespace {

std::string ChargeField(std::size_t i, absl::string_view field) { return absl::StrCat("charges[", i, "].", field); }

std::shared_ptr<const CallError> CallFault(const CallRequest& call) {
  if (call.charges.empty()) {
    return MakeCallError(ErrorReason::kInvalidField, "charges", "must hold at least one charge");
  }
  if (call.charges.size() > kMaxChargesPerCall) {
    return MakeCallError(ErrorReason::kInvalidField, "charges",
                         absl::StrCat("must hold at most ", kMaxChargesPerCall, " charges, not ", call.charges.size()));
  }
  if (call.request_id.size() > kMaxRequestIdBytes) {
    return MakeCallError(ErrorReason::kInvalidField, "request_id",
                         absl::StrCat("must be at most ", kMaxRequestIdBytes, " bytes, not ", call.request_id.size()));
  }
  return nullptr;
}

bool IsSound(const ChargeRequest& charge) {
  return !charge.limit.empty() && charge.limit.size() <= kMaxLimitNameBytes && !charge.key.empty() &&
         charge.key.size() <= kMaxKeyBytes && (!charge.cost || (*charge.cost >= 0 && *charge.cost <= kMaxCostTokens));
}

// Pre: the charge is not sound.
std::shared_ptr<const CallError> ChargeFault(const ChargeRequest& charge, std::size_t i) {
  if (charge.limit.empty()) {
    return MakeCallError(ErrorReason::kInvalidField, ChargeField(i, "limit"), "must name a limit");
  }
  if (charge.limit.size() > kMaxLimitNameBytes) {
    return MakeCallError(ErrorReason::kInvalidField, ChargeField(i, "limit"),
                         absl::StrCat("must be at most ", kMaxLimitNameBytes, " bytes, not ", charge.limit.size()));
  }
  if (charge.key.empty()) {
    return MakeCallError(ErrorReason::kInvalidField, ChargeField(i, "key"), "must not be empty");
  }
  if (charge.key.size() > kMaxKeyBytes) {
    return MakeCallError(ErrorReason::kKeyTooLong, ChargeField(i, "key"),
                         absl::StrCat("must be at most ", kMaxKeyBytes, " bytes, not ", charge.key.size()));
  }
  return MakeCallError(ErrorReason::kCostOutOfRange, ChargeField(i, "cost"),
                       absl::StrCat("must be from 0 to ", kMaxCostTokens, " tokens, not ", *charge.cost));
}

}  // namespace

std::shared_ptr<const CallError> MakeCallError(ErrorReason reason, std::string field, std::string message) {
  return std::make_shared<const CallError>(CallError{reason, std::move(field), std::move(message)});
}

inline const CompiledLimit* Engine::Impl::FindLimit(const LimitTable& table, absl::string_view name) const {
  EngineScratch& scratch = EngineScratch::OfThread();
  if (scratch.engine == number_ && scratch.generation == table.generation() &&
      SameText(scratch.limit->config->name, name)) {
    return scratch.limit;
  }
  const CompiledLimit* const found = table.Find(name);
  if (found != nullptr) {
    scratch.engine = number_;
    scratch.generation = table.generation();
    scratch.limit = found;
  }
  return found;
}

inline bool Engine::Impl::ResolveCharge(const LimitTable& table, const ChargeRequest& charge, std::size_t i,
                                        ResolvedCharge& resolved, CallAnswer& answer) {
  if (!IsSound(charge)) {
    answer.error = ChargeFault(charge, i);
    return false;
  }
  resolved.limit = FindLimit(table, charge.limit);
  if (resolved.limit == nullptr) {
    unknown_limit_.fetch_add(1, std::memory_order_relaxed);
    resolved.cost = charge.cost.value_or(1);
    if (options_.unknown_limit != UnknownLimit::kReject) return true;
    answer.error = MakeCallError(ErrorReason::kUnknownLimit, ChargeField(i, "limit"),
                                 absl::StrCat("no limit named '", charge.limit, "' is configured"));
    return false;
  }
  const Limit& limit = *resolved.limit->config;
  resolved.cost = charge.cost.value_or(limit.default_cost);
  if (limit.max_cost && resolved.cost > *limit.max_cost) {
    answer.error = MakeCallError(
        ErrorReason::kCostAboveMaximum, ChargeField(i, "cost"),
        absl::StrCat("must be at most the limit's max_cost of ", *limit.max_cost, ", not ", resolved.cost));
    return false;
  }
  Place(charge.key, resolved);
  return true;
}

bool Engine::Impl::Resolve(const LimitTable& table, const CallRequest& call, CallAnswer& answer,
                           std::vector<ResolvedCharge>& charges) {
  const std::size_t first = charges.size();
  const std::size_t n = call.charges.size();
  answer.replayed = false;
  if (answer.error != nullptr) answer.error.reset();
  bool sound = n > 0 && n <= kMaxChargesPerCall && call.request_id.size() <= kMaxRequestIdBytes;
  if (!sound) answer.error = CallFault(call);
  for (std::size_t i = 0; i < n && sound; ++i) {
    sound = ResolveCharge(table, call.charges[i], i, charges.emplace_back(), answer);
  }
  if (sound) return true;
  charges.resize(first);
  if (answer.error->code() == absl::StatusCode::kInvalidArgument) {
    invalid_calls_.fetch_add(1, std::memory_order_relaxed);
  }
  CountFailed(table, call);
  return false;
}

// A call in error still was a request to each limit that it names (**Counted**).
void Engine::Impl::CountFailed(const LimitTable& table, const CallRequest& call) {
  const std::size_t n = std::min(call.charges.size(), kMaxChargesPerCall);
  for (std::size_t i = 0; i < n; ++i) {
    bool counted = CountOneFailed(table, call.charges[i].limit);
    while (!counted) {  // Not by Table(): the caller still reads the one it has.
      std::shared_ptr<const LimitTable> in_force;
      {
        MutexLock lock(table_mutex_);
        in_force = table_;
      }
      counted = CountOneFailed(*in_force, call.charges[i].limit);
    }
  }
}

// False if the limits changed meanwhile.
bool Engine::Impl::CountOneFailed(const LimitTable& table, absl::string_view name) {
  const CompiledLimit* limit = table.Find(name);
  if (limit == nullptr) return true;
  // Any shard will do; one that follows from the limit keeps them apart.
  const std::uint32_t shard_number = limit->id % kShards;
  Shard& shard = store_.shard(shard_number);
  ShardLocks lock(store_, OneShard(shard_number));
  shard.AssertHeld();
  if (generation_.load(std::memory_order_relaxed) != table.generation()) return false;
  ++shard.tally(limit->id).failed;
  return true;
}

absl::StatusOr<ResolvedCharge> Engine::Impl::Locate(const LimitTable& table, absl::string_view limit,
                                                    absl::string_view key) {
  const ChargeRequest charge{.limit = limit, .key = key, .cost = 0};
  ResolvedCharge resolved;
  if (!IsSound(charge)) {
    const std::shared_ptr<const CallError> fault = ChargeFault(charge, 0);
    return absl::InvalidArgumentError(
        absl::StrCat(fault->field.substr(fault->field.find('.') + 1), ": ", fault->message));
  }
  resolved.limit = table.Find(limit);
  if (resolved.limit == nullptr) return absl::NotFoundError(absl::StrCat("no limit named '", limit, "' is configured"));
  Place(key, resolved);
  return resolved;
}

}  // namespace ebbgate

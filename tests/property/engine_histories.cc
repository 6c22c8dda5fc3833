#include "tests/property/engine_histories.h"

#include <algorithm>

#include "server/limiter/bounds.h"
#include "tests/property/history.h"

namespace ebbgate::testing {
namespace {

Parameters AnyParameters(Random& random) { return RandomParameters(random, kAllAlgorithms[random.Between(0, 4)]); }

std::string RandomKey(Random& random) {
  // Some too long for an entry, and one as long as keys may be.
  switch (random.Between(0, 9)) {
    case 0:
      return "key-3-" + std::string(40, 'x');
    case 1:
      return std::string(kMaxKeyBytes, 'k');
    default:
      return "key-" + std::to_string(random.Between(0, 4));
  }
}

OwnCharge RandomCharge(Random& random, const std::vector<Limit>& limits) {
  const Limit& limit =
      limits[static_cast<std::size_t>(random.Between(0, static_cast<std::int64_t>(limits.size()) - 1))];
  OwnCharge charge = {limit.name, RandomKey(random), std::nullopt};
  if (!random.OneIn(5)) charge.cost = RandomCost(random, limit.parameters) / kMicrotokensPerToken;
  switch (random.Between(0, 199)) {
    case 0:
      charge.key.clear();
      break;
    case 1:
      charge.key = std::string(kMaxKeyBytes + 1, 'k');
      break;
    case 2:
      charge.cost = -random.Magnitude(1, kInt64Max);
      break;
    case 3:
      charge.cost = kMaxCostTokens + random.Magnitude(1, kInt64Max - kMaxCostTokens);
      break;
    case 4:
      charge.limit = "limit-9";
      break;
    case 5:
      charge.cost = kMaxCostTokens;
      break;
    default:
      break;
  }
  return charge;
}

}  // namespace

Limit RandomLimit(Random& random, const std::string& name) {
  Limit limit;
  limit.name = name;
  limit.parameters = AnyParameters(random);
  limit.shadow = random.OneIn(6);
  limit.default_cost = random.OneIn(4) ? random.Between(0, 5) : 1;
  if (random.OneIn(5)) limit.max_cost = std::max<std::int64_t>(1, limit.parameters.capacity / kMicrotokensPerToken);
  if (random.OneIn(3)) limit.overrides.push_back({"key-1", AnyParameters(random)});
  if (random.OneIn(3)) limit.overrides.push_back({"key-3*", AnyParameters(random)});
  if (random.OneIn(4)) limit.overrides.push_back({"key-*", AnyParameters(random)});
  return limit;
}

std::vector<Limit> RandomLimits(Random& random) {
  std::vector<Limit> limits = {RandomLimit(random, "limit-0")};
  for (int i = 1; i < 5; ++i) {
    if (!random.OneIn(3)) limits.push_back(RandomLimit(random, "limit-" + std::to_string(i)));
  }
  return limits;
}

std::vector<Limit> ChangedLimits(Random& random, const std::vector<Limit>& before) {
  std::vector<Limit> limits = before;
  for (Limit& limit : limits) {
    if (random.OneIn(3)) limit = RandomLimit(random, limit.name);
    if (random.OneIn(4)) {
      const std::int64_t most = limit.parameters.algorithm == Algorithm::kExactWindow ? kMaxExactWindowCount : 1000;
      Parameters changed = limit.parameters;
      changed.capacity = FromTokens(random.Between(1, most));
      if (Validate(changed).ok()) limit.parameters = changed;
    }
  }
  if (limits.size() > 1 && random.OneIn(3)) limits.pop_back();
  const std::string next = "limit-" + std::to_string(random.Between(1, 4));
  const auto same = [&](const Limit& limit) { return limit.name == next; };
  if (random.OneIn(3) && std::none_of(limits.begin(), limits.end(), same)) limits.push_back(RandomLimit(random, next));
  if (random.OneIn(4)) std::reverse(limits.begin() + 1, limits.end());
  return limits;
}

OwnCall RandomCall(Random& random, const std::vector<Limit>& limits) {
  OwnCall call;
  const std::int64_t charges = random.OneIn(3) ? random.Between(2, 6) : 1;
  for (std::int64_t i = 0; i < charges; ++i) call.charges.push_back(RandomCharge(random, limits));
  if (charges > 1 && random.OneIn(5)) call.charges.back() = call.charges.front();
  call.peek = random.OneIn(10);
  if (random.OneIn(8)) call.request_id = "id-" + std::to_string(random.Between(0, 30));
  return call;
}

}  // namespace ebbgate::testing

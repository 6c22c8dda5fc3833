#include "tests/property/history.h"

#include <algorithm>

#include "server/limiter/bounds.h"

namespace ebbgate::testing {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// Lengths that people write, lengths that divide nothing, and any.
std::int64_t RandomLength(Random& random, std::int64_t most) {
  switch (random.Between(0, 3)) {
    case 0:
      return random.Between(1, 20);
    case 1:
      return random.Pick<std::int64_t>({kSecond, 3 * kSecond, 7 * kSecond, 60 * kSecond, 3600 * kSecond, 1'000'000});
    case 2:
      return random.Pick<std::int64_t>({999'999'937, 1'000'000'007, 77'777, 65'537, 3'600'000'000'011});
    default:
      return random.Magnitude(1, most);
  }
}

std::int64_t RandomCapacity(Random& random, std::int64_t most) {
  return random.OneIn(3) ? random.Magnitude(1, most) : random.Between(1, std::min<std::int64_t>(most, 12));
}

// About how long it takes to fill the whole bucket, or to turn the window.
std::int64_t Scale(const Parameters& parameters) {
  if (!IsBucket(parameters.algorithm)) return parameters.window.length_ns;
  const Int128 full = static_cast<Int128>(parameters.capacity) * parameters.refill.per_ns / parameters.refill.tokens;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(full));
}

}  // namespace

Parameters RandomParameters(Random& random, Algorithm algorithm) {
  Parameters parameters;
  parameters.algorithm = algorithm;
  do {
    if (IsBucket(algorithm)) {
      parameters.capacity = FromTokens(RandomCapacity(random, kMaxCapacityTokens));
      // The core takes any number of microtokens, not only whole tokens.
      const std::int64_t tokens = FromTokens(RandomCapacity(random, kMaxCostTokens));
      parameters.refill.tokens = random.OneIn(4) ? random.Magnitude(kMicrotokensPerToken, kInt64Max) : tokens;
      parameters.refill.per_ns = RandomLength(random, kInt64Max);
    } else {
      const bool exact = algorithm == Algorithm::kExactWindow;
      parameters.capacity = FromTokens(RandomCapacity(random, exact ? kMaxExactWindowCount : kMaxCapacityTokens));
      parameters.window.length_ns = RandomLength(random, kMaxWindowNs);
    }
  } while (!Validate(parameters).ok());
  return parameters;
}

std::int64_t RandomCost(Random& random, const Parameters& parameters) {
  const std::int64_t capacity = parameters.capacity / kMicrotokensPerToken;
  switch (random.Between(0, 19)) {
    case 0:
      return 0;
    case 1:
      return random.Between(1, parameters.capacity);
    case 2:
      return std::min<std::int64_t>(parameters.capacity, kInt64Max - 2'000'000) + random.Between(1, 2'000'000);
    case 3:
    case 4:
      return parameters.capacity;
    case 5:
    case 6:
    case 7:
      return FromTokens(random.Between(1, capacity));
    case 8:
      return FromTokens(random.Magnitude(1, capacity));
    default:
      return FromTokens(std::max<std::int64_t>(1, capacity / random.Between(2, 12)));
  }
}

std::int64_t RandomPause(Random& random, const Parameters& parameters) {
  const std::int64_t scale = Scale(parameters);
  switch (random.Between(0, 15)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
      return 0;
    case 5:
      return 1;
    case 6:
      return random.Between(0, 20);
    case 7:
      return scale;
    case 8:
      return std::min(kMaxWindowNs, scale) * 2;
    case 9:
      return random.OneIn(10) ? random.Magnitude(1, kLastReadingNs) : 0;
    case 10:
      return random.Magnitude(1, scale);
    default:
      return random.Between(0, std::max<std::int64_t>(1, scale / random.Between(2, 12)));
  }
}

std::int64_t RandomStart(Random& random) {
  const std::int64_t start = random.Magnitude(1, kLastReadingNs / 2);
  return random.OneIn(4) ? -start : start;
}

}  // namespace ebbgate::testing

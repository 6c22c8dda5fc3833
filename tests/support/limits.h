// Limits and calls in few words, for tests.
#ifndef EBBGATE_TESTS_SUPPORT_LIMITS_H_
#define EBBGATE_TESTS_SUPPORT_LIMITS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/engine/engine.h"
#include "server/limiter/parameters.h"
#include "tests/support/durations.h"

namespace ebbgate::testing {

inline Limit Bucket(std::string name, std::int64_t capacity, std::int64_t tokens, std::int64_t per_ns,
                    Algorithm algorithm = Algorithm::kTokenBucket) {
  Limit limit;
  limit.name = std::move(name);
  limit.parameters.algorithm = algorithm;
  limit.parameters.capacity = FromTokens(capacity);
  limit.parameters.refill = {FromTokens(tokens), per_ns};
  return limit;
}

inline Limit Windowed(std::string name, Algorithm algorithm, std::int64_t count, std::int64_t length_ns) {
  Limit limit;
  limit.name = std::move(name);
  limit.parameters.algorithm = algorithm;
  limit.parameters.capacity = FromTokens(count);
  limit.parameters.window.length_ns = length_ns;
  return limit;
}

inline Limit With(Limit limit, std::string key, std::int64_t capacity) {
  Override each;
  each.key = std::move(key);
  each.parameters = limit.parameters;
  each.parameters.capacity = FromTokens(capacity);
  limit.overrides.push_back(std::move(each));
  return limit;
}

// One call, decided.
inline CallAnswer Ask(Engine& engine, const std::vector<ChargeRequest>& charges, absl::string_view request_id = {},
                      bool peek = false) {
  CallAnswer answer;
  engine.Decide({.charges = charges, .request_id = request_id, .peek = peek}, answer);
  return answer;
}

inline CallAnswer Ask(Engine& engine, absl::string_view limit, absl::string_view key,
                      std::optional<std::int64_t> cost = std::nullopt) {
  return Ask(engine, {{.limit = limit, .key = key, .cost = cost}});
}

// How many of `n` calls at this instant are allowed.
inline int AllowedOf(Engine& engine, absl::string_view limit, absl::string_view key, int n) {
  int allowed = 0;
  for (int i = 0; i < n; ++i) {
    const CallAnswer answer = Ask(engine, limit, key);
    allowed += answer.error == nullptr && answer.allowed;
  }
  return allowed;
}

}  // namespace ebbgate::testing

#endif  // EBBGATE_TESTS_SUPPORT_LIMITS_H_

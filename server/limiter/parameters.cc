#include "server/limiter/parameters.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "server/limiter/bounds.h"

namespace ebbgate {
namespace {

constexpr std::array<absl::string_view, 5> kAlgorithmNames = {"token_bucket", "gcra", "fixed_window", "sliding_window",
                                                              "exact_window"};
constexpr std::array<absl::string_view, 7> kUnitNames = {"", "minute", "hour", "day", "week", "month", "year"};

bool IsWindow(Algorithm algorithm) { return algorithm >= Algorithm::kFixedWindow; }

absl::Status Bad(absl::string_view field, absl::string_view reason) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", reason));
}

absl::Status ValidateRate(const Parameters& parameters) {
  const Rate& refill = parameters.refill;
  if (refill.tokens < kMicrotokensPerToken) return Bad("refill.tokens", "must be at least 1");
  if (refill.per_ns < 1) return Bad("refill.per", "must be longer than 0s");
  if (static_cast<Int128>(refill.tokens) * kSlowestTokenNs <
      static_cast<Int128>(refill.per_ns) * kMicrotokensPerToken) {
    return Bad("refill", "is slower than one token a year; the slowest rate is 1 per 8784h");
  }
  const Int128 fastest = static_cast<Int128>(kMaxTokensPerSecond) * kMicrotokensPerToken;
  if (static_cast<Int128>(refill.tokens) * kNsPerSecond > fastest * refill.per_ns) {
    return Bad("refill", "is faster than 1000000000 tokens a second");
  }
  if (CeilDiv(static_cast<Int128>(parameters.capacity) * refill.per_ns, refill.tokens) > kMaxTimeToFullNs) {
    return Bad("refill", "takes more than 100 years to fill the capacity");
  }
  return absl::OkStatus();
}

absl::Status ValidateWindow(const Parameters& parameters) {
  const Window& window = parameters.window;
  if (window.unit == WindowUnit::kLength) {
    if (window.length_ns < 1) return Bad("window", "must be longer than 0s");
    if (window.length_ns > kMaxWindowNs) return Bad("window", "must be at most 100 years");
  } else if (parameters.algorithm != Algorithm::kFixedWindow) {
    return Bad("window", absl::StrCat("a calendar ", Name(window.unit), " needs algorithm fixed_window; ",
                                      Name(parameters.algorithm), " takes a length such as 60s"));
  }
  if (parameters.algorithm == Algorithm::kExactWindow &&
      parameters.capacity > kMaxExactWindowCount * kMicrotokensPerToken) {
    return Bad("count", absl::StrCat("exact_window remembers each admission and counts to ", kMaxExactWindowCount,
                                     " at most; use token_bucket or at_most for more"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Validate(const Parameters& parameters) {
  const absl::string_view field = IsWindow(parameters.algorithm) ? "count" : "capacity";
  if (parameters.capacity < kMicrotokensPerToken) return Bad(field, "must be at least 1");
  if (parameters.capacity > FromTokens(kMaxCapacityTokens)) return Bad(field, "must be at most 9000000000000");
  if (parameters.pace && IsWindow(parameters.algorithm)) return Bad("pace", "needs algorithm token_bucket or gcra");
  return IsWindow(parameters.algorithm) ? ValidateWindow(parameters) : ValidateRate(parameters);
}

absl::string_view Name(Algorithm algorithm) { return kAlgorithmNames[static_cast<std::size_t>(algorithm)]; }

std::optional<Algorithm> AlgorithmNamed(absl::string_view name) {
  for (std::size_t i = 0; i < kAlgorithmNames.size(); ++i) {
    if (kAlgorithmNames[i] == name) return static_cast<Algorithm>(i);
  }
  return std::nullopt;
}

absl::string_view Name(WindowUnit unit) { return kUnitNames[static_cast<std::size_t>(unit)]; }

std::string DescribeNs(std::int64_t ns) {
  struct Unit {
    std::int64_t ns;
    absl::string_view suffix;
  };
  static constexpr Unit kUnits[] = {
      {3600 * kNsPerSecond, "h"}, {60 * kNsPerSecond, "m"}, {kNsPerSecond, "s"}, {1'000'000, "ms"}, {1'000, "us"}};
  for (const Unit& unit : kUnits) {
    if (ns != 0 && ns % unit.ns == 0) return absl::StrCat(ns / unit.ns, unit.suffix);
  }
  return absl::StrCat(ns, ns == 0 ? "s" : "ns");
}

std::string Describe(const Parameters& parameters) {
  const std::int64_t capacity = WholeTokens(parameters.capacity);
  if (!IsWindow(parameters.algorithm)) {
    return absl::StrCat("capacity ", capacity, ", refill ", WholeTokens(parameters.refill.tokens), " per ",
                        DescribeNs(parameters.refill.per_ns), parameters.pace ? ", paced" : "");
  }
  if (parameters.window.unit == WindowUnit::kLength) {
    return absl::StrCat(capacity, " per ", DescribeNs(parameters.window.length_ns));
  }
  return absl::StrCat(capacity, " per ", Name(parameters.window.unit), " in ", parameters.window.calendar.name());
}

Microtokens MaxDebt(const Limit& limit, const Parameters& parameters) {
  Int128 debt = limit.max_debt ? static_cast<Int128>(*limit.max_debt) * kMicrotokensPerToken
                               : static_cast<Int128>(parameters.capacity) * kDefaultMaxDebtCapacities;
  debt = std::min<Int128>(debt, FromTokens(kMaxCostTokens) - parameters.capacity);
  if (!IsWindow(parameters.algorithm)) {
    const Rate& refill = parameters.refill;
    debt = std::min(debt, static_cast<Int128>(kMaxTimeToFullNs) * refill.tokens / refill.per_ns);
  }
  return static_cast<Microtokens>(debt);
}

bool MatchesPattern(absl::string_view pattern, absl::string_view key) {
  // Greedy with one point to return to: only the last "*" ever needs to take more.
  std::size_t p = 0, k = 0;
  std::size_t after_star = absl::string_view::npos, star_ends_at = 0;
  while (k < key.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      after_star = ++p;
      star_ends_at = k;
    } else if (p < pattern.size() && pattern[p] == key[k]) {
      ++p;
      ++k;
    } else if (after_star != absl::string_view::npos) {
      p = after_star;
      k = ++star_ends_at;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace ebbgate

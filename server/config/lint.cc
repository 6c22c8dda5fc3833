// LintLimits of limits_file.h.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/strings/str_cat.h"
#include "server/config/limits_file.h"
#include "server/config/text.h"
#include "server/limiter/amount.h"
#include "server/limiter/bounds.h"

namespace ebbgate {
namespace {

constexpr std::int64_t kHourNs = 3600 * kNsPerSecond;
constexpr std::int64_t kDayNs = 24 * kHourNs;
constexpr std::int64_t kYearNs = 366 * kDayNs;
// From here on the log of one busy key outweighs hundreds of token buckets.
constexpr std::int64_t kManyLogged = 1'000;
constexpr std::int64_t kBytesPerLogged = 16;

// Adds one warning: at a line, with a reason and a hint.
using Warn = std::function<void(int line, absl::string_view reason, absl::string_view hint)>;

bool HasRefill(Algorithm algorithm) { return algorithm == Algorithm::kTokenBucket || algorithm == Algorithm::kGcra; }

// Whether every key that matches `second` matches `first`. A "*" of the second may stand for a byte that no pattern
// holds (0xFF is in no UTF-8), which only a "*" of the first can match; and what that one takes, it takes whatever it
// is.
bool Covers(absl::string_view first, absl::string_view second) {
  std::string strangest(second);
  std::replace(strangest.begin(), strangest.end(), '*', '\xFF');
  return MatchesPattern(first, strangest);
}

void LintDefaultCost(const Limit& limit, const Warn& warn) {
  const auto check = [&](const Parameters& parameters, int line) {
    const std::int64_t capacity = WholeTokens(parameters.capacity);
    if (limit.default_cost <= capacity) return;
    warn(line, absl::StrCat("default_cost ", limit.default_cost, " is above the capacity ", capacity),
         "a call that names no cost can never succeed");
  };
  check(limit.parameters, limit.line);
  for (const Override& entry : limit.overrides) check(entry.parameters, entry.line);
}

void LintMaxCost(const Limit& limit, const Warn& warn) {
  Microtokens largest = limit.parameters.capacity;
  for (const Override& entry : limit.overrides) largest = std::max(largest, entry.parameters.capacity);
  if (!limit.max_cost || *limit.max_cost <= WholeTokens(largest)) return;
  warn(limit.line, absl::StrCat("max_cost ", *limit.max_cost, " is above every capacity of this limit"),
       "it changes nothing: such a cost can never succeed anyway");
}

void LintOverrides(const Limit& limit, const Warn& warn) {
  for (std::size_t second = 0; second < limit.overrides.size(); ++second) {
    const Override& later = limit.overrides[second];
    if (!later.is_pattern()) continue;
    for (std::size_t first = 0; first < second; ++first) {
      const Override& earlier = limit.overrides[first];
      if (!earlier.is_pattern() || !Covers(earlier.key, later.key)) continue;
      warn(later.line,
           absl::StrCat("the override ", Quote(later.key), " never applies: ", Quote(earlier.key), " on line ",
                        earlier.line, " matches all its keys and comes first"),
           "put the narrower pattern first");
      break;
    }
  }
}

void LintTimeToFull(const Parameters& parameters, int line, const Warn& warn) {
  if (!HasRefill(parameters.algorithm)) return;
  const Int128 to_full_ns =
      CeilDiv(static_cast<Int128>(parameters.capacity) * parameters.refill.per_ns, parameters.refill.tokens);
  if (to_full_ns <= kYearNs) return;
  warn(line, absl::StrCat("an empty bucket takes ", static_cast<std::int64_t>(to_full_ns / kDayNs), " days to fill"),
       "the state of a key is kept until its bucket is full; a larger refill or a smaller capacity forgets sooner");
}

void LintWindow(const Parameters& parameters, absl::TimeZone zone, int line, const Warn& warn) {
  if (parameters.algorithm == Algorithm::kExactWindow && WholeTokens(parameters.capacity) >= kManyLogged) {
    warn(line,
         absl::StrCat("exact_window remembers each admission: up to ",
                      WholeTokens(parameters.capacity) * kBytesPerLogged, " bytes for one key"),
         "at_most keeps the same bound in constant memory");
  }
  if (parameters.algorithm != Algorithm::kFixedWindow || parameters.window.unit != WindowUnit::kLength) return;
  const std::int64_t length_ns = parameters.window.length_ns;
  if (length_ns == kDayNs && zone != absl::UTCTimeZone()) {
    warn(line, absl::StrCat("windows of ", DescribeNs(length_ns), " turn at midnight UTC, not in ", zone.name()),
         "write window: day");
  } else if (length_ns > kHourNs && kDayNs % length_ns != 0) {
    warn(line,
         absl::StrCat("windows of ", DescribeNs(length_ns),
                      " are counted from 1970-01-01 00:00 UTC and turn at "
                      "other times each day, or in the middle of a week"),
         "write a length that divides 24h, or window: day, week, month or year");
  }
}

void LintPace(const Parameters& parameters, int line, const Warn& warn) {
  if (!parameters.pace || WholeTokens(parameters.capacity) > 1) return;
  warn(line, "pace changes nothing here: a bucket that holds 1 token lets nothing come at once anyway",
       "leave out pace, or let capacity be the largest cost");
}

void LintShadow(const Limit& limit, const Warn& warn) {
  if (!limit.shadow || limit.on_unavailable == OnUnavailable::kAllow) return;
  warn(limit.line, "a limit in shadow refuses nobody, yet advises callers to refuse when Ebbgate cannot answer",
       "write on_unavailable: allow");
}

void LintLimit(const Limit& limit, const Warn& warn) {
  LintDefaultCost(limit, warn);
  LintMaxCost(limit, warn);
  LintOverrides(limit, warn);
  LintShadow(limit, warn);
  const auto lint_parameters = [&](const Parameters& parameters, int line) {
    LintTimeToFull(parameters, line, warn);
    LintPace(parameters, line, warn);
    LintWindow(parameters, limit.display_zone, line, warn);
  };
  lint_parameters(limit.parameters, limit.line);
  for (const Override& entry : limit.overrides) {
    // What is inherited was said of the limit.
    if (entry.parameters != limit.parameters) lint_parameters(entry.parameters, entry.line);
  }
}

}  // namespace

std::vector<std::string> LintLimits(const std::vector<Limit>& limits) {
  std::vector<std::string> warnings;
  for (const Limit& limit : limits) {
    LintLimit(limit, [&](int line, absl::string_view reason, absl::string_view hint) {
      if (warnings.size() >= kMaxLintWarnings) return;
      warnings.push_back(
          absl::StrCat(limit.file, ":", line, ": warning: ", limit.name, ": ", reason, " (hint: ", hint, ")"));
    });
  }
  return warnings;
}

}  // namespace ebbgate

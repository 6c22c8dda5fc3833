// What a bucket's decisions depend on: the algorithm, how much it holds, how it comes back. And what a whole limit is.
#ifndef EBBGATE_SERVER_LIMITER_PARAMETERS_H_
#define EBBGATE_SERVER_LIMITER_PARAMETERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/limiter/amount.h"
#include "server/limiter/bounds.h"

namespace ebbgate {

enum class Algorithm : std::uint8_t { kTokenBucket, kGcra, kFixedWindow, kSlidingWindow, kExactWindow };

// `tokens` microtokens come back every `per_ns`, evenly. Kept as written, not reduced: `per_ns` is the grain of the
// remainder that a token bucket carries.
struct Rate {
  Microtokens tokens = 0;
  std::int64_t per_ns = 0;
  friend bool operator==(const Rate&, const Rate&) = default;
};

// A window's unit: a length aligned to the epoch, or a stretch of a calendar.
enum class WindowUnit : std::uint8_t { kLength, kMinute, kHour, kDay, kWeek, kMonth, kYear };

struct Window {
  WindowUnit unit = WindowUnit::kLength;
  std::int64_t length_ns = 0;                     // of kLength only
  absl::TimeZone calendar = absl::UTCTimeZone();  // of the other units
  friend bool operator==(const Window& a, const Window& b) {
    return a.unit == b.unit && a.length_ns == b.length_ns && a.calendar == b.calendar;
  }
};

struct Parameters {
  Algorithm algorithm = Algorithm::kTokenBucket;
  // Of token_bucket and gcra: no bursts. Work may act only when all that was taken before has come back, so that a cost
  // c is followed by a pause of c/r.
  bool pace = false;
  // What a bucket holds, or the count of a window.
  Microtokens capacity = 0;
  // Of token_bucket and gcra.
  Rate refill;
  // Of the windows.
  Window window;
  friend bool operator==(const Parameters&, const Parameters&) = default;
};

// OK, or INVALID_ARGUMENT saying which field is out of what range, as "field: reason". `field` names are those of the
// limits file: capacity, count, refill.tokens, refill.per, window.
absl::Status Validate(const Parameters& parameters);

// "token_bucket", ...
absl::string_view Name(Algorithm algorithm);
std::optional<Algorithm> AlgorithmNamed(absl::string_view name);
// "minute", ...; empty for kLength.
absl::string_view Name(WindowUnit unit);
// For people: "capacity 4, refill 2 per 1s"; "1000 per day in America/New_York".
std::string Describe(const Parameters& parameters);
// "1.5s", "200ms", "1h": the shortest exact form with one unit.
std::string DescribeNs(std::int64_t ns);

// Advice to callers for times when Ebbgate cannot answer.
enum class OnUnavailable : std::uint8_t { kAllow, kDeny };

// What a hold that nobody ended counts as: its work may have been done.
enum class OnHoldExpiry : std::uint8_t { kSpend, kGiveBack };

// When what was received and what was admitted count as drifting apart; see server/drift.
struct DriftSettings {
  // Received / admitted, in millionths; its inverse is the other bound.
  std::int64_t ratio_micros = kDefaultDriftRatioMicros;
  std::int64_t window_ns = kDefaultDriftWindowNs;
  // Tokens that must have been admitted or received in the window.
  std::int64_t minimum = kDefaultDriftMinimum;
  friend bool operator==(const DriftSettings&, const DriftSettings&) = default;
};

// Parameters for some keys of a limit: one key, or those that match a pattern ("*" stands for any text, also none).
struct Override {
  std::string key;
  Parameters parameters;
  int line = 0;

  bool is_pattern() const { return key.find('*') != std::string::npos; }
};

// A limit as configured. See the README for what each field means to its user.
struct Limit {
  std::string name;
  Parameters parameters;
  std::vector<Override> overrides;
  bool shadow = false;
  std::int64_t default_cost = 1;
  std::optional<std::int64_t> max_cost;
  OnUnavailable on_unavailable = OnUnavailable::kDeny;
  OnHoldExpiry on_hold_expiry = OnHoldExpiry::kSpend;
  // Whole tokens that one key may owe to reservations that wait and to overruns; absent: kDefaultMaxDebtCapacities.
  std::optional<std::int64_t> max_debt;
  // Open holds of one key.
  std::int64_t max_holds = kDefaultMaxHoldsPerKey;
  absl::TimeZone display_zone = absl::UTCTimeZone();
  DriftSettings drift;
  std::vector<std::pair<std::string, std::string>> metadata;
  // Where it was read.
  std::string file;
  int line = 0;
};

// What one key that follows `parameters` may owe, in microtokens: the limit's max_debt or its default, as far as a
// level below 0 can be told and paid back in 100 years.
Microtokens MaxDebt(const Limit& limit, const Parameters& parameters);

// Whether `key` matches `pattern`. Linear in the product of the lengths at worst; no recursion.
bool MatchesPattern(absl::string_view pattern, absl::string_view key);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_LIMITER_PARAMETERS_H_

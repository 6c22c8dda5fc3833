#include "server/config/duration.h"

#include <array>
#include <cstddef>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/config/text.h"
#include "server/limiter/amount.h"

namespace ebbgate {
namespace {

struct Unit {
  absl::string_view name;
  std::int64_t ns;
};

// In the order in which they may stand.
constexpr std::array<Unit, 7> kUnits = {{{"d", 24 * 3600 * kNsPerSecond},
                                         {"h", 3600 * kNsPerSecond},
                                         {"m", 60 * kNsPerSecond},
                                         {"s", kNsPerSecond},
                                         {"ms", 1'000'000},
                                         {"us", 1'000},
                                         {"ns", 1}}};

absl::Status Bad(absl::string_view text, absl::string_view reason) {
  return absl::InvalidArgumentError(absl::StrCat(Quote(text), " ", reason));
}

// The length of the longest prefix of `text` of which every character satisfies `is`.
template <typename Predicate>
std::size_t Span(absl::string_view text, Predicate is) {
  std::size_t length = 0;
  while (length < text.size() && is(static_cast<unsigned char>(text[length]))) ++length;
  return length;
}

absl::string_view Take(absl::string_view& rest, std::size_t length) {
  const absl::string_view taken = rest.substr(0, length);
  rest.remove_prefix(length);
  return taken;
}

// `digits`, at most 19 of them, as a number.
Int128 Number(absl::string_view digits) {
  Int128 value = 0;
  for (const char digit : digits) value = value * 10 + (digit - '0');
  return value;
}

// `whole`.`fraction` of a unit in nanoseconds.
absl::StatusOr<Int128> Part(absl::string_view text, absl::string_view whole, absl::string_view fraction,
                            const Unit& unit) {
  while (absl::StartsWith(whole, "0")) whole.remove_prefix(1);
  while (absl::EndsWith(fraction, "0")) fraction.remove_suffix(1);
  if (whole.size() > 19) return Bad(text, "is too long: a length of time is at most 292 years");
  if (fraction.size() > 18) return Bad(text, "is finer than a nanosecond");
  Int128 scale = 1;
  for (std::size_t i = 0; i < fraction.size(); ++i) scale *= 10;
  const Int128 fraction_ns = Number(fraction) * unit.ns;
  if (fraction_ns % scale != 0) return Bad(text, "is finer than a nanosecond");
  return Number(whole) * unit.ns + fraction_ns / scale;
}

// What is wrong with a text that does not begin with a digit.
absl::Status NotANumber(absl::string_view text) {
  if (text.empty()) return absl::InvalidArgumentError("is empty; write a length of time such as 1s or 1h30m");
  if (text.front() == '-') return Bad(text, "is negative; a length of time is 0s or more");
  return Bad(text, "is not a length of time; write one such as 1s, 200ms or 1h30m");
}

}  // namespace

absl::StatusOr<std::int64_t> ParseDurationNs(absl::string_view text) {
  Int128 total = 0;
  std::size_t next_unit = 0;
  absl::string_view rest = text;
  do {
    const absl::string_view whole = Take(rest, Span(rest, absl::ascii_isdigit));
    if (whole.empty()) return NotANumber(text);
    absl::string_view fraction;
    if (absl::StartsWith(rest, ".")) {
      rest.remove_prefix(1);
      fraction = Take(rest, Span(rest, absl::ascii_isdigit));
      if (fraction.empty()) return Bad(text, "has no digit after its point");
    }
    const absl::string_view name =
        Take(rest, Span(rest, [](unsigned char c) { return c != '.' && !absl::ascii_isdigit(c); }));
    if (name.empty())
      return Bad(text, absl::StrCat("has no unit; write ", text, "s for seconds (units: ns us ms s m h d)"));
    std::size_t unit = 0;
    while (unit < kUnits.size() && kUnits[unit].name != name) ++unit;
    if (unit == kUnits.size())
      return Bad(text, absl::StrCat("has an unknown unit ", Quote(name), "; units are ns us ms s m h d"));
    if (unit < next_unit) return Bad(text, "must name each unit once, the larger first, as in 1h30m");
    next_unit = unit + 1;
    const absl::StatusOr<Int128> part = Part(text, whole, fraction, kUnits[unit]);
    if (!part.ok()) return part.status();
    total += *part;
  } while (!rest.empty());
  if (total > kInt64Max) return Bad(text, "is too long: a length of time is at most 292 years");
  return static_cast<std::int64_t>(total);
}

}  // namespace ebbgate

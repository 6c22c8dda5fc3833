#include "server/config/text.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace ebbgate {
namespace {

// What a message shows of a text; enough to find it by.
constexpr std::size_t kMaxQuotedBytes = 64;

bool IsContinuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

// The length of the valid sequence that `text` begins with, or 0. By the table of well-formed sequences in Unicode 3.9.
std::size_t SequenceLength(absl::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : static_cast<unsigned char>(0);
  };
  const unsigned char first = byte(0);
  const unsigned char second = byte(1);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4 || !IsContinuation(second)) return 0;
  if (first < 0xE0) return 2;
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F)) return 0;
  if (!IsContinuation(byte(2))) return 0;
  if (first < 0xF0) return 3;
  if ((first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)) return 0;
  return IsContinuation(byte(3)) ? 4 : 0;
}

// Insertions, deletions and replacements of one character, and exchanges of two neighbours, that turn one word into the
// other (each stretch is edited once).
std::size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(above, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool exchanged = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (exchanged) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string Escape(absl::string_view text) {
  const bool readable = ValidUtf8Prefix(text) == text.size() && !HasControlCharacter(text);
  return readable ? absl::Utf8SafeCEscape(text) : absl::CEscape(text);
}

std::string Quote(absl::string_view text) {
  const bool cut = text.size() > kMaxQuotedBytes;
  if (cut) text = text.substr(0, ValidUtf8Prefix(text.substr(0, kMaxQuotedBytes)));
  return absl::StrCat("\"", Escape(text), cut ? "...\"" : "\"");
}

std::size_t ValidUtf8Prefix(absl::string_view text) {
  std::size_t valid = 0;
  while (valid < text.size()) {
    const std::size_t length = SequenceLength(text.substr(valid, 4));
    if (length == 0) break;
    valid += length;
  }
  return valid;
}

bool HasControlCharacter(absl::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(text[i]))) return true;
    // C1 is U+0080 to U+009F, in UTF-8 C2 80 to C2 9F.
    if (text[i] == '\xC2' && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0) return true;
  }
  return false;
}

absl::StatusOr<std::int64_t> ParseWholeNumber(absl::string_view text) {
  const absl::string_view digits = absl::StartsWith(text, "-") ? text.substr(1) : text;
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return absl::InvalidArgumentError("must be a whole number in plain digits");
  }
  if (digits.size() != text.size()) return absl::InvalidArgumentError("must not be negative");
  // 010 is 8 to some readers of YAML and 10 to others.
  if (digits.size() > 1 && digits.front() == '0') return absl::InvalidArgumentError("must not begin with 0");
  std::int64_t value = 0;
  if (!absl::SimpleAtoi(digits, &value)) return absl::InvalidArgumentError("is too large");
  return value;
}

absl::string_view Nearest(absl::string_view word, absl::Span<const absl::string_view> candidates) {
  // Two slips in a short word make another word. Long words are not worth the time.
  if (word.size() > kMaxQuotedBytes) return {};
  absl::string_view nearest;
  std::size_t least = word.size() < 5 ? 2 : 3;
  for (const absl::string_view candidate : candidates) {
    const std::size_t distance = EditDistance(word, candidate);
    if (distance < least) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace ebbgate

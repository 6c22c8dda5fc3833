#include "server/telemetry/escape.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"

namespace ebbgate {
namespace {

struct CodePoint {
  std::uint32_t value;
  std::size_t bytes;  // 0: the first byte begins no UTF-8 character
};

// Strict: no overlong forms, no surrogates, nothing above U+10FFFF. Pre: `text` is not empty.
CodePoint FirstCodePoint(absl::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {0, 0};
  std::uint32_t value = lead & (0xFFu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {0, 0};
    value = value << 6 | (byte(i) & 0x3Fu);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < kLeast[bytes] || surrogate || value > 0x10FFFF) return {0, 0};
  return {value, bytes};
}

// Characters that move a cursor, end a line, or change the order in which others are shown.
bool IsTreacherous(std::uint32_t c) {
  if (c < 0x20 || (c >= 0x7F && c <= 0x9F)) return true;
  if (c == 0x061C || c == 0x200E || c == 0x200F || c == 0x2028 || c == 0x2029 || c == 0xFEFF) return true;
  return (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

// Letters, digits and the punctuation of names, paths, addresses and times: needs no quotes.
bool IsPlain(absl::string_view value) {
  if (value.empty()) return false;
  for (const char c : value) {
    const bool plain = absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                       absl::string_view("-_./:@+*%,[]").find(c) != absl::string_view::npos;
    if (!plain) return false;
  }
  return true;
}

// The escape with a letter of its own that text and JSON share; 0 for none.
char ShortEscape(std::uint32_t c) {
  switch (c) {
    case '"':
    case '\\':
      return static_cast<char>(c);
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    default:
      return 0;
  }
}

// Walks over `value`; what needs no escape is copied, the rest is left to the two functions.
template <typename AppendCharacter, typename AppendBadByte>
void AppendQuoted(absl::string_view value, std::string& out, AppendCharacter append_character,
                  AppendBadByte append_bad_byte) {
  out += '"';
  while (!value.empty()) {
    const CodePoint c = FirstCodePoint(value);
    if (c.bytes == 0) {
      append_bad_byte(static_cast<std::uint8_t>(value[0]));
      value.remove_prefix(1);
      continue;
    }
    if (const char letter = ShortEscape(c.value); letter != 0) {
      out += '\\';
      out += letter;
    } else if (IsTreacherous(c.value)) {
      append_character(c.value);
    } else {
      out.append(value.data(), c.bytes);
    }
    value.remove_prefix(c.bytes);
  }
  out += '"';
}

}  // namespace

void AppendTextValue(absl::string_view value, std::string& out) {
  if (IsPlain(value)) {
    out.append(value.data(), value.size());
    return;
  }
  AppendQuoted(
      value, out, [&](std::uint32_t c) { absl::StrAppendFormat(&out, "\\u{%x}", c); },
      [&](std::uint8_t byte) { absl::StrAppendFormat(&out, "\\x%02X", byte); });
}

void AppendJsonString(absl::string_view value, std::string& out) {
  AppendQuoted(
      value, out, [&](std::uint32_t c) { absl::StrAppendFormat(&out, "\\u%04x", c); },
      [&](std::uint8_t) { out += "\\ufffd"; });
}

}  // namespace ebbgate

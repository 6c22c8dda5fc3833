#include "client/json.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace ebbgate::client {
namespace {

// Length of the UTF-8 sequence that `text` starts with, 0 if it is not one.
std::size_t SequenceLength(absl::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what lies beyond Unicode.
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f)) return 0;
  if ((first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f)) return 0;
  return length;
}

}  // namespace

std::string JsonString(absl::string_view text) {
  std::string result = "\"";
  while (!text.empty()) {
    const std::size_t length = SequenceLength(text);
    const char c = text.front();
    if (length == 0) {
      result += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      result += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      absl::StrAppendFormat(&result, "\\u%04x", static_cast<unsigned>(c));
    } else {
      result.append(text.data(), length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result + "\"";
}

std::string ProtoDuration(absl::Duration length) {
  const bool negative = length < absl::ZeroDuration();
  if (negative) length = -length;
  const std::int64_t seconds = absl::ToInt64Seconds(length);
  const std::int64_t ns = absl::ToInt64Nanoseconds(length - absl::Seconds(seconds));
  const std::string sign = negative ? "-" : "";
  if (ns == 0) return absl::StrCat(sign, seconds, "s");
  if (ns % 1'000'000 == 0) return absl::StrFormat("%s%d.%03ds", sign, seconds, ns / 1'000'000);
  if (ns % 1'000 == 0) return absl::StrFormat("%s%d.%06ds", sign, seconds, ns / 1'000);
  return absl::StrFormat("%s%d.%09ds", sign, seconds, ns);
}

void JsonWriter::Separate() {
  if (!first_) out_ << ", ";
  first_ = false;
}

JsonWriter& JsonWriter::Open(char bracket) {
  Separate();
  out_ << bracket;
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::Close(char bracket) {
  out_ << bracket;
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::Key(absl::string_view name) {
  Separate();
  out_ << JsonString(name) << ": ";
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::Value(absl::string_view text) {
  Separate();
  out_ << JsonString(text);
  return *this;
}

JsonWriter& JsonWriter::Value(bool truth) {
  Separate();
  out_ << (truth ? "true" : "false");
  return *this;
}

JsonWriter& JsonWriter::Value(double number) {
  Separate();
  out_ << (std::isfinite(number) ? absl::StrFormat("%.10g", number) : "null");
  return *this;
}

JsonWriter& JsonWriter::Value(absl::Duration length) { return Value(absl::string_view(ProtoDuration(length))); }

}  // namespace ebbgate::client

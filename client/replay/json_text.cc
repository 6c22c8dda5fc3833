#include "client/replay/json_text.h"

#include <cstdint>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/json.h"

namespace ebbgate::replay {
namespace {

constexpr std::size_t kEscapeBytes = 6;  // "\ud83d"

// The number of an escape "\uXXXX" that `text` starts with.
std::optional<std::uint32_t> Escape(absl::string_view text) {
  std::uint32_t value = 0;
  if (text.size() < kEscapeBytes || text.substr(0, 2) != "\\u") return std::nullopt;
  if (!absl::SimpleHexAtoi(text.substr(2, 4), &value)) return std::nullopt;
  return value;
}

// The character beyond 16 bits that a pair of escapes at the start of `text` stands for.
std::optional<std::uint32_t> Pair(absl::string_view text) {
  const auto high = Escape(text);
  if (!high.has_value() || *high < 0xd800 || *high > 0xdbff) return std::nullopt;
  const auto low = Escape(text.substr(kEscapeBytes));
  if (!low.has_value() || *low < 0xdc00 || *low > 0xdfff) return std::nullopt;
  return 0x10000 + ((*high - 0xd800) << 10) + (*low - 0xdc00);
}

void AppendUtf8(std::uint32_t character, std::string& to) {
  to.push_back(static_cast<char>(0xf0 | (character >> 18)));
  for (int shift = 12; shift >= 0; shift -= 6) to.push_back(static_cast<char>(0x80 | ((character >> shift) & 0x3f)));
}

bool IsPlainJson(const std::string& scalar) {
  double number = 0;
  return scalar == "true" || scalar == "false" || scalar == "null" || absl::SimpleAtod(scalar, &number);
}

}  // namespace

std::string JoinSurrogates(absl::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    std::size_t taken = 1;
    if (const auto character = Pair(text); character.has_value()) {
      AppendUtf8(*character, result);
      taken = 2 * kEscapeBytes;
    } else {
      // A backslash and what it escapes go together, so that "\\ud83d" is not taken for an escape.
      if (text.front() == '\\' && text.size() > 1) taken = 2;
      result.append(text.data(), taken);
    }
    text.remove_prefix(taken);
  }
  return result;
}

std::string ToJson(const YAML::Node& node) {
  std::string result;
  switch (node.Type()) {
    case YAML::NodeType::Map:
      for (const auto& member : node) {
        absl::StrAppend(&result, result.empty() ? "" : ", ", client::JsonString(member.first.Scalar()), ": ",
                        ToJson(member.second));
      }
      return absl::StrCat("{", result, "}");
    case YAML::NodeType::Sequence:
      for (const YAML::Node& item : node) absl::StrAppend(&result, result.empty() ? "" : ", ", ToJson(item));
      return absl::StrCat("[", result, "]");
    case YAML::NodeType::Scalar: {
      const bool quoted = node.Tag() == "!";
      return !quoted && IsPlainJson(node.Scalar()) ? node.Scalar() : client::JsonString(node.Scalar());
    }
    default:
      return "null";
  }
}

}  // namespace ebbgate::replay

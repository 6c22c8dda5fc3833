#include "client/cli/text.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace ebbgate::client {
namespace {

// Characters, not bytes: good enough for alignment.
std::size_t Width(absl::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

std::string Grouped(std::int64_t number) {
  std::string digits = absl::StrCat(number);
  const std::size_t sign = number < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > sign + 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

std::string Rough(absl::Duration length) {
  static constexpr std::pair<double, absl::string_view> kUnits[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}};
  const double ns = absl::ToDoubleNanoseconds(length);
  for (const auto& [size, name] : kUnits) {
    const double value = ns / size;
    if (value < 0.9995) continue;
    const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    return absl::StrFormat("%.*f %s", decimals, value, name);
  }
  return absl::StrFormat("%.0f ns", ns);
}

std::string UpToMs(absl::Duration length) {
  const absl::Duration ms = absl::Milliseconds(1);
  return absl::FormatDuration(length < ms ? length : absl::Ceil(length, ms));
}

std::string Percent(std::int64_t part, std::int64_t whole) {
  return absl::StrFormat("%.1f %%", whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

void Table::Print(std::ostream& out, absl::string_view indent) const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  for (const auto& row : rows_) {
    std::string line(indent);
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      line.append(widths[i] - Width(row[i]) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << "\n";
  }
}

std::string Printable(absl::string_view text) {
  std::string result;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      absl::StrAppendFormat(&result, "\\x%02x", static_cast<unsigned char>(c));
    } else {
      result.push_back(c);
    }
  }
  return result;
}

}  // namespace ebbgate::client

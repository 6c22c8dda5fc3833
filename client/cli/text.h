// Numbers and tables for people.
#ifndef EBBGATE_CLIENT_CLI_TEXT_H_
#define EBBGATE_CLIENT_CLI_TEXT_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace ebbgate::client {

// "1,234,567".
std::string Grouped(std::int64_t number);

// Three significant digits and one unit: "41.3 us", "1.20 ms", "2.00 s".
std::string Rough(absl::Duration length);

// For a wait: whole milliseconds, rounded up so that nobody comes too early; below one, exact. "500ms", "1m0.25s".
std::string UpToMs(absl::Duration length);

// "12.5 %".
std::string Percent(std::int64_t part, std::int64_t whole);

// Columns padded to their widest cell, two spaces between them, no spaces at the end of a line.
class Table {
 public:
  void Row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  void Print(std::ostream& out, absl::string_view indent = "") const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Text from elsewhere as it may be shown on a terminal: control characters escaped.
std::string Printable(absl::string_view text);

}  // namespace ebbgate::client

#endif  // EBBGATE_CLIENT_CLI_TEXT_H_

#include "server/config/faults.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/limiter/bounds.h"

namespace ebbgate {

void Faults::Add(int line, absl::string_view path, absl::string_view reason, absl::string_view hint) {
  ++count_;
  if (faults_.size() >= kMaxFaults) return;
  std::string text = line > 0 ? absl::StrCat(file_, ":", line, ": ") : absl::StrCat(file_, ": ");
  if (!path.empty()) absl::StrAppend(&text, path, ": ");
  absl::StrAppend(&text, reason);
  if (!hint.empty()) absl::StrAppend(&text, " (hint: ", hint, ")");
  faults_.push_back({line, std::move(text)});
}

absl::Status Faults::ToStatus() const {
  if (count_ == 0) return absl::OkStatus();
  std::vector<Fault> sorted = faults_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Fault& a, const Fault& b) { return a.line < b.line; });
  std::string message = absl::StrJoin(sorted, "\n", [](std::string* out, const Fault& fault) { *out += fault.text; });
  if (full()) absl::StrAppend(&message, "\n", file_, ": and ", count_ - sorted.size(), " more");
  return absl::InvalidArgumentError(message);
}

}  // namespace ebbgate

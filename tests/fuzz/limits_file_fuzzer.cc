// Feeds the parser of limits whatever libFuzzer makes up. It must not crash, hang or grow without bound; what it
// accepts must be valid, and what it says must be lines that name the file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "server/config/limits_file.h"
#include "server/config/text.h"
#include "server/limiter/bounds.h"

namespace {

using namespace ebbgate;

void Require(bool holds) {
  if (!holds) abort();
}

void CheckLines(absl::string_view text) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    Require(absl::StartsWith(line, "f.yaml:"));
    Require(ValidUtf8Prefix(line) == line.size() && !HasControlCharacter(line));
  }
}

void CheckLimit(const Limit& limit) {
  Require(!limit.name.empty() && limit.name.size() <= kMaxLimitNameBytes);
  Require(Validate(limit.parameters).ok());
  Require(limit.default_cost >= 1 && (!limit.max_cost || *limit.max_cost >= limit.default_cost));
  std::set<std::string> keys;
  for (const Override& entry : limit.overrides) {
    Require(keys.insert(entry.key).second && !entry.key.empty() && entry.key.size() <= kMaxKeyBytes);
    Require(entry.parameters.algorithm == limit.parameters.algorithm && Validate(entry.parameters).ok());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  const absl::StatusOr<std::vector<Limit>> limits = ParseLimits(text, "f.yaml");
  if (!limits.ok()) {
    CheckLines(limits.status().message());
    return 0;
  }
  std::set<std::string> names;
  for (const Limit& limit : *limits) {
    Require(names.insert(limit.name).second);
    CheckLimit(limit);
  }
  for (const std::string& warning : LintLimits(*limits)) Require(absl::StartsWith(warning, "f.yaml:"));
  return 0;
}

// The door of config for limits: YAML text to limits, validated whole.
#ifndef EBBGATE_SERVER_CONFIG_LIMITS_FILE_H_
#define EBBGATE_SERVER_CONFIG_LIMITS_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/limiter/parameters.h"

namespace ebbgate {

// The limits that `text` describes, in its order, or INVALID_ARGUMENT with every fault found (up to 20), a line each:
//   limits.yaml:12: limits[0].capacity: must be at least 1 (hint: ...)
// `file` is what messages call it. JSON is accepted too, being YAML. Never throws; memory and time are bounded.
absl::StatusOr<std::vector<Limit>> ParseLimits(absl::string_view text, absl::string_view file);

// The same from a file. NOT_FOUND, PERMISSION_DENIED, ... as the system says.
absl::StatusOr<std::vector<Limit>> LoadLimits(const std::string& path);

// What is valid but surely not meant: a default cost above capacity, an override that never matches, a refill slower
// than a year to full, ... A line each, in the form of the errors above.
std::vector<std::string> LintLimits(const std::vector<Limit>& limits);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_CONFIG_LIMITS_FILE_H_

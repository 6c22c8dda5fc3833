// Lengths of time as people write them: "1.5s", "200ms", "1h30m", "1d". Exact to the nanosecond, pure.
#ifndef EBBGATE_SERVER_CONFIG_DURATION_H_
#define EBBGATE_SERVER_CONFIG_DURATION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ebbgate {

// Nanoseconds, 0 or more. Units: ns, us, ms, s, m, h, d (24 hours), each at most once, the larger first, each with
// decimals or without. INVALID_ARGUMENT says what is wrong; never rounds, never wraps.
absl::StatusOr<std::int64_t> ParseDurationNs(absl::string_view text);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_CONFIG_DURATION_H_

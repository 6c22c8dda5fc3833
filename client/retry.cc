#include "client/retry.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace ebbgate::client {
namespace {

// A random part of `most`, in steps of a 65,536th; all of it where there is no randomness.
absl::Duration PartOf(absl::Duration most, Surroundings& surroundings) {
  std::array<unsigned char, 2> bits{};
  if (!surroundings.RandomBytes(absl::MakeSpan(bits))) return most;
  return most * (bits[0] | bits[1] << 8) / 65'536;
}

}  // namespace

absl::Status WithRetries(const RetryOptions& options, Surroundings& surroundings, absl::Duration timeout,
                         const std::function<absl::Status(absl::Duration left)>& attempt) {
  const absl::Duration deadline = surroundings.Now() + timeout;
  absl::Duration most = options.first_pause;
  absl::Duration left = timeout;
  for (int made = 1;; ++made) {
    absl::Status status = attempt(left);
    if (status.code() != absl::StatusCode::kUnavailable || made >= options.attempts) return status;
    const absl::Duration pause =
        DetailsOf(status).retry_after.value_or(absl::ZeroDuration()) + PartOf(most, surroundings);
    if (surroundings.Now() + pause >= deadline) return status;
    surroundings.Sleep(pause);
    most = std::min(most * 2, options.longest_pause);
    left = deadline - surroundings.Now();
    if (left <= absl::ZeroDuration()) return status;
  }
}

}  // namespace ebbgate::client

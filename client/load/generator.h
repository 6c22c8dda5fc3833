// The load generator: keeps calls coming, in an open or a closed loop, and measures what comes back.
//
//   absl::StatusOr<LoadResult> result = RunLoad(options, [](const LoadProgress& p) { ... });
//
// Closed loop: a call is sent when one before it was answered; the server sets the pace. Open loop: calls are due at
// fixed times whatever the server does, and a latency is counted from the time a call was due, so that a stall is
// charged to every call it delayed.
#ifndef EBBGATE_CLIENT_LOAD_GENERATOR_H_
#define EBBGATE_CLIENT_LOAD_GENERATOR_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/load/histogram.h"
#include "client/load/options.h"

namespace ebbgate::client {

struct LoadCounts {
  std::int64_t calls = 0;         // answered
  std::int64_t failed_calls = 0;  // ended in a gRPC error
  std::int64_t allowed = 0;       // decisions, by outcome
  std::int64_t denied = 0;
  std::int64_t errors = 0;

  std::int64_t decisions() const { return allowed + denied; }
};

struct LoadProgress {
  absl::Duration elapsed;
  LoadCounts so_far;
  LoadCounts since_last;
};

struct LoadResult {
  absl::Duration elapsed;
  LoadCounts counts;
  Histogram latency;  // of answered calls
  std::string first_error;
  absl::Duration client_cpu;
  std::optional<absl::Duration> server_cpu;
  // The run was given up: nothing but failures for a second.
  bool gave_up = false;
};

// OK, or what is out of range, in the words of the command line's flags.
absl::Status CheckLoadOptions(const LoadOptions& options);

// Pre: CheckLoadOptions. UNAVAILABLE if no connection can be made. `progress` is called about once a second.
absl::StatusOr<LoadResult> RunLoad(const LoadOptions& options,
                                   const std::function<void(const LoadProgress&)>& progress);

}  // namespace ebbgate::client

#endif  // EBBGATE_CLIENT_LOAD_GENERATOR_H_

// The loop around a call that may be made again: when, how long after, and for how long.
//
// Not part of the public interface. Thread-safe: values and a free function. Bounded by RetryOptions::attempts and by
// the caller's deadline, whichever comes first.
#ifndef EBBGATE_CLIENT_RETRY_H_
#define EBBGATE_CLIENT_RETRY_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/client.h"
#include "client/surroundings.h"

namespace ebbgate::client {

// Calls `attempt` with the time that is left, and while it answers UNAVAILABLE, again after a pause: what the server
// asked for (RetryInfo), and a random part of a time that doubles with each attempt, so that callers that failed
// together do not come back together. No pause is begun that would end after `timeout`; then, and when the attempts are
// used up, the last error is the answer. Pre: the call may be repeated (it carries an id, or repeating changes
// nothing).
absl::Status WithRetries(const RetryOptions& options, Surroundings& surroundings, absl::Duration timeout,
                         const std::function<absl::Status(absl::Duration left)>& attempt);

}  // namespace ebbgate::client

#endif  // EBBGATE_CLIENT_RETRY_H_

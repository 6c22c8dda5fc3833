// An answer as the edge of an HTTP application passes it on: a status and header fields.
//
// The fields follow draft-ietf-httpapi-ratelimit-headers-10 (RateLimit, RateLimit-Policy), RFC 9110 (Retry-After) and
// the older X-RateLimit-* that many clients read. Pure functions, thread-safe.
#ifndef EBBGATE_CLIENT_HTTP_ANSWER_H_
#define EBBGATE_CLIENT_HTTP_ANSWER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/client.h"

namespace ebbgate::client {

struct HttpAnswer {
  // 429 for a denial; 200 otherwise, to be replaced by what the application answers.
  int status = 200;
  // In this order, each name once:
  //   Retry-After            of a denial that a wait helps: whole seconds, rounded up, at least 1
  //   RateLimit-Policy       "api-user";q=4
  //   RateLimit              "api-user";r=3;t=1       what is left, and the seconds until it is whole again, or, of a
  //                                                   charge that was refused, until that would pass
  //   X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset   of the tightest charge; the last in seconds from
  //   now
  // Charges that a limit in shadow mode would have refused are left out: nobody is to act on them.
  std::vector<std::pair<std::string, std::string>> fields;
};

HttpAnswer ToHttp(const Answer& answer);

// Whole seconds, rounded up.
std::int64_t WholeSecondsUp(absl::Duration length);

// A String of RFC 8941: quoted and escaped. What a String cannot hold (all but printable ASCII) is percent-encoded.
std::string StructuredString(absl::string_view text);

}  // namespace ebbgate::client

#endif  // EBBGATE_CLIENT_HTTP_ANSWER_H_

// The door of the client: ask an Ebbgate server whether work may be done.
//
//   absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect({.address = "127.0.0.1:7370"});
//   absl::StatusOr<Answer> answer =
//       (*client)->ShouldAllow({.charges = {{.limit = "api-user", .key = "alice"}}}, absl::Milliseconds(20));
//   if (!answer.ok()) ...            // nobody decided: the application chooses
//   else if (!answer->allowed) ...   // denied: see http_answer.h for what to tell its caller
//
// A denial is an answer, not an error. An error means that no decision is known; after DEADLINE_EXCEEDED or UNAVAILABLE
// the charge may have been taken all the same, and a request id makes it safe to ask again.
//
// Thread-safety: one Client serves all threads of a process. Cost: one gRPC exchange a call. No protobuf or gRPC type
// appears here.
#ifndef EBBGATE_CLIENT_CLIENT_H_
#define EBBGATE_CLIENT_CLIENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/tls_files.h"

namespace ebbgate::client {

struct Charge {
  std::string limit;
  std::string key;
  // Tokens. Absent: the limit's default. 0: look, take nothing.
  std::optional<std::int64_t> cost = {};
};

struct Call {
  // All of them are charged, or none is.
  std::vector<Charge> charges;
  // Up to 64 bytes, empty for none: the same call with the same id is charged once.
  std::string request_id = {};
  // Answer as if asked in earnest, but charge nothing.
  bool peek = false;
};

enum class Reason {
  kAllowed,
  kShadowed,             // allowed, although a limit in shadow mode would have refused
  kQuotaExceeded,        // not now
  kCostExceedsCapacity,  // never
};

// "QUOTA_EXCEEDED", ...
absl::string_view Name(Reason reason);

// What a limit advises for times when Ebbgate cannot answer.
enum class OnUnavailable { kUnknown, kAllow, kDeny };

struct ChargeAnswer {
  std::string limit;
  std::int64_t remaining = 0;
  std::int64_t capacity = 0;
  // Only where this charge was refused for now: exact; asking when it has passed succeeds if nothing else came.
  std::optional<absl::Duration> retry_after;
  // Until the bucket is full, or the window has turned.
  absl::Duration reset_after;
  // How this limit alone decided.
  Reason reason = Reason::kAllowed;
  // The charge closest to refusal.
  bool tightest = false;
  OnUnavailable on_unavailable = OnUnavailable::kUnknown;
};

struct Answer {
  bool allowed = false;
  Reason reason = Reason::kAllowed;
  // One for each charge, in order.
  std::vector<ChargeAnswer> charges;
  // The longest wait of the charges that refused; absent when allowed, and when no wait helps.
  std::optional<absl::Duration> retry_after;
  // The recorded answer of an earlier call with the same request id.
  bool replayed = false;
};

// What an error says beyond its code and message. Empty where the server said nothing.
struct ErrorDetails {
  std::string reason;  // "UNKNOWN_LIMIT", ...
  std::string field;   // "charges[0].cost", ...
  std::optional<absl::Duration> retry_after;
};
ErrorDetails DetailsOf(const absl::Status& error);

struct ClientOptions {
  // "host:port" or "unix:/path".
  std::string address = "127.0.0.1:7370";
  // Absent: no TLS.
  std::optional<TlsFiles> tls = {};
};

class Client {
 public:
  // Does not wait: the connection is made by the first call, and again whenever it was lost. Fails only if the TLS
  // files cannot be used.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(const ClientOptions& options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Waits at most `timeout`.
  absl::StatusOr<Answer> ShouldAllow(const Call& call, absl::Duration timeout) const;

  // Up to 1,000 independent calls in one exchange: answers in order, each with its own outcome.
  absl::StatusOr<std::vector<absl::StatusOr<Answer>>> ShouldAllowBatch(absl::Span<const Call> calls,
                                                                       absl::Duration timeout) const;

 private:
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl);

  const std::unique_ptr<Impl> impl_;
};

}  // namespace ebbgate::client

#endif  // EBBGATE_CLIENT_CLIENT_H_

// The door of the client: ask an Ebbgate server whether work may be done.
//
//   absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect({.address = "127.0.0.1:7370"});
//   absl::StatusOr<Answer> answer =
//       (*client)->ShouldAllow({.charges = {{.limit = "api-user", .key = "alice"}}}, absl::Milliseconds(20));
//   if (!answer.ok()) ...            // nobody decided: the application chooses
//   else if (!answer->allowed) ...   // denied: see http_answer.h for what to tell its caller
//
// A denial is an answer, not an error. An error means that no decision is known: DEADLINE_EXCEEDED is no evidence of a
// denial, and after it, as after UNAVAILABLE, the charge may have been taken all the same. A request id makes it safe
// to ask again: within the server's dedupe window (60 s unless set) the same call with the same id is charged once.
//
// The library asks again by itself, inside the caller's timeout, where that is safe: see RetryOptions.
//
// Work whose price is known only afterwards, or that can wait for its turn, is reserved first and settled later; hold.h
// has a guard that forgets neither.
//
// Thread-safety: one Client serves all threads of a process. Cost: one gRPC exchange a call, and one more for each
// attempt after the first. No protobuf or gRPC type appears here.
#ifndef EBBGATE_CLIENT_CLIENT_H_
#define EBBGATE_CLIENT_CLIENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/surroundings.h"
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
  // Of Reserve only:
  kTooMuchDebt,   // the bucket would owe more than its limit's max_debt
  kTooManyHolds,  // as many holds as its limit's max_holds are open
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

// --- Reservations ----------------------------------------------------------------------------------------------------

struct ReserveCall {
  // What the work may take. All of it is reserved, or nothing is.
  std::vector<Charge> charges;
  // How long the work can wait for its turn. 0: it must be able to start now. At most 24 h.
  absl::Duration max_wait = absl::ZeroDuration();
  // How long after its turn the hold stays open; absent: 10 min. At most 24 h.
  std::optional<absl::Duration> hold_for = {};
  // As of Call. Empty: the library makes one, unless it is never to ask again.
  std::string request_id = {};
};

struct ReserveAnswer {
  bool granted = false;
  Reason reason = Reason::kAllowed;
  // Of a grant: names the hold. Whoever knows it can end it.
  std::string reservation_id;
  // Of a grant, counted from the answer: when the work may start, and when the hold expires unless it is ended before.
  absl::Duration act_after;
  absl::Duration expires_after;
  std::vector<ChargeAnswer> charges;
  // Of a refusal that a wait helps: when the same call would be granted if nothing else came.
  std::optional<absl::Duration> retry_after;
  // The reservation of an earlier call, or attempt, with the same request id.
  bool replayed = false;
};

enum class HoldState { kUnknown, kSettled, kCancelled, kExpired };

// "SETTLED", ...
absl::string_view Name(HoldState state);

// Tokens. reserved + overrun = actual + given_back.
struct SettledCharge {
  std::string limit;
  std::string key;
  std::int64_t reserved = 0;
  std::int64_t actual = 0;
  std::int64_t given_back = 0;
  // Spent beyond what was reserved, and the part of it that the limit's bound on debt left uncharged.
  std::int64_t overrun = 0;
  std::int64_t uncovered = 0;
};

struct SettleAnswer {
  // How the hold ended: perhaps otherwise than this call wanted.
  HoldState state = HoldState::kUnknown;
  // It had ended before, and this is the first answer again; the one that ended it may have been an earlier attempt of
  // this very call.
  bool repeated = false;
  std::vector<SettledCharge> charges;
};

// What an error says beyond its code and message. Empty where the server said nothing.
struct ErrorDetails {
  std::string reason;  // "UNKNOWN_LIMIT", ...
  std::string field;   // "charges[0].cost", ...
  std::optional<absl::Duration> retry_after;
};
ErrorDetails DetailsOf(const absl::Status& error);

// Which calls the library makes again when the server was unavailable or the connection was lost (UNAVAILABLE). Never
// one that could be charged twice; never after DEADLINE_EXCEEDED, for then the caller's time is over.
enum class Retry {
  kNever,
  // Those that cost nothing to repeat: Reserve (with an id made for it unless it has one), Settle and Cancel, peeks,
  // and calls that were given a request id.
  kSafe,
  // Every call: one without a request id is given one. The server remembers each id for its dedupe window, with some
  // hundred bytes: at 10,000 calls a second that is a table of 600,000.
  kAlways,
};

struct RetryOptions {
  Retry which = Retry::kSafe;
  // Of one call, the first included.
  int attempts = 5;
  // Before the second attempt passes a random part of first_pause, and each time of twice as much, up to longest_pause;
  // added to it what the server asks to wait. All inside the timeout of the call.
  absl::Duration first_pause = absl::Milliseconds(50);
  absl::Duration longest_pause = absl::Seconds(1);
};

struct ClientOptions {
  // "host:port" or "unix:/path".
  std::string address = "127.0.0.1:7370";
  // Absent: no TLS.
  std::optional<TlsFiles> tls = {};
  RetryOptions retry = {};
  // The clock, the sleep and the randomness of retries and holds; null: the machine's. For tests.
  std::shared_ptr<Surroundings> surroundings = nullptr;
};

class Client {
 public:
  // Does not wait: the connection is made by the first call, and again whenever it was lost. Fails only if the TLS
  // files cannot be used.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(const ClientOptions& options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Waits at most `timeout`, which holds for all attempts together.
  absl::StatusOr<Answer> ShouldAllow(const Call& call, absl::Duration timeout) const;

  // Up to 1,000 independent calls in one exchange: answers in order, each with its own outcome. Made again only as a
  // whole, and only if each of its calls could be.
  absl::StatusOr<std::vector<absl::StatusOr<Answer>>> ShouldAllowBatch(absl::Span<const Call> calls,
                                                                       absl::Duration timeout) const;

  // Takes tokens for work to come, now or from the future. A refusal is an answer, and has taken nothing. What was
  // granted is to be settled or cancelled; hold.h sees to it.
  absl::StatusOr<ReserveAnswer> Reserve(const ReserveCall& call, absl::Duration timeout) const;

  // Ends a hold with what its work cost, in tokens, one amount for each charge; or without, if it was not done. Both
  // may be repeated: a hold ends once.
  absl::StatusOr<SettleAnswer> Settle(const std::string& reservation_id, absl::Span<const std::int64_t> actual,
                                      absl::Duration timeout) const;
  absl::StatusOr<SettleAnswer> Cancel(const std::string& reservation_id, absl::Duration timeout) const;

  Surroundings& surroundings() const;

 private:
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl);

  const std::unique_ptr<Impl> impl_;
};

}  // namespace ebbgate::client

#endif  // EBBGATE_CLIENT_CLIENT_H_

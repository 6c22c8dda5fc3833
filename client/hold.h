// A reservation that cannot be forgotten: unless it is settled or released, it is cancelled when the guard goes.
//
//   absl::StatusOr<Hold> hold = Hold::Take(client, {.charges = {{"reports", "team-7", 50}}}, absl::Seconds(1));
//   if (!hold.ok()) ...                  // nobody decided
//   else if (!hold->granted()) ...       // refused: hold->answer() says why, and when to ask again
//   else {
//     hold->WaitForTurn();
//     const std::int64_t cost = MakeReport();          // if this returns early or throws, the tokens come back
//     hold->Settle({cost}, absl::Seconds(1));
//   }
//
// Thread-safety: one user at a time. Ownership: the client outlives the guard. Moved-from and not granted guards guard
// nothing. Cost: the destructor of a guard that still guards makes a call.
#ifndef EBBGATE_CLIENT_HOLD_H_
#define EBBGATE_CLIENT_HOLD_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/client.h"

namespace ebbgate::client {

class Hold {
 public:
  // Reserves, waiting at most `timeout` for the answer. An error means that no hold is known; one that was made all the
  // same expires by itself, or is found by repeating the call with its request id.
  static absl::StatusOr<Hold> Take(const Client& client, const ReserveCall& call, absl::Duration timeout);

  // Guards what Reserve has just granted. The turn is counted from now: a moment late rather than early.
  Hold(const Client& client, ReserveAnswer answer);
  Hold(Hold&& other) noexcept;
  Hold& operator=(Hold&& other) noexcept;
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  // Cancels what was neither settled nor cancelled nor released, and waits for that at most kCancelTimeout; a hold that
  // could not be cancelled expires.
  ~Hold();

  static constexpr absl::Duration kCancelTimeout = absl::Seconds(1);

  bool granted() const { return answer_.granted; }
  const ReserveAnswer& answer() const { return answer_; }

  // How long until the work may begin: 0 once it may. Pre: granted().
  absl::Duration TimeToTurn() const;
  void WaitForTurn() const;

  // Ends the hold with what the work cost. From the first call of it on the guard cancels no more, whatever came of it:
  // the work was done, and a give-back would be a lie. Settle again after an error; what was never settled expires.
  absl::StatusOr<SettleAnswer> Settle(absl::Span<const std::int64_t> actual, absl::Duration timeout);

  // Ends the hold whose work was not done. After an error the destructor tries again.
  absl::StatusOr<SettleAnswer> Cancel(absl::Duration timeout);

  // Guards it no more, and returns its id: somebody else is to end it.
  std::string Release();

 private:
  void CancelIfGuarded();

  const Client* client_;
  ReserveAnswer answer_;
  absl::Duration turn_;  // a reading of the client's clock
  bool guarded_;
};

}  // namespace ebbgate::client

#endif  // EBBGATE_CLIENT_HOLD_H_

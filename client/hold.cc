#include "client/hold.h"

#include <algorithm>
#include <utility>

#include "client/surroundings.h"

namespace ebbgate::client {

absl::StatusOr<Hold> Hold::Take(const Client& client, const ReserveCall& call, absl::Duration timeout) {
  absl::StatusOr<ReserveAnswer> answer = client.Reserve(call, timeout);
  if (!answer.ok()) return answer.status();
  return Hold(client, *std::move(answer));
}

Hold::Hold(const Client& client, ReserveAnswer answer)
    : client_(&client),
      answer_(std::move(answer)),
      turn_(client.surroundings().Now() + answer_.act_after),
      guarded_(answer_.granted) {}

Hold::Hold(Hold&& other) noexcept
    : client_(other.client_),
      answer_(std::exchange(other.answer_, ReserveAnswer())),
      turn_(other.turn_),
      guarded_(std::exchange(other.guarded_, false)) {}

Hold& Hold::operator=(Hold&& other) noexcept {
  if (this == &other) return *this;
  CancelIfGuarded();
  client_ = other.client_;
  answer_ = std::exchange(other.answer_, ReserveAnswer());
  turn_ = other.turn_;
  guarded_ = std::exchange(other.guarded_, false);
  return *this;
}

Hold::~Hold() { CancelIfGuarded(); }

void Hold::CancelIfGuarded() {
  if (guarded_) Cancel(kCancelTimeout).IgnoreError();
}

absl::Duration Hold::TimeToTurn() const {
  return std::max(turn_ - client_->surroundings().Now(), absl::ZeroDuration());
}

void Hold::WaitForTurn() const {
  if (const absl::Duration left = TimeToTurn(); left > absl::ZeroDuration()) client_->surroundings().Sleep(left);
}

absl::StatusOr<SettleAnswer> Hold::Settle(absl::Span<const std::int64_t> actual, absl::Duration timeout) {
  guarded_ = false;
  return client_->Settle(answer_.reservation_id, actual, timeout);
}

absl::StatusOr<SettleAnswer> Hold::Cancel(absl::Duration timeout) {
  absl::StatusOr<SettleAnswer> answer = client_->Cancel(answer_.reservation_id, timeout);
  // Not known, or known no more: nothing is left to cancel.
  if (answer.ok() || absl::IsNotFound(answer.status())) guarded_ = false;
  return answer;
}

std::string Hold::Release() {
  guarded_ = false;
  return answer_.reservation_id;
}

}  // namespace ebbgate::client

#include "client/replay/envelope.h"

namespace ebbgate::replay {

EnvelopeCheck::EnvelopeCheck(const Parameters& parameters, std::int64_t since_ns)
    : capacity_(parameters.capacity), rate_(parameters.refill), now_ns_(since_ns) {}

void EnvelopeCheck::RefillUntil(std::int64_t at_ns) {
  if (at_ns <= now_ns_) return;
  const Int128 gained = (static_cast<Int128>(at_ns) - now_ns_) * rate_.tokens + refilled_.part;
  now_ns_ = at_ns;
  refilled_.whole += gained / rate_.per_ns;
  refilled_.part = static_cast<std::int64_t>(gained % rate_.per_ns);
}

EnvelopeCheck::Exact EnvelopeCheck::Excess() const {
  if (refilled_.part == 0) return {admitted_ - refilled_.whole, 0};
  return {admitted_ - refilled_.whole - 1, rate_.per_ns - refilled_.part};
}

void EnvelopeCheck::Change(const Parameters& parameters, std::int64_t at_ns) {
  RefillUntil(at_ns);
  // Parts of the old rate's grain mean nothing in the new one's.
  if (refilled_.part > 0) refilled_ = {refilled_.whole + 1, 0};
  if (allowance_.has_value() && allowance_->part > 0) allowance_ = Exact{allowance_->whole + 1, 0};
  capacity_ = parameters.capacity;
  rate_ = parameters.refill;
}

std::optional<EnvelopeViolation> EnvelopeCheck::Admit(std::int64_t at_ns, Microtokens cost) {
  RefillUntil(at_ns);
  Exact own = Excess();
  own.whole += capacity_;
  if (!allowance_.has_value() || own < *allowance_) {
    allowance_ = own;
    allowance_from_ns_ = now_ns_;
    admitted_before_ = admitted_;
  }
  admitted_ += cost;
  const Exact excess = Excess();
  if (!(*allowance_ < excess)) return std::nullopt;
  const Int128 admitted = admitted_ - admitted_before_;
  // What is above the bound, rounded up, leaves the bound rounded down.
  const Int128 over = excess.whole - allowance_->whole + (excess.part > allowance_->part ? 1 : 0);
  return EnvelopeViolation{allowance_from_ns_, now_ns_, admitted, admitted - over};
}

}  // namespace ebbgate::replay

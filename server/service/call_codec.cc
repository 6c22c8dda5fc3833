#include "server/service/call_codec.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/limiter/amount.h"
#include "server/limiter/bounds.h"
#include "server/service/error_details.h"
#include "server/service/utf8.h"
#include "server/service/wire_reader.h"

namespace ebbgate {
namespace {

using v1::Charge;
using v1::ChargeResult;
using v1::ShouldAllowBatchRequest;
using v1::ShouldAllowBatchResponse;
using v1::ShouldAllowOutcome;
using v1::ShouldAllowRequest;
using v1::ShouldAllowResponse;
using Duration = google::protobuf::Duration;

CallFault Fault(ErrorReason reason, std::string field, std::string message) {
  return std::make_shared<const CallError>(CallError{reason, std::move(field), std::move(message)});
}

CallFault NotAMessage(std::string field) {
  return Fault(ErrorReason::kMalformed, std::move(field), "is not a well-formed protobuf message");
}

CallFault NotUtf8(std::string field) { return Fault(ErrorReason::kMalformed, std::move(field), "must be valid UTF-8"); }

// `fault` in the message that is the field `outer` of another one.
CallFault Within(const std::string& outer, const CallError& fault) {
  return Fault(fault.reason, fault.field.empty() ? outer : absl::StrCat(outer, ".", fault.field), fault.message);
}

CallFault DecodeCharge(absl::string_view bytes, ChargeRequest& charge) {
  WireReader reader(bytes);
  for (std::uint32_t tag; reader.Next(tag);) {
    switch (tag) {
      case WireTag(Charge::kLimitFieldNumber, WireType::kBytes):
        charge.limit = reader.Bytes();
        if (!IsUtf8(charge.limit)) return NotUtf8("limit");
        break;
      case WireTag(Charge::kKeyFieldNumber, WireType::kBytes):
        charge.key = reader.Bytes();
        if (!IsUtf8(charge.key)) return NotUtf8("key");
        break;
      case WireTag(Charge::kCostFieldNumber, WireType::kVarint):
        charge.cost = static_cast<std::int64_t>(reader.Varint());
        break;
      default:
        reader.Skip(tag);
    }
  }
  return reader.ok() ? nullptr : NotAMessage("");
}

// Appends charge number `count` of a call. Charges beyond the first too many are looked at and dropped.
CallFault AppendCharge(absl::string_view bytes, std::size_t& count, std::vector<ChargeRequest>& charges) {
  ChargeRequest charge;
  if (CallFault fault = DecodeCharge(bytes, charge)) return Within(absl::StrCat("charges[", count, "]"), *fault);
  if (count++ <= kMaxChargesPerCall) charges.push_back(charge);
  return nullptr;
}

// Appends the charges of a call to `charges` and sets all of `call` but its charges.
CallFault DecodeCall(absl::string_view bytes, std::vector<ChargeRequest>& charges, CallRequest& call) {
  call = CallRequest();
  std::size_t count = 0;
  WireReader reader(bytes);
  for (std::uint32_t tag; reader.Next(tag);) {
    switch (tag) {
      case WireTag(ShouldAllowRequest::kChargesFieldNumber, WireType::kBytes):
        if (CallFault fault = AppendCharge(reader.Bytes(), count, charges)) return fault;
        break;
      case WireTag(ShouldAllowRequest::kRequestIdFieldNumber, WireType::kBytes):
        call.request_id = reader.Bytes();
        if (!IsUtf8(call.request_id)) return NotUtf8("request_id");
        break;
      case WireTag(ShouldAllowRequest::kPeekFieldNumber, WireType::kVarint):
        call.peek = reader.Varint() != 0;
        break;
      default:
        reader.Skip(tag);
    }
  }
  return reader.ok() ? nullptr : NotAMessage("");
}

// A google.protobuf.Duration as it stands in a message.
struct WireDuration {
  bool present = false;
  std::int64_t seconds = 0;
  std::int32_t nanos = 0;
};

// Of a field that occurs twice the second adds to the first, as in every message.
CallFault DecodeDuration(absl::string_view bytes, const char* field, WireDuration& duration) {
  duration.present = true;
  WireReader reader(bytes);
  for (std::uint32_t tag; reader.Next(tag);) {
    switch (tag) {
      case WireTag(Duration::kSecondsFieldNumber, WireType::kVarint):
        duration.seconds = static_cast<std::int64_t>(reader.Varint());
        break;
      case WireTag(Duration::kNanosFieldNumber, WireType::kVarint):
        duration.nanos = static_cast<std::int32_t>(reader.Varint());
        break;
      default:
        reader.Skip(tag);
    }
  }
  return reader.ok() ? nullptr : NotAMessage(field);
}

// Sets `ns` if the duration is there. What lies beyond 64 bits stays beyond all bounds, which are the engine's to
// judge.
CallFault ReadDuration(const WireDuration& duration, const char* field, std::int64_t& ns) {
  if (!duration.present) return nullptr;
  const bool mixed = (duration.seconds < 0 && duration.nanos > 0) || (duration.seconds > 0 && duration.nanos < 0);
  if (mixed || duration.nanos <= -kNsPerSecond || duration.nanos >= kNsPerSecond) {
    return Fault(ErrorReason::kInvalidField, field,
                 "is no duration: nanos must lie within 999,999,999 of 0 and have the sign of seconds");
  }
  ns = Saturate(static_cast<Int128>(duration.seconds) * kNsPerSecond + duration.nanos);
  return nullptr;
}

// Sets all of `request` but the call's charges, which are appended to `charges`.
CallFault DecodeReserve(absl::string_view bytes, std::vector<ChargeRequest>& charges, ReserveRequest& request) {
  request = ReserveRequest();
  WireDuration max_wait, hold_for;
  std::size_t count = 0;
  WireReader reader(bytes);
  for (std::uint32_t tag; reader.Next(tag);) {
    CallFault fault;
    switch (tag) {
      case WireTag(v1::ReserveRequest::kChargesFieldNumber, WireType::kBytes):
        fault = AppendCharge(reader.Bytes(), count, charges);
        break;
      case WireTag(v1::ReserveRequest::kMaxWaitFieldNumber, WireType::kBytes):
        fault = DecodeDuration(reader.Bytes(), "max_wait", max_wait);
        break;
      case WireTag(v1::ReserveRequest::kHoldForFieldNumber, WireType::kBytes):
        fault = DecodeDuration(reader.Bytes(), "hold_for", hold_for);
        break;
      case WireTag(v1::ReserveRequest::kRequestIdFieldNumber, WireType::kBytes):
        request.call.request_id = reader.Bytes();
        if (!IsUtf8(request.call.request_id)) fault = NotUtf8("request_id");
        break;
      default:
        reader.Skip(tag);
    }
    if (fault != nullptr) return fault;
  }
  if (!reader.ok()) return NotAMessage("");
  if (CallFault fault = ReadDuration(max_wait, "max_wait", request.max_wait_ns)) return fault;
  return ReadDuration(hold_for, "hold_for", request.hold_ns);
}

// Numbers one after the other without tags.
CallFault DecodePacked(absl::string_view bytes, std::vector<std::int64_t>& numbers) {
  google::protobuf::io::CodedInputStream input(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                               static_cast<int>(bytes.size()));
  const int size = static_cast<int>(bytes.size());
  while (input.CurrentPosition() < size) {
    std::uint64_t value;
    if (!input.ReadVarint64(&value)) return NotAMessage("actual");
    numbers.push_back(static_cast<std::int64_t>(value));
  }
  return nullptr;
}

v1::HoldState ToWire(HoldState state) {
  switch (state) {
    case HoldState::kOpen:
      break;
    case HoldState::kSettled:
      return v1::SETTLED;
    case HoldState::kCancelled:
      return v1::CANCELLED;
    case HoldState::kExpired:
      return v1::EXPIRED;
  }
  return v1::HOLD_STATE_UNSPECIFIED;
}

v1::Reason ToWire(Reason reason) {
  switch (reason) {
    case Reason::kAllowed:
      return v1::ALLOWED;
    case Reason::kShadowed:
      return v1::SHADOWED;
    case Reason::kQuotaExceeded:
      return v1::QUOTA_EXCEEDED;
    case Reason::kCostExceedsCapacity:
      return v1::COST_EXCEEDS_CAPACITY;
    case Reason::kTooMuchDebt:
      return v1::TOO_MUCH_DEBT;
    case Reason::kTooManyHolds:
      return v1::TOO_MANY_HOLDS;
  }
  return v1::REASON_UNSPECIFIED;
}

void WriteDuration(std::uint32_t field, std::int64_t ns, WireWriter& writer) {
  const std::size_t end = writer.size();
  writer.Varint(Duration::kNanosFieldNumber, static_cast<std::uint64_t>(ns % kNsPerSecond));
  writer.Varint(Duration::kSecondsFieldNumber, static_cast<std::uint64_t>(ns / kNsPerSecond));
  writer.Message(field, end);
}

// The most that a charge's result takes beside the limit's name, and an answer beside its charges, with the lengths of
// what encloses it: tags, and numbers of ten bytes at most.
constexpr std::size_t kMaxChargeResultBytes = 96;
constexpr std::size_t kMaxAnswerBytes = 64;
// What an answer about a reservation takes more: its name and two times; and one charge of those that ended, beside
// limit and key.
constexpr std::size_t kMaxReserveBytes = 128;
constexpr std::size_t kMaxSettledBytes = 96;

// As field `field` of the answer.
void WriteCharge(std::uint32_t field, absl::string_view limit, const ChargeAnswer& charge, WireWriter& writer) {
  const std::size_t end = writer.size();
  writer.Varint(ChargeResult::kOnUnavailableFieldNumber, static_cast<std::uint64_t>(ToWire(charge.on_unavailable)));
  writer.Varint(ChargeResult::kTightestFieldNumber, charge.tightest ? 1 : 0);
  writer.Varint(ChargeResult::kReasonFieldNumber, static_cast<std::uint64_t>(ToWire(charge.reason)));
  WriteDuration(ChargeResult::kResetAfterFieldNumber, charge.reset_after_ns, writer);
  if (charge.retry_after_ns != kNoWait) {
    WriteDuration(ChargeResult::kRetryAfterFieldNumber, charge.retry_after_ns, writer);
  }
  writer.Varint(ChargeResult::kCapacityFieldNumber, static_cast<std::uint64_t>(charge.capacity));
  writer.Varint(ChargeResult::kRemainingFieldNumber, static_cast<std::uint64_t>(charge.remaining));
  writer.Bytes(ChargeResult::kLimitFieldNumber, limit);
  writer.Message(field, end);
}

void ReserveRoom(const CallRequest& call, std::size_t more, WireWriter& writer) {
  std::size_t bound = kMaxAnswerBytes + more;
  for (const ChargeRequest& charge : call.charges) bound += kMaxChargeResultBytes + charge.limit.size();
  writer.Reserve(bound);
}

void WriteAnswer(const CallRequest& call, const CallAnswer& answer, WireWriter& writer) {
  ReserveRoom(call, 0, writer);
  writer.Varint(ShouldAllowResponse::kReplayedFieldNumber, answer.replayed ? 1 : 0);
  if (answer.retry_after_ns != kNoWait) {
    WriteDuration(ShouldAllowResponse::kRetryAfterFieldNumber, answer.retry_after_ns, writer);
  }
  for (std::size_t i = answer.charges.size(); i-- > 0;) {
    WriteCharge(ShouldAllowResponse::kChargesFieldNumber, call.charges[i].limit, answer.charges[i], writer);
  }
  writer.Varint(ShouldAllowResponse::kReasonFieldNumber, static_cast<std::uint64_t>(ToWire(answer.reason)));
  writer.Varint(ShouldAllowResponse::kAllowedFieldNumber, answer.allowed ? 1 : 0);
}

void WriteReserveAnswer(const CallRequest& call, const ReserveAnswer& answer, WireWriter& writer) {
  ReserveRoom(call, kMaxReserveBytes, writer);
  writer.Varint(v1::ReserveResponse::kReplayedFieldNumber, answer.call.replayed ? 1 : 0);
  if (answer.call.retry_after_ns != kNoWait) {
    WriteDuration(v1::ReserveResponse::kRetryAfterFieldNumber, answer.call.retry_after_ns, writer);
  }
  for (std::size_t i = answer.call.charges.size(); i-- > 0;) {
    WriteCharge(v1::ReserveResponse::kChargesFieldNumber, call.charges[i].limit, answer.call.charges[i], writer);
  }
  if (answer.call.allowed) {
    WriteDuration(v1::ReserveResponse::kExpiresAfterFieldNumber, answer.expires_after_ns, writer);
    WriteDuration(v1::ReserveResponse::kActAfterFieldNumber, answer.act_after_ns, writer);
    writer.Bytes(v1::ReserveResponse::kReservationIdFieldNumber, answer.reservation_id);
  }
  writer.Varint(v1::ReserveResponse::kReasonFieldNumber, static_cast<std::uint64_t>(ToWire(answer.call.reason)));
  writer.Varint(v1::ReserveResponse::kGrantedFieldNumber, answer.call.allowed ? 1 : 0);
}

void WriteSettled(const SettledCharge& charge, WireWriter& writer) {
  writer.Reserve(kMaxSettledBytes + charge.limit.size() + charge.key.size());
  const std::size_t end = writer.size();
  writer.Varint(v1::SettledCharge::kUncoveredFieldNumber, static_cast<std::uint64_t>(charge.uncovered));
  writer.Varint(v1::SettledCharge::kOverrunFieldNumber, static_cast<std::uint64_t>(charge.overrun));
  writer.Varint(v1::SettledCharge::kGivenBackFieldNumber, static_cast<std::uint64_t>(charge.given_back));
  writer.Varint(v1::SettledCharge::kActualFieldNumber, static_cast<std::uint64_t>(charge.actual));
  writer.Varint(v1::SettledCharge::kReservedFieldNumber, static_cast<std::uint64_t>(charge.reserved));
  writer.Bytes(v1::SettledCharge::kKeyFieldNumber, charge.key);
  writer.Bytes(v1::SettledCharge::kLimitFieldNumber, charge.limit);
  writer.Message(v1::SettleResponse::kChargesFieldNumber, end);
}

void WriteError(std::size_t index, const CallError& error, WireWriter& writer) {
  google::rpc::Status status;
  ToRpcStatus(error, absl::StrCat("calls[", index, "]."), status);
  const std::string bytes = status.SerializeAsString();
  const std::size_t end = writer.size();
  writer.Reserve(bytes.size() + kMaxAnswerBytes);
  writer.PutBytes(bytes);
  writer.Message(ShouldAllowOutcome::kErrorFieldNumber, end);
}

}  // namespace

v1::OnUnavailable ToWire(OnUnavailable advice) {
  return advice == OnUnavailable::kAllow ? v1::ON_UNAVAILABLE_ALLOW : v1::ON_UNAVAILABLE_DENY;
}

CallFault CallCodec::Decode(absl::string_view request) {
  charges_.clear();
  if (CallFault fault = DecodeCall(request, charges_, call_)) return fault;
  call_.charges = charges_;
  return nullptr;
}

absl::string_view CallCodec::Encode() {
  writer_.Clear();
  WriteAnswer(call_, answer_, writer_);
  return writer_.bytes();
}

CallFault ReserveCodec::Decode(absl::string_view request) {
  charges_.clear();
  if (CallFault fault = DecodeReserve(request, charges_, request_)) return fault;
  request_.call.charges = charges_;
  return nullptr;
}

absl::string_view ReserveCodec::Encode() {
  writer_.Clear();
  WriteReserveAnswer(request_.call, answer_, writer_);
  return writer_.bytes();
}

CallFault SettleCodec::Decode(absl::string_view request) {
  reservation_id_ = absl::string_view();
  actual_.clear();
  WireReader reader(request);
  for (std::uint32_t tag; reader.Next(tag);) {
    switch (tag) {
      case WireTag(v1::SettleRequest::kReservationIdFieldNumber, WireType::kBytes):
        reservation_id_ = reader.Bytes();
        if (!IsUtf8(reservation_id_)) return NotUtf8("reservation_id");
        break;
      case WireTag(v1::SettleRequest::kActualFieldNumber, WireType::kBytes):
        if (CallFault fault = DecodePacked(reader.Bytes(), actual_)) return fault;
        break;
      case WireTag(v1::SettleRequest::kActualFieldNumber, WireType::kVarint):
        actual_.push_back(static_cast<std::int64_t>(reader.Varint()));
        break;
      default:
        reader.Skip(tag);
    }
  }
  return reader.ok() ? nullptr : NotAMessage("");
}

absl::string_view SettleCodec::Encode() {
  writer_.Clear();
  for (std::size_t i = answer_.charges.size(); i-- > 0;) WriteSettled(answer_.charges[i], writer_);
  writer_.Reserve(kMaxAnswerBytes);
  writer_.Varint(v1::SettleResponse::kRepeatedFieldNumber, answer_.repeated ? 1 : 0);
  writer_.Varint(v1::SettleResponse::kStateFieldNumber, static_cast<std::uint64_t>(ToWire(answer_.state)));
  return writer_.bytes();
}

CallFault BatchCodec::Decode(absl::string_view request) {
  charges_.clear();
  charge_counts_.clear();
  calls_.clear();
  std::size_t count = 0;
  WireReader reader(request);
  for (std::uint32_t tag; reader.Next(tag);) {
    if (tag != WireTag(ShouldAllowBatchRequest::kCallsFieldNumber, WireType::kBytes)) {
      reader.Skip(tag);
      continue;
    }
    const absl::string_view message = reader.Bytes();
    if (count++ >= kMaxCallsPerBatch) continue;  // only counted: the batch is refused
    const std::size_t charges_before = charges_.size();
    if (CallFault fault = DecodeCall(message, charges_, calls_.emplace_back())) {
      return Within(absl::StrCat("calls[", count - 1, "]"), *fault);
    }
    charge_counts_.push_back(charges_.size() - charges_before);
  }
  if (!reader.ok()) return NotAMessage("");
  if (count == 0) return Fault(ErrorReason::kInvalidField, "calls", "must hold at least one call");
  if (count > kMaxCallsPerBatch) {
    return Fault(ErrorReason::kInvalidField, "calls",
                 absl::StrCat("must hold at most ", kMaxCallsPerBatch, " calls, not ", count));
  }
  // Only now do the charges stay where they are.
  const ChargeRequest* charges = charges_.data();
  for (std::size_t i = 0; i < count; ++i) {
    calls_[i].charges = absl::MakeConstSpan(charges, charge_counts_[i]);
    charges += charge_counts_[i];
  }
  if (answers_.size() < count) answers_.resize(count);
  return nullptr;
}

absl::string_view BatchCodec::Encode() {
  writer_.Clear();
  for (std::size_t i = calls_.size(); i-- > 0;) {
    const std::size_t end = writer_.size();
    writer_.Reserve(kMaxAnswerBytes);
    if (answers_[i].error != nullptr) {
      WriteError(i, *answers_[i].error, writer_);
    } else {
      WriteAnswer(calls_[i], answers_[i], writer_);
      writer_.Message(ShouldAllowOutcome::kResponseFieldNumber, end);
    }
    writer_.Message(ShouldAllowBatchResponse::kOutcomesFieldNumber, end);
  }
  return writer_.bytes();
}

}  // namespace ebbgate

#include "server/service/call_codec.h"

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

// Appends the charges of a call to `charges` and sets all of `call` but its charges. Charges beyond the first too many
// are looked at and dropped.
CallFault DecodeCall(absl::string_view bytes, std::vector<ChargeRequest>& charges, CallRequest& call) {
  call = CallRequest();
  std::size_t count = 0;
  WireReader reader(bytes);
  for (std::uint32_t tag; reader.Next(tag);) {
    switch (tag) {
      case WireTag(ShouldAllowRequest::kChargesFieldNumber, WireType::kBytes): {
        ChargeRequest charge;
        const absl::string_view message = reader.Bytes();
        if (CallFault fault = DecodeCharge(message, charge)) {
          return Within(absl::StrCat("charges[", count, "]"), *fault);
        }
        if (count++ <= kMaxChargesPerCall) charges.push_back(charge);
        break;
      }
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

void WriteCharge(absl::string_view limit, const ChargeAnswer& charge, WireWriter& writer) {
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
  writer.Message(ShouldAllowResponse::kChargesFieldNumber, end);
}

void WriteAnswer(const CallRequest& call, const CallAnswer& answer, WireWriter& writer) {
  std::size_t bound = kMaxAnswerBytes;
  for (const ChargeRequest& charge : call.charges) bound += kMaxChargeResultBytes + charge.limit.size();
  writer.Reserve(bound);
  writer.Varint(ShouldAllowResponse::kReplayedFieldNumber, answer.replayed ? 1 : 0);
  if (answer.retry_after_ns != kNoWait) {
    WriteDuration(ShouldAllowResponse::kRetryAfterFieldNumber, answer.retry_after_ns, writer);
  }
  for (std::size_t i = answer.charges.size(); i-- > 0;) {
    WriteCharge(call.charges[i].limit, answer.charges[i], writer);
  }
  writer.Varint(ShouldAllowResponse::kReasonFieldNumber, static_cast<std::uint64_t>(ToWire(answer.reason)));
  writer.Varint(ShouldAllowResponse::kAllowedFieldNumber, answer.allowed ? 1 : 0);
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

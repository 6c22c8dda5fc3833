// The messages of RateLimiter as bytes, to and from the engine's plain structures: the fast path of every call.
//
// Thread-safety: an object belongs to one call at a time, and is used again for the next: memory is kept, so that in
// steady state nothing is allocated. Ownership: calls are views into the bytes that were decoded, which must outlive
// them; what Encode returns is good until the next Decode or Encode. Cost: some 20 ns a charge each way.
#ifndef EBBGATE_SERVER_SERVICE_CALL_CODEC_H_
#define EBBGATE_SERVER_SERVICE_CALL_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ebbgate/v1/rate_limiter.pb.h"
#include "server/engine/call.h"
#include "server/service/wire_writer.h"

namespace ebbgate {

v1::OnUnavailable ToWire(OnUnavailable advice);

// Null: all is well.
using CallFault = std::shared_ptr<const CallError>;

// ShouldAllowRequest and ShouldAllowResponse.
class CallCodec {
 public:
  // MALFORMED, naming the field where one is at fault. Of a call with too many charges as many are carried over as the
  // engine needs to refuse it.
  CallFault Decode(absl::string_view request);

  const CallRequest& call() const { return call_; }
  CallAnswer& answer() { return answer_; }

  // Pre: the engine has filled the answer, without an error.
  absl::string_view Encode();

 private:
  std::vector<ChargeRequest> charges_;
  CallRequest call_;
  CallAnswer answer_;
  WireWriter writer_;
};

// ReserveRequest and ReserveResponse.
class ReserveCodec {
 public:
  // MALFORMED, or INVALID_FIELD for a duration that is none; else as CallCodec's.
  CallFault Decode(absl::string_view request);

  const ReserveRequest& request() const { return request_; }
  ReserveAnswer& answer() { return answer_; }

  // Pre: the engine has filled the answer, without an error.
  absl::string_view Encode();

 private:
  std::vector<ChargeRequest> charges_;
  ReserveRequest request_;
  ReserveAnswer answer_;
  WireWriter writer_;
};

// SettleRequest, CancelRequest (the same without amounts), and SettleResponse.
class SettleCodec {
 public:
  // MALFORMED. What is named and said is the engine's to judge.
  CallFault Decode(absl::string_view request);

  absl::string_view reservation_id() const { return reservation_id_; }
  absl::Span<const std::int64_t> actual() const { return actual_; }
  SettleAnswer& answer() { return answer_; }

  // Pre: the engine has filled the answer, without an error.
  absl::string_view Encode();

 private:
  absl::string_view reservation_id_;
  std::vector<std::int64_t> actual_;
  SettleAnswer answer_;
  WireWriter writer_;
};

// ShouldAllowBatchRequest and ShouldAllowBatchResponse.
class BatchCodec {
 public:
  // MALFORMED, or INVALID_FIELD for no calls or too many of them: the batch is refused as a whole.
  CallFault Decode(absl::string_view request);

  absl::Span<const CallRequest> calls() const { return calls_; }
  absl::Span<CallAnswer> answers() { return absl::MakeSpan(answers_.data(), calls_.size()); }

  // Pre: the engine has filled the answers, some perhaps with errors.
  absl::string_view Encode();

 private:
  std::vector<ChargeRequest> charges_;  // of all calls, one after the other
  std::vector<std::size_t> charge_counts_;
  std::vector<CallRequest> calls_;
  std::vector<CallAnswer> answers_;  // perhaps more than calls: its elements keep their memory
  WireWriter writer_;
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_SERVICE_CALL_CODEC_H_

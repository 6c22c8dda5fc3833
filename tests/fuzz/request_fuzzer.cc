// Feeds whatever libFuzzer makes up to the way of a call, a batch, a reservation and its end: decode, decide, encode.
// Nothing may crash; what is decoded is what the generated classes read; what is encoded they can read; and the account
// adds up.
#include <google/protobuf/stubs/logging.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "ebbgate/v1/rate_limiter.pb.h"
#include "server/engine/engine.h"
#include "server/limiter/manual_time.h"
#include "server/service/call_codec.h"
#include "server/service/error_details.h"

namespace {

using namespace ebbgate;

void Require(bool holds) {
  if (!holds) abort();
}

Limit TokenBucket(const std::string& name, std::int64_t capacity) {
  Limit limit;
  limit.name = name;
  limit.parameters.capacity = FromTokens(capacity);
  limit.parameters.refill = {kMicrotokensPerToken, kNsPerSecond};
  return limit;
}

// A small store, so that it fills up and forgets.
class World {
 public:
  World() : engine_(SmallOptions(), time_) {
    google::protobuf::SetLogHandler(nullptr);
    engine_.InstallLimits({TokenBucket("a", 4), TokenBucket("b", 1'000'000)});
  }

  void OneCall(const std::string& bytes) {
    v1::ShouldAllowRequest read;
    const CallFault fault = call_.Decode(bytes);
    Require((fault == nullptr) == read.ParseFromString(bytes));
    if (fault != nullptr) return Check(*fault);
    engine_.Decide(call_.call(), call_.answer());
    if (call_.answer().error != nullptr) return Check(*call_.answer().error);
    v1::ShouldAllowResponse response;
    Require(response.ParseFromString(std::string(call_.Encode())));
    Require(response.allowed() == call_.answer().allowed);
    Require(response.charges_size() == read.charges_size());
  }

  void Batch(const std::string& bytes) {
    v1::ShouldAllowBatchRequest read;
    const bool readable = read.ParseFromString(bytes);
    const CallFault fault = batch_.Decode(bytes);
    if (fault != nullptr) {
      Require(!readable || fault->reason == ErrorReason::kInvalidField);
      return Check(*fault);
    }
    Require(readable);
    engine_.DecideBatch(batch_.calls(), batch_.answers());
    v1::ShouldAllowBatchResponse response;
    Require(response.ParseFromString(std::string(batch_.Encode())));
    Require(response.outcomes_size() == read.calls_size());
    for (const v1::ShouldAllowOutcome& outcome : response.outcomes()) {
      Require(outcome.outcome_case() != v1::ShouldAllowOutcome::OUTCOME_NOT_SET);
    }
  }

  void Reservation(const std::string& bytes) {
    v1::ReserveRequest read;
    const CallFault fault = reserve_.Decode(bytes);
    Require((fault == nullptr || fault->reason == ErrorReason::kInvalidField) == read.ParseFromString(bytes));
    if (fault != nullptr) return Check(*fault);
    engine_.Reserve(reserve_.request(), reserve_.answer());
    if (reserve_.answer().call.error != nullptr) return Check(*reserve_.answer().call.error);
    v1::ReserveResponse response;
    Require(response.ParseFromString(std::string(reserve_.Encode())));
    Require(response.granted() == reserve_.answer().call.allowed);
    Require(response.charges_size() == read.charges_size());
    if (response.granted()) last_id_ = response.reservation_id();
  }

  // Settles the last reservation with the amounts of the bytes, whatever they name.
  void End(const std::string& bytes) {
    v1::SettleRequest read;
    const CallFault fault = settle_.Decode(bytes);
    Require((fault == nullptr) == read.ParseFromString(bytes));
    if (fault != nullptr) return Check(*fault);
    engine_.Cancel(settle_.reservation_id(), settle_.answer());
    if (settle_.answer().error != nullptr) Check(*settle_.answer().error);
    engine_.Settle(last_id_, settle_.actual(), settle_.answer());
    if (settle_.answer().error != nullptr) return Check(*settle_.answer().error);
    v1::SettleResponse response;
    Require(response.ParseFromString(std::string(settle_.Encode())));
    for (const v1::SettledCharge& charge : response.charges()) {
      Require(charge.reserved() + charge.overrun() == charge.actual() + charge.given_back());
    }
  }

  void LetTimePass() {
    time_.Advance(100'000'000);
    engine_.Maintain();
  }

 private:
  static EngineOptions SmallOptions() {
    EngineOptions options;
    options.max_keys = 1000;
    options.max_request_ids = 100;
    options.max_holds = 100;
    return options;
  }

  static void Check(const CallError& error) {
    const grpc::Status status = ToGrpcStatus(error);
    google::rpc::Status rich;
    Require(!status.ok() && rich.ParseFromString(status.error_details()) && rich.details_size() > 0);
  }

  ManualTime time_{1'793'512'020 * kNsPerSecond, kNsPerSecond};
  Engine engine_;
  CallCodec call_;
  BatchCodec batch_;
  ReserveCodec reserve_;
  SettleCodec settle_;
  std::string last_id_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static World* const world = new World;  // never deleted: libFuzzer ends the process as it likes
  const std::string bytes(data, data + size);
  world->OneCall(bytes);
  world->Batch(bytes);
  world->Reservation(bytes);
  world->End(bytes);
  world->LetTimePass();
  return 0;
}

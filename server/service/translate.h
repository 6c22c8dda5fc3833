// Between the messages of ebbgate.v1 and the engine's plain structures, in both directions, and from errors to what
// gRPC carries. Nothing is decided or validated here beyond the size of a batch: the engine judges what is asked.
//
// Thread-safety: free functions are pure; a BatchCall belongs to one call at a time.
// Ownership: what FromWire and BatchCall::Load make are views into the request message, which must outlive them.
// Cost: a copy of a few words a charge. Buffers keep their memory, so that a reused one allocates nothing.
#ifndef EBBGATE_SERVER_SERVICE_TRANSLATE_H_
#define EBBGATE_SERVER_SERVICE_TRANSLATE_H_

#include <grpcpp/support/status.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ebbgate/v1/rate_limiter.pb.h"
#include "google/protobuf/duration.pb.h"
#include "google/rpc/status.pb.h"
#include "server/engine/call.h"

namespace ebbgate {

// The call that `request` asks for. `charges` is overwritten and is what the call's span points at. Of a request with
// too many charges only as many are carried over as the engine needs to refuse it.
CallRequest FromWire(const v1::ShouldAllowRequest& request, std::vector<ChargeRequest>& charges);

// Pre: `answer` has no error, and is the engine's answer to `call`; `response` is empty.
void ToWire(const CallRequest& call, const CallAnswer& answer, v1::ShouldAllowResponse& response);

// The error with its details, as gRPC sends them: google.rpc.Status in the trailing metadata.
grpc::Status ToGrpcStatus(const CallError& error);

// The same as a message of its own. `field_prefix`, such as "calls[3].", goes before the name of the field.
void ToRpcStatus(const CallError& error, absl::string_view field_prefix, google::rpc::Status& status);

v1::Reason ToWire(Reason reason);
v1::OnUnavailable ToWire(OnUnavailable advice);

// Exact. Pre: ns >= 0.
void ToWire(std::int64_t ns, google::protobuf::Duration& duration);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_SERVICE_TRANSLATE_H_

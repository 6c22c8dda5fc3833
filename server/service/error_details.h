// What an error carries over the wire: google.rpc.Status with ErrorInfo (reason, domain "ebbgate"), BadRequest naming
// the field for INVALID_ARGUMENT, RetryInfo for UNAVAILABLE. Pure.
#ifndef EBBGATE_SERVER_SERVICE_ERROR_DETAILS_H_
#define EBBGATE_SERVER_SERVICE_ERROR_DETAILS_H_

#include <grpcpp/support/status.h>

#include "absl/strings/string_view.h"
#include "google/rpc/status.pb.h"
#include "server/engine/call.h"

namespace ebbgate {

// As gRPC sends it: the details go into the trailing metadata.
grpc::Status ToGrpcStatus(const CallError& error);

// As a message of its own. `field_prefix`, such as "calls[3].", goes before the name of the field.
void ToRpcStatus(const CallError& error, absl::string_view field_prefix, google::rpc::Status& status);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_SERVICE_ERROR_DETAILS_H_

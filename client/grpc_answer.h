// A denial as a gRPC application passes it on to its own caller.
#ifndef EBBGATE_CLIENT_GRPC_ANSWER_H_
#define EBBGATE_CLIENT_GRPC_ANSWER_H_

#include <grpcpp/support/status.h>

#include "client/client.h"

namespace ebbgate::client {

// OK when allowed. Otherwise RESOURCE_EXHAUSTED with google.rpc details: ErrorInfo (domain "ebbgate"; the reason of the
// denial), a QuotaFailure naming the limits that refused (not the keys: they may be secrets), and RetryInfo where a
// wait helps.
grpc::Status ToGrpcStatus(const Answer& answer);

}  // namespace ebbgate::client

#endif  // EBBGATE_CLIENT_GRPC_ANSWER_H_

// How every part of the client reaches a server: a gRPC channel to an address, and gRPC's errors as absl::Status.
//
// Not part of the public interface (that is client.h). Thread-safe: free functions without state.
#ifndef EBBGATE_CLIENT_CHANNEL_H_
#define EBBGATE_CLIENT_CHANNEL_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/tls_files.h"

namespace ebbgate::client {

// A channel to "host:port" or "unix:/path"; TLS if given. It connects when first used. Channels to one address share a
// connection unless `own_connection`. INVALID_ARGUMENT or NOT_FOUND if a TLS file cannot be used.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const std::string& address,
                                                           const std::optional<TlsFiles>& tls, bool own_connection);

// The same code and message; google.rpc details become payloads under their type URLs.
absl::Status FromGrpc(const grpc::Status& status);

// A context whose call ends after `timeout` at the latest.
void SetTimeout(grpc::ClientContext& context, absl::Duration timeout);

}  // namespace ebbgate::client

#endif  // EBBGATE_CLIENT_CHANNEL_H_

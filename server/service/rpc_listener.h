// Binds a gRPC server to an address, so that what fails, fails at once and says why.
//
// Thread-safety: for use while a process starts; the file mode mask is changed for a moment.
#ifndef EBBGATE_SERVER_SERVICE_RPC_LISTENER_H_
#define EBBGATE_SERVER_SERVICE_RPC_LISTENER_H_

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <string>

#include "absl/status/statusor.h"
#include "server/config/listen_address.h"

namespace ebbgate {

struct BoundAddress {
  std::string text;  // "127.0.0.1:7370" with the actual port, or "unix:/run/ebbgate.sock"
  int port = 0;      // of TCP
};

// TCP: every address of the host, all on one port; of a name that has both kinds, one that this machine does not have
// is passed over. Unix socket: a file that nobody listens on any more is replaced, one in use or that is no socket is
// not; owner and group may connect. gRPC removes the file when the server shuts down.
absl::StatusOr<BoundAddress> Bind(grpc_server* server, const ListenAddress& address,
                                  grpc_server_credentials* credentials);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_SERVICE_RPC_LISTENER_H_

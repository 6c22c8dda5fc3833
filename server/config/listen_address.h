// Where a server listens: "127.0.0.1:7370", "[::1]:7370", "localhost:7370" or "unix:/run/ebbgate.sock". Plain values.
#ifndef EBBGATE_SERVER_CONFIG_LISTEN_ADDRESS_H_
#define EBBGATE_SERVER_CONFIG_LISTEN_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ebbgate {

struct ListenAddress {
  std::string text;  // as gRPC takes it
  std::string host;  // without brackets; empty for a Unix socket
  int port = 0;      // 0: any free one
  std::string path;  // of the Unix socket; empty for TCP

  bool is_unix() const { return !path.empty(); }
  // Whether only this machine can reach it: a Unix socket, 127.0.0.0/8, ::1 or "localhost".
  bool is_local() const;
};

// INVALID_ARGUMENT says what is wrong and how to write it. Looks no name up.
absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_CONFIG_LISTEN_ADDRESS_H_

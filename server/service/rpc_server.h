// A gRPC server on gRPC's core: methods on completion queues, one thread each; TCP and Unix sockets; TLS; an orderly
// end.
//
//   auto server = RpcServer::Start(options, methods, counters);   // listening and serving
//   ...
//   (*server)->BeginStop();                                       // no new connections; streams are ended
//   if (!(*server)->AwaitStopped(drain_timeout_ns)) (*server)->CancelCalls();
//
// Thread-safety: everything may be called from any thread; stopping from one at a time. Ownership: what the methods
// refer to outlives the server. Bounded: calls in flight, streams a connection may hold, bytes of a message, time for a
// handshake (see rpc_server.cc for each). What exceeds the bound on calls is answered UNAVAILABLE (OVERLOADED) at once.
#ifndef EBBGATE_SERVER_SERVICE_RPC_SERVER_H_
#define EBBGATE_SERVER_SERVICE_RPC_SERVER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/config/listen_address.h"
#include "server/config/server_options.h"
#include "server/service/rpc_method.h"
#include "server/telemetry/service_counters.h"

namespace ebbgate {

class RpcServer;

struct RpcServerOptions {
  std::vector<ListenAddress> listen = {};
  TlsFiles tls = {};  // of TCP listeners; Unix sockets are never encrypted
  int threads = 1;
  std::int64_t max_calls_in_flight = 10'000;
  // Of TCP connections, which a balancer deals out only once; Unix sockets are not aged. 0: for ever. gRPC varies it by
  // a tenth either way, so that connections made together do not end together.
  std::int64_t max_connection_age_ns = 0;
  // Another server, which outlives this one, and whose threads wait for this one's sockets too; null: its own do. In
  // gRPC a thread that waits for sockets waits for those of the whole process and hands over what is not its own, so
  // that a thread for rare calls would slow down all the others.
  RpcServer* sockets_of = nullptr;
};

class RpcServer {
 public:
  // Fails at once, having served nobody, if an address cannot be listened on: the message says which, why, and what to
  // do.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(const RpcServerOptions& options,
                                                          const std::vector<RpcMethod>& methods,
                                                          ServiceCounters& counters);
  // Cancels what still runs.
  ~RpcServer();
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  // Where it listens, in the order of the options, with actual ports: "127.0.0.1:7370", "unix:/run/ebbgate.sock".
  const std::vector<std::string>& addresses() const;
  // The same for TCP listeners only.
  const std::vector<int>& ports() const;

  // Lets every feed (health Watch) look whether its answer has changed.
  void WakeFeeds();

  void BeginStop();
  // Whether all connections are gone, and with them whoever could see how a call ends. Pre: BeginStop was called.
  bool AwaitStopped(std::int64_t timeout_ns);
  // Ends all calls now. Pre: BeginStop was called.
  void CancelCalls();

 private:
  class Impl;
  explicit RpcServer(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_SERVICE_RPC_SERVER_H_

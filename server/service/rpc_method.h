// What a gRPC server serves: methods by name, each answered message by message.
//
// Whoever implements a method sees bytes in and bytes out and knows nothing of queues, streams or connections;
// RpcServer does the rest, the same way for every method.
#ifndef EBBGATE_SERVER_SERVICE_RPC_METHOD_H_
#define EBBGATE_SERVER_SERVICE_RPC_METHOD_H_

#include <grpcpp/support/status.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "server/telemetry/service_counters.h"

namespace ebbgate {

// Answers messages of one method. Used by one thread. Must not block for long: other calls wait meanwhile.
class MessageHandler {
 public:
  virtual ~MessageHandler() = default;

  // Answers `request`: OK and `response`, which stays good until the next call; or an error, which ends the call.
  virtual grpc::Status Handle(absl::string_view request, absl::string_view& response) = 0;
};

enum class CallShape : std::uint8_t {
  kUnary,
  // Each message of the caller's is answered by one message, in order, until the caller is done.
  kStream,
  // The caller sends one message, and is sent an answer now and again whenever it has changed, until it hangs up.
  kFeed,
};

struct RpcMethod {
  std::string path;  // "/ebbgate.v1.RateLimiter/ShouldAllow"
  CallShape shape;
  Method counted_as;
  // Called for each thread that serves the method. What the handler refers to outlives the server.
  std::function<std::unique_ptr<MessageHandler>()> make_handler;
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_SERVICE_RPC_METHOD_H_

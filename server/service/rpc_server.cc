#include "server/service/rpc_server.h"

#include <grpc/compression.h>
#include <grpc/grpc.h>
#include <grpc/support/time.h>

#include <algorithm>
#include <list>
#include <utility>

#include "server/limiter/bounds.h"
#include "server/service/rpc_listener.h"
#include "server/service/rpc_queue.h"
#include "server/service/tls.h"

namespace ebbgate {
namespace {

constexpr int kMsPerSecond = 1000;
// Calls at one time on one connection: enough for any one process, and a bound on what a hostile one can hold.
constexpr int kMaxConcurrentStreams = 4096;
// From connecting to the first frame, TLS included. gRPC's default of 120 s lets idle sockets pile up.
constexpr int kHandshakeTimeoutMs = 10 * kMsPerSecond;
// A caller that vanished without a word is noticed within these together.
constexpr int kKeepaliveEveryMs = 60 * kMsPerSecond;
constexpr int kKeepaliveTimeoutMs = 20 * kMsPerSecond;
// Callers may ping this often without a call under way; those that ping more are disconnected after two warnings.
constexpr int kMinPingIntervalMs = 10 * kMsPerSecond;
constexpr int kMaxPingStrikes = 2;
// What calls that run when a connection reaches its age may still take. Streams end by themselves before: see
// ServedMethod::max_stream_age_ns.
constexpr int kConnectionAgeGraceMs = 60 * kMsPerSecond;

// Calls into gRPC's core are allowed while one of these lives.
class GrpcRuntime {
 public:
  GrpcRuntime() { grpc_init(); }
  ~GrpcRuntime() { grpc_shutdown(); }
  GrpcRuntime(const GrpcRuntime&) = delete;
  GrpcRuntime& operator=(const GrpcRuntime&) = delete;
};

grpc_arg IntegerArg(const char* key, int value) {
  grpc_arg arg = {};
  arg.type = GRPC_ARG_INTEGER;
  arg.key = const_cast<char*>(key);  // gRPC only reads it
  arg.value.integer = value;
  return arg;
}

std::vector<grpc_arg> ChannelArgs(std::int64_t max_connection_age_ns) {
  std::vector<grpc_arg> args = {
      // A second server on the same port is a mistake, and must not silently get half of the connections.
      IntegerArg(GRPC_ARG_ALLOW_REUSEPORT, 0),
      IntegerArg(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxConcurrentStreams),
      IntegerArg(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, static_cast<int>(kMaxMessageBytes)),
      IntegerArg(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMs),
      IntegerArg(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveEveryMs),
      IntegerArg(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs),
      IntegerArg(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1),
      IntegerArg(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinPingIntervalMs),
      IntegerArg(GRPC_ARG_HTTP2_MAX_PING_STRIKES, kMaxPingStrikes),
      // Compressed messages are refused (UNIMPLEMENTED): a few hundred bytes gain nothing, and a small message that
      // unfolds into a large one is an attack.
      IntegerArg(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1 << GRPC_COMPRESS_NONE),
      IntegerArg(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0),
      IntegerArg(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0),
      // Deadlines are looked at before each decision; a timer for each call on top would cost more than the decision.
      IntegerArg(GRPC_ARG_ENABLE_DEADLINE_CHECKS, 0),
      // Nobody reads these statistics of every call.
      IntegerArg(GRPC_ARG_ENABLE_CHANNELZ, 0),
  };
  if (max_connection_age_ns > 0) {
    args.push_back(IntegerArg(GRPC_ARG_MAX_CONNECTION_AGE_MS, static_cast<int>(max_connection_age_ns / 1'000'000)));
    args.push_back(IntegerArg(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, kConnectionAgeGraceMs));
  }
  return args;
}

struct DestroyServer {
  void operator()(grpc_server* server) const { grpc_server_destroy(server); }
};

// gRPC's servers, one for each kind of socket because age is set for a whole server.
struct CoreServer {
  explicit CoreServer(std::int64_t max_age_ns) : max_connection_age_ns(max_age_ns) {
    std::vector<grpc_arg> args = ChannelArgs(max_age_ns);
    const grpc_channel_args list = {args.size(), args.data()};
    server.reset(grpc_server_create(&list, nullptr));
  }

  std::int64_t max_connection_age_ns;
  std::unique_ptr<grpc_server, DestroyServer> server;
};

}  // namespace

class RpcServer::Impl {
 public:
  Impl(const RpcServerOptions& options, ServiceCounters& counters)
      : sockets_of_(options.sockets_of == nullptr ? *this : *options.sockets_of->impl_),
        budget_(options.max_calls_in_flight) {
    const auto kind = &sockets_of_ == this ? RpcQueue::Kind::kWaitsForSockets : RpcQueue::Kind::kIsHandedEvents;
    for (int i = 0; i < options.threads; ++i) queues_.emplace_back(kind, budget_, counters);
  }

  ~Impl() {
    BeginStop();
    CancelCalls();
    while (!AwaitStopped(kNsPerSecond)) {
    }
    for (RpcQueue& queue : queues_) queue.Join();
    grpc_completion_queue_shutdown(stop_cq_);
    while (grpc_completion_queue_next(stop_cq_, gpr_inf_future(GPR_CLOCK_REALTIME), nullptr).type !=
           GRPC_QUEUE_SHUTDOWN) {
    }
    servers_.clear();
    grpc_completion_queue_destroy(stop_cq_);
  }

  absl::Status Start(const RpcServerOptions& options, const std::vector<RpcMethod>& methods) {
    std::vector<std::vector<MessageHandler*>> handlers;
    for (RpcQueue& queue : queues_) {
      std::vector<MessageHandler*>& of_queue = handlers.emplace_back();
      for (const RpcMethod& method : methods) of_queue.push_back(queue.AddHandler(method.make_handler()));
    }
    if (absl::Status status = Listen(options); !status.ok()) return status;
    for (CoreServer& core : servers_) {
      for (std::size_t m = 0; m < methods.size(); ++m) {
        void* const registered = grpc_server_register_method(core.server.get(), methods[m].path.c_str(), nullptr,
                                                             GRPC_SRM_PAYLOAD_READ_INITIAL_BYTE_BUFFER, 0);
        std::size_t q = 0;
        for (RpcQueue& queue : queues_) {
          queue.AddMethod(core.server.get(), registered, methods[m], handlers[q++][m], core.max_connection_age_ns);
        }
      }
      for (RpcQueue& queue : queues_) queue.AddUnknownMethods(core.server.get());
      grpc_server_start(core.server.get());
    }
    for (RpcQueue& queue : queues_) queue.Start();
    serving_ = true;
    return absl::OkStatus();
  }

  const std::vector<std::string>& addresses() const { return addresses_; }
  const std::vector<int>& ports() const { return ports_; }

  void WakeFeeds() {
    for (RpcQueue& queue : queues_) queue.WakeFeeds();
  }

  void BeginStop() {
    if (std::exchange(stopping_, true)) return;
    for (CoreServer& core : servers_) {
      grpc_server_shutdown_and_notify(core.server.get(), stop_cq_, &core);
      if (!serving_) continue;
      for (RpcQueue& queue : queues_) queue.ShutDown(core.server.get());
    }
    running_ = servers_.size();
  }

  bool AwaitStopped(std::int64_t timeout_ns) {
    const gpr_timespec deadline =
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(timeout_ns, GPR_TIMESPAN));
    while (running_ > 0) {
      if (grpc_completion_queue_next(stop_cq_, deadline, nullptr).type != GRPC_OP_COMPLETE) return false;
      --running_;
    }
    return true;
  }

  void CancelCalls() {
    for (CoreServer& core : servers_) grpc_server_cancel_all_calls(core.server.get());
  }

 private:
  // The server for addresses of this kind, made when it is first needed.
  CoreServer& ServerFor(bool is_unix, std::int64_t max_connection_age_ns) {
    CoreServer*& chosen = is_unix ? unix_server_ : tcp_server_;
    if (chosen == nullptr) {
      chosen = &servers_.emplace_back(is_unix ? 0 : max_connection_age_ns);
      Register(queues_, *chosen);
      if (&sockets_of_ != this) Register(sockets_of_.queues_, *chosen);
    }
    return *chosen;
  }

  static void Register(std::list<RpcQueue>& queues, CoreServer& core) {
    for (RpcQueue& queue : queues) grpc_server_register_completion_queue(core.server.get(), queue.cq(), nullptr);
  }

  absl::Status Listen(const RpcServerOptions& options) {
    const ServerCredentialsPtr plaintext = PlaintextCredentials();
    const ServerCredentialsPtr tls = options.tls.enabled() ? TlsCredentials(options.tls) : nullptr;
    for (const ListenAddress& address : options.listen) {
      CoreServer& core = ServerFor(address.is_unix(), options.max_connection_age_ns);
      grpc_server_credentials* const credentials =
          options.tls.enabled() && !address.is_unix() ? tls.get() : plaintext.get();
      absl::StatusOr<BoundAddress> bound = Bind(core.server.get(), address, credentials);
      if (!bound.ok()) return bound.status();
      addresses_.push_back(bound->text);
      if (!address.is_unix()) ports_.push_back(bound->port);
    }
    return absl::OkStatus();
  }

  const GrpcRuntime runtime_;
  Impl& sockets_of_;  // perhaps itself
  CallBudget budget_;
  std::list<RpcQueue> queues_;
  std::list<CoreServer> servers_;
  CoreServer* tcp_server_ = nullptr;
  CoreServer* unix_server_ = nullptr;
  std::vector<std::string> addresses_;
  std::vector<int> ports_;
  grpc_completion_queue* const stop_cq_ = grpc_completion_queue_create_for_next(nullptr);
  bool serving_ = false;
  bool stopping_ = false;
  std::size_t running_ = 0;  // servers that have not shut down
};

RpcServer::RpcServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RpcServer::~RpcServer() = default;

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(const RpcServerOptions& options,
                                                            const std::vector<RpcMethod>& methods,
                                                            ServiceCounters& counters) {
  auto impl = std::make_unique<Impl>(options, counters);
  if (absl::Status status = impl->Start(options, methods); !status.ok()) return status;
  return std::unique_ptr<RpcServer>(new RpcServer(std::move(impl)));
}

const std::vector<std::string>& RpcServer::addresses() const { return impl_->addresses(); }
const std::vector<int>& RpcServer::ports() const { return impl_->ports(); }
void RpcServer::WakeFeeds() { impl_->WakeFeeds(); }
void RpcServer::BeginStop() { impl_->BeginStop(); }
bool RpcServer::AwaitStopped(std::int64_t timeout_ns) { return impl_->AwaitStopped(timeout_ns); }
void RpcServer::CancelCalls() { impl_->CancelCalls(); }

}  // namespace ebbgate

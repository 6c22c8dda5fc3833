// A real server in the test's own process, with a clock moved by hand, and ways to call it.
#ifndef EBBGATE_TESTS_UNIT_SERVICE_SERVED_H_
#define EBBGATE_TESTS_UNIT_SERVICE_SERVED_H_

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "ebbgate/v1/rate_limiter.grpc.pb.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
#include "server/limiter/manual_time.h"
#include "server/service/health_methods.h"
#include "server/service/rate_limiter_methods.h"
#include "server/service/readiness.h"
#include "server/service/reflection_methods.h"
#include "server/service/rpc_server.h"
#include "tests/support/limits.h"

namespace ebbgate::testing {

inline ListenAddress Tcp(int port = 0) {
  ListenAddress address;
  address.text = absl::StrCat("127.0.0.1:", port);
  address.host = "127.0.0.1";
  address.port = port;
  return address;
}

inline ListenAddress UnixSocket(const std::string& path) {
  ListenAddress address;
  address.text = absl::StrCat("unix:", path);
  address.path = path;
  return address;
}

// Long enough for any machine; nothing waits for it but a test that fails.
inline constexpr std::int64_t kPatienceNs = 60 * kNsPerSecond;

inline void SetPatience(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::nanoseconds(kPatienceNs));
}

// A method that holds its thread until it is let go: for calls in flight that a test can count on.
struct Gate {
  absl::Notification entered;
  absl::Notification open;
};

class GateHandler final : public MessageHandler {
 public:
  explicit GateHandler(Gate& gate) : gate_(gate) {}
  grpc::Status Handle(absl::string_view request, absl::string_view& response) override {
    gate_.entered.Notify();
    gate_.open.WaitForNotification();
    response = request;
    return grpc::Status::OK;
  }

 private:
  Gate& gate_;
};

inline RpcMethod GateMethod(Gate& gate) {
  return {"/test.Gate/Pass", CallShape::kUnary, Method::kReloadLimits,
          [&gate] { return std::make_unique<GateHandler>(gate); }};
}

class Served {
 public:
  explicit Served(RpcServerOptions options = {.listen = {Tcp()}}, std::vector<RpcMethod> more = {}) {
    engine.InstallLimits({Bucket("api-user", 4, 2, kSecond), Bucket("tenant", 100, 1, kHour)});
    std::vector<RpcMethod> methods = RateLimiterMethods({engine, latency, counters, time});
    for (RpcMethod& method : HealthMethods(readiness, {"ebbgate.v1.RateLimiter"})) methods.push_back(method);
    for (RpcMethod& method : ReflectionMethods({"ebbgate.v1.RateLimiter", "grpc.health.v1.Health"})) {
      methods.push_back(method);
    }
    for (RpcMethod& method : more) methods.push_back(method);
    absl::StatusOr<std::unique_ptr<RpcServer>> started = RpcServer::Start(options, methods, counters);
    if (!started.ok()) {
      ADD_FAILURE() << started.status();
      return;
    }
    server = *std::move(started);
    listener_ = readiness.AddListener([this] { server->WakeFeeds(); });
    channel = grpc::CreateChannel(server->addresses().front(), grpc::InsecureChannelCredentials());
    stub = v1::RateLimiter::NewStub(channel);
  }

  ~Served() { readiness.RemoveListener(listener_); }

  grpc::Status ShouldAllow(const v1::ShouldAllowRequest& request, v1::ShouldAllowResponse& response) {
    grpc::ClientContext context;
    SetPatience(context);
    return stub->ShouldAllow(&context, request, &response);
  }

  grpc::Status Batch(const v1::ShouldAllowBatchRequest& request, v1::ShouldAllowBatchResponse& response) {
    grpc::ClientContext context;
    SetPatience(context);
    return stub->ShouldAllowBatch(&context, request, &response);
  }

  // Whole tokens left to (limit, key).
  std::int64_t Remaining(const std::string& limit, const std::string& key) {
    return engine.Inspect(limit, key)->remaining;
  }

  ManualTime time{1'793'512'800 * kNsPerSecond, kHour};
  Engine engine{EngineOptions(), time};
  LatencyRecorder latency;
  ServiceCounters counters;
  Readiness readiness{{"starting"}};
  std::unique_ptr<RpcServer> server;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::RateLimiter::Stub> stub;

 private:
  Readiness::ListenerId listener_ = 0;
};

// A call of any method, with bytes for messages; other calls may be made meanwhile.
class RawCall {
 public:
  RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& path, const std::string& request,
          const std::function<void(grpc::ClientContext&)>& prepare = SetPatience)
      : stub_(channel) {
    prepare(context_);
    const grpc::Slice slice(request);
    reader_ = stub_.PrepareUnaryCall(&context_, path, grpc::ByteBuffer(&slice, 1), &queue_);
    reader_->StartCall();
    reader_->Finish(&response_, &status_, this);
  }
  ~RawCall() {
    Await();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  const grpc::Status& Await() {
    void* tag = nullptr;
    bool ok = false;
    if (!std::exchange(done_, true)) queue_.Next(&tag, &ok);
    return status_;
  }

  std::string response() {
    Await();
    grpc::Slice slice;
    EXPECT_TRUE(response_.DumpToSingleSlice(&slice).ok());
    return std::string(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }

 private:
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  grpc::ByteBuffer response_;
  grpc::Status status_;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader_;
  bool done_ = false;
};

inline v1::ShouldAllowRequest Request(const std::string& limit, const std::string& key) {
  v1::ShouldAllowRequest request;
  request.add_charges()->set_limit(limit);
  request.mutable_charges(0)->set_key(key);
  return request;
}

// ErrorInfo.reason of the details, empty if there is none.
inline std::string ReasonOf(const google::rpc::Status& status) {
  google::rpc::ErrorInfo info;
  for (const google::protobuf::Any& detail : status.details()) {
    if (detail.UnpackTo(&info)) return info.reason();
  }
  return "";
}

inline std::string ReasonOf(const grpc::Status& status) {
  google::rpc::Status rich;
  return rich.ParseFromString(status.error_details()) ? ReasonOf(rich) : "";
}

inline std::string FieldOf(const google::rpc::Status& status) {
  google::rpc::BadRequest bad;
  for (const google::protobuf::Any& detail : status.details()) {
    if (detail.UnpackTo(&bad)) return bad.field_violations(0).field();
  }
  return "";
}

inline std::string FieldOf(const grpc::Status& status) {
  google::rpc::Status rich;
  return rich.ParseFromString(status.error_details()) ? FieldOf(rich) : "";
}

}  // namespace ebbgate::testing

#endif  // EBBGATE_TESTS_UNIT_SERVICE_SERVED_H_

// The yardstick: a bare gRPC server on completion queues that answers each unary call with its own message.
//
// What ebbgated costs is told as a ratio to this, measured in the same minute on the same machine by the same load
// generator; a ratio means the same on a slow machine and on a busy one. So this server must be as good as gRPC's
// generated asynchronous interface allows: one queue and one thread a core, many calls awaited on each, objects reused,
// the same poll strategy and channel arguments as ebbgated.
//
//   yardstick_server --listen 127.0.0.1:0
//
// prints "listening on ADDRESS" when it serves, and ends with 0 on SIGTERM or SIGINT.
#include <grpcpp/grpcpp.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tests/bench/echo.grpc.pb.h"

namespace ebbgate::bench {
namespace {

// Awaited on each queue, so that a burst never waits for a thread to ask for the next call.
constexpr int kCallsAwaited = 64;
constexpr int kMaxMessageBytes = 256 * 1024;

// One call after another in one place in memory. Used by its queue's thread only.
class Call {
 public:
  Call(Yardstick::AsyncService& service, grpc::ServerCompletionQueue& queue) : service_(service), queue_(queue) {
    Await();
  }

  // Returns false when the server has shut down and no further call will come.
  bool Proceed(bool ok) {
    if (!awaiting_) {
      Await();
      return true;
    }
    if (!ok) return false;
    awaiting_ = false;
    responder_->Finish(message_, grpc::Status::OK, this);
    return true;
  }

 private:
  void Await() {
    awaiting_ = true;
    responder_.reset();
    context_.emplace();
    responder_.emplace(&*context_);
    service_.RequestEcho(&*context_, &message_, &*responder_, &queue_, &queue_, this);
  }

  Yardstick::AsyncService& service_;
  grpc::ServerCompletionQueue& queue_;
  bool awaiting_ = true;
  EchoMessage message_;
  std::optional<grpc::ServerContext> context_;
  std::optional<grpc::ServerAsyncResponseWriter<EchoMessage>> responder_;
};

// Returns when the server has shut down and the queue's last call is done.
void Serve(Yardstick::AsyncService& service, grpc::ServerCompletionQueue& queue) {
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < kCallsAwaited; ++i) calls.push_back(std::make_unique<Call>(service, queue));
  std::size_t open = calls.size();
  void* tag = nullptr;
  bool ok = false;
  while (open > 0 && queue.Next(&tag, &ok)) {
    if (!static_cast<Call*>(tag)->Proceed(ok)) --open;
  }
}

// Pre: nothing more is started on the queue.
void Close(grpc::ServerCompletionQueue& queue) {
  queue.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue.Next(&tag, &ok)) {
  }
}

int Run(const std::string& address) {
  // Blocked here and so in every thread to come; the main thread waits for them.
  sigset_t stop_signals;
  sigemptyset(&stop_signals);
  sigaddset(&stop_signals, SIGTERM);
  sigaddset(&stop_signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stop_signals, nullptr);

  Yardstick::AsyncService service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  // What ebbgated sets and what costs or saves something for each call.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_DEADLINE_CHECKS, 0);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 0);
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.RegisterService(&service);
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues;
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  for (unsigned i = 0; i < cores; ++i) queues.push_back(builder.AddCompletionQueue());
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) {
    std::cerr << "yardstick_server: cannot listen on " << address << "\n";
    return 2;
  }

  std::vector<std::thread> threads;
  for (const auto& queue : queues) threads.emplace_back([&] { Serve(service, *queue); });
  const bool unix_socket = absl::StartsWith(address, "unix:");
  std::cout << "listening on "
            << (unix_socket ? address : absl::StrCat(address.substr(0, address.rfind(':')), ":", port)) << std::endl;

  int signal = 0;
  sigwait(&stop_signals, &signal);
  server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  for (std::thread& thread : threads) thread.join();
  for (const auto& queue : queues) Close(*queue);
  return 0;
}

}  // namespace
}  // namespace ebbgate::bench

int main(int argc, char** argv) {
  if (argc != 3 || absl::string_view(argv[1]) != "--listen") {
    std::cerr << "usage: yardstick_server --listen ADDRESS\n";
    return 2;
  }
  return ebbgate::bench::Run(argv[2]);
}

// How the server behaves whatever it serves: addresses, bounds, deadlines, and its end.
#include "server/service/rpc_server.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/service/served.h"

namespace ebbgate {
namespace {

using testing::Gate;
using testing::GateMethod;
using ::testing::HasSubstr;
using testing::kPatienceNs;
using testing::RawCall;
using testing::ReasonOf;
using testing::Request;
using testing::Served;
using testing::Tcp;
using testing::UnixSocket;

constexpr char kGate[] = "/test.Gate/Pass";

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

absl::Status StartError(const ListenAddress& address) {
  ServiceCounters counters;
  const auto started = RpcServer::Start({.listen = {address}}, {}, counters);
  return started.status();
}

TEST(RpcServer, ListensOnSeveralAddresses) {
  const TempDir dir;
  const std::string path = dir.File("calls.sock");
  {
    Served served({.listen = {Tcp(), UnixSocket(path), Tcp()}});
    ASSERT_EQ(served.server->addresses().size(), 3u);
    ASSERT_EQ(served.server->ports().size(), 2u);
    EXPECT_NE(served.server->ports()[0], served.server->ports()[1]);
    EXPECT_EQ(served.server->addresses()[1], "unix:" + path);
    struct stat file;
    ASSERT_EQ(stat(path.c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 07777, 0660u);
    for (const std::string& address : served.server->addresses()) {
      const auto stub = v1::RateLimiter::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
      grpc::ClientContext context;
      testing::SetPatience(context);
      v1::ShouldAllowResponse response;
      EXPECT_TRUE(stub->ShouldAllow(&context, Request("tenant", "acme"), &response).ok());
    }
    EXPECT_EQ(served.Remaining("tenant", "acme"), 97);
  }
  EXPECT_FALSE(Exists(path));
}

TEST(RpcServer, APortInUseFailsAtOnce) {
  Served served;
  const absl::Status status = StartError(Tcp(served.server->ports().front()));
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr(served.server->addresses().front()));
  EXPECT_THAT(std::string(status.message()), HasSubstr("in use"));
}

TEST(RpcServer, ASocketFileIsTakenOnlyFromTheDead) {
  const TempDir dir;
  const std::string path = dir.File("calls.sock");
  {
    Served served({.listen = {UnixSocket(path)}});
    EXPECT_THAT(std::string(StartError(UnixSocket(path)).message()), HasSubstr("in use"));
    v1::ShouldAllowResponse response;
    EXPECT_TRUE(served.ShouldAllow(Request("tenant", "acme"), response).ok());
  }
  // A process that was killed leaves its socket behind.
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  path.copy(name.sun_path, sizeof(name.sun_path) - 1);
  const int left = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(left, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  close(left);
  ASSERT_TRUE(Exists(path));
  EXPECT_TRUE(StartError(UnixSocket(path)).ok());
  // Other files are not ours to remove.
  dir.Write("notes", "precious");
  EXPECT_THAT(std::string(StartError(UnixSocket(dir.File("notes"))).message()), HasSubstr("no socket"));
  EXPECT_TRUE(Exists(dir.File("notes")));
  EXPECT_THAT(std::string(StartError(UnixSocket(dir.File("missing/calls.sock"))).message()),
              HasSubstr("does not exist"));
}

TEST(RpcServer, AnAddressThatIsNotOursIsToldSo) {
  ListenAddress elsewhere = Tcp(7370);
  elsewhere.host = "192.0.2.1";  // set aside for documentation: no machine has it
  elsewhere.text = "192.0.2.1:7370";
  EXPECT_THAT(std::string(StartError(elsewhere).message()), HasSubstr("does not have that address"));
}

TEST(RpcServer, UnknownMethodsAreUnimplemented) {
  Served served;
  for (const char* path :
       {"/ebbgate.v1.RateLimiter/NoSuchMethod", "/no.such.Service/Method", "/ebbgate.v1.Admin/ResetKey"}) {
    RawCall call(served.channel, path, "");
    EXPECT_EQ(call.Await().error_code(), grpc::StatusCode::UNIMPLEMENTED) << path;
  }
}

TEST(RpcServer, BeyondTheBoundOnCallsItRefusesAtOnce) {
  Served served({.listen = {Tcp()}, .max_calls_in_flight = 1});
  grpc::ClientContext context;
  testing::SetPatience(context);
  const auto stream = served.stub->StreamShouldAllow(&context);
  v1::ShouldAllowBatchRequest message;
  *message.add_calls() = Request("tenant", "acme");
  ASSERT_TRUE(stream->Write(message));
  v1::ShouldAllowBatchResponse answer;
  ASSERT_TRUE(stream->Read(&answer));

  // Also many more than wait posted: refusals make room for refusals.
  v1::ShouldAllowResponse response;
  for (int i = 0; i < 300; ++i) {
    const grpc::Status status = served.ShouldAllow(Request("tenant", "acme"), response);
    ASSERT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
    ASSERT_EQ(ReasonOf(status), "OVERLOADED");
  }
  EXPECT_EQ(served.Remaining("tenant", "acme"), 99);
  EXPECT_EQ(served.counters.Read().errors[static_cast<std::size_t>(ErrorReason::kOverloaded)], 300u);

  ASSERT_TRUE(stream->WritesDone());
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_TRUE(stream->Finish().ok());
  // The slot is free once the server has seen the end of the stream; until then, a refusal is right.
  grpc::Status status;
  do {
    status = served.ShouldAllow(Request("tenant", "acme"), response);
  } while (ReasonOf(status) == "OVERLOADED");
  EXPECT_TRUE(status.ok());
}

// A connection on which a test speaks HTTP/2 by hand.
class RawHttp2 {
 public:
  explicit RawHttp2(int port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
    const timeval patience = {.tv_sec = 60, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(4, 0, 0, ""));
  }
  ~RawHttp2() { close(fd_); }

  // One unary call on stream 1.
  void Call(const std::string& path, const std::string& timeout, const std::string& message) {
    const std::string headers = Header(":method", "POST") + Header(":scheme", "http") + Header(":path", path) +
                                Header(":authority", "localhost") + Header("te", "trailers") +
                                Header("content-type", "application/grpc") + Header("grpc-timeout", timeout);
    const std::string length(1, static_cast<char>(message.size()));
    Send(Frame(1, 4, 1, headers) + Frame(0, 1, 1, std::string(4, '\0') + length + message));
  }

  // Reads until `text` has come in; false if the other side closes or stays silent before.
  bool ReadUntil(absl::string_view text) {
    char buffer[4096];
    while (!absl::StrContains(received_, text)) {
      const ssize_t got = recv(fd_, buffer, sizeof(buffer), 0);
      if (got <= 0) return false;
      received_.append(buffer, static_cast<std::size_t>(got));
    }
    return true;
  }

 private:
  static std::string Frame(char type, char flags, char stream, const std::string& payload) {
    std::string frame(9, '\0');
    frame[1] = static_cast<char>(payload.size() >> 8);
    frame[2] = static_cast<char>(payload.size());
    frame[3] = type;
    frame[4] = flags;
    frame[8] = stream;
    return frame + payload;
  }
  // A literal header without indexing. Pre: both are shorter than 127 bytes.
  static std::string Header(const std::string& name, const std::string& value) {
    return std::string(1, '\0') + static_cast<char>(name.size()) + name + static_cast<char>(value.size()) + value;
  }
  void Send(const std::string& bytes) {
    EXPECT_EQ(send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }

  const int fd_;
  std::string received_;
};

TEST(RpcServer, ACallWhoseDeadlineHasPassedSpendsNothing) {
  Served served;
  RawHttp2 connection(served.server->ports().front());
  // A client would give up by itself; so this one is told nothing of its deadline.
  connection.Call("/ebbgate.v1.RateLimiter/ShouldAllow", "0n", Request("tenant", "acme").SerializeAsString());
  EXPECT_TRUE(connection.ReadUntil("deadline passed"));
  EXPECT_EQ(served.Remaining("tenant", "acme"), 100);
  const auto counted = served.counters.Read();
  EXPECT_EQ(counted.errors[static_cast<std::size_t>(ErrorReason::kDeadlinePassed)], 1u);

  RawHttp2 in_time(served.server->ports().front());
  in_time.Call("/ebbgate.v1.RateLimiter/ShouldAllow", "1M", Request("tenant", "acme").SerializeAsString());
  EXPECT_TRUE(in_time.ReadUntil("grpc-status"));
  EXPECT_EQ(served.Remaining("tenant", "acme"), 99);
}

TEST(RpcServer, AtTheEndCallsInFlightFinishAndStreamsAreToldToGo) {
  Gate gate;
  Served served({.listen = {Tcp()}, .threads = 2}, {GateMethod(gate)});
  grpc::ClientContext context;
  testing::SetPatience(context);
  const auto stream = served.stub->StreamShouldAllow(&context);
  v1::ShouldAllowBatchRequest message;
  *message.add_calls() = Request("tenant", "acme");
  ASSERT_TRUE(stream->Write(message));
  v1::ShouldAllowBatchResponse answer;
  ASSERT_TRUE(stream->Read(&answer));
  RawCall in_flight(served.channel, kGate, "still here");
  gate.entered.WaitForNotification();

  served.server->BeginStop();
  EXPECT_FALSE(served.server->AwaitStopped(0));
  gate.open.Notify();
  EXPECT_TRUE(in_flight.Await().ok());
  EXPECT_EQ(in_flight.response(), "still here");
  EXPECT_FALSE(stream->Read(&answer));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ReasonOf(status), "DRAINING");
  EXPECT_TRUE(served.server->AwaitStopped(kPatienceNs));
  // Nobody listens any more.
  EXPECT_TRUE(StartError(Tcp(served.server->ports().front())).ok());
}

TEST(RpcServer, WhatDoesNotEndIsCancelled) {
  Gate gate;
  Served served({.listen = {Tcp()}}, {GateMethod(gate)});
  RawCall held(served.channel, kGate, "");
  gate.entered.WaitForNotification();
  served.server->BeginStop();
  EXPECT_FALSE(served.server->AwaitStopped(0));
  served.server->CancelCalls();
  gate.open.Notify();
  EXPECT_FALSE(held.Await().ok());
  EXPECT_TRUE(served.server->AwaitStopped(kPatienceNs));
}

TEST(RpcServer, OneServerMayWaitForTheSocketsOfAnother) {
  Gate gate;
  Served served({.listen = {Tcp()}, .threads = 2});
  const TempDir dir;
  auto other =
      RpcServer::Start({.listen = {Tcp(), UnixSocket(dir.File("other.sock"))}, .sockets_of = served.server.get()},
                       {GateMethod(gate)}, served.counters);
  ASSERT_TRUE(other.ok()) << other.status();
  const auto channel = grpc::CreateChannel((*other)->addresses()[0], grpc::InsecureChannelCredentials());
  RawCall held(channel, kGate, "slow");
  gate.entered.WaitForNotification();
  // What takes long there holds up nothing here.
  v1::ShouldAllowResponse response;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(served.ShouldAllow(Request("tenant", "acme"), response).ok());
  gate.open.Notify();
  EXPECT_EQ(held.response(), "slow");
  RawCall unknown(grpc::CreateChannel((*other)->addresses()[1], grpc::InsecureChannelCredentials()),
                  "/ebbgate.v1.RateLimiter/ShouldAllow", "");
  EXPECT_EQ(unknown.Await().error_code(), grpc::StatusCode::UNIMPLEMENTED);
  other->reset();
  EXPECT_TRUE(served.ShouldAllow(Request("tenant", "other"), response).ok());
}

TEST(RpcServer, ManyCallersOnManyThreads) {
  Served served({.listen = {Tcp()}, .threads = 4});
  served.engine.InstallLimits({testing::Bucket("shared", 1000, 1, testing::kHour)});
  std::atomic<int> allowed{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 8; ++caller) {
    callers.emplace_back([&] {
      grpc::ChannelArguments own;
      own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      const auto stub = v1::RateLimiter::NewStub(
          grpc::CreateCustomChannel(served.server->addresses().front(), grpc::InsecureChannelCredentials(), own));
      for (int i = 0; i < 250; ++i) {
        grpc::ClientContext context;
        testing::SetPatience(context);
        v1::ShouldAllowResponse response;
        const grpc::Status status = stub->ShouldAllow(&context, Request("shared", "key"), &response);
        ASSERT_TRUE(status.ok()) << status.error_message();
        allowed += response.allowed();
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(allowed, 1000);
  const auto counted = served.counters.Read();
  EXPECT_EQ(counted.ended[static_cast<std::size_t>(Method::kShouldAllow)][0] +
                counted.in_flight[static_cast<std::size_t>(Method::kShouldAllow)],
            2000u);
}

}  // namespace
}  // namespace ebbgate

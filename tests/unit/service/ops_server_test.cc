#include "server/service/ops_server.h"

#include <arpa/inet.h>
#include <httplib.h>
#include <netinet/in.h>
#include <spdlog/sinks/ostream_sink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <sstream>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/limiter/bounds.h"
#include "server/limiter/manual_time.h"
#include "server/telemetry/metrics.h"

namespace ebbgate {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kAlice[] = R"({"charges": [{"limit": "api-user", "key": "alice"}]})";
constexpr char kJson[] = "application/json";

ListenAddress Loopback(int port) {
  ListenAddress address;
  address.text = absl::StrCat("127.0.0.1:", port);
  address.host = "127.0.0.1";
  address.port = port;
  return address;
}

// A TCP connection on which a test says what it likes.
class RawConnection {
 public:
  explicit RawConnection(int port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
    timeval patience{.tv_sec = 60, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~RawConnection() { close(fd_); }
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  bool connected() const { return connected_; }

  // False once the other side has closed.
  bool Send(absl::string_view data) const {
    while (!data.empty()) {
      const ssize_t sent = send(fd_, data.data(), data.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      data.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  // Up to `end`, or to the end of the connection.
  std::string ReadUntil(absl::string_view end) const {
    std::string all;
    char c;
    while (!absl::StrContains(all, end) && recv(fd_, &c, 1, 0) == 1) all += c;
    return all;
  }
  std::string ReadAll() const {
    std::string all;
    char chunk[4096];
    for (ssize_t got; (got = recv(fd_, chunk, sizeof chunk, 0)) > 0;) all.append(chunk, static_cast<std::size_t>(got));
    return all;
  }

 private:
  const int fd_;
  bool connected_ = false;
};

class OpsServerTest : public ::testing::Test {
 protected:
  OpsServerTest() {
    Limit limit;
    limit.name = "api-user";
    limit.parameters.capacity = FromTokens(4);
    limit.parameters.refill = {.tokens = FromTokens(2), .per_ns = kNsPerSecond};
    engine_.InstallLimits({limit});
    server_ = Start(true);
  }

  std::unique_ptr<OpsServer> Start(bool json_twin) {
    auto server = OpsServer::Start(Loopback(0), json_twin, surface_);
    EXPECT_TRUE(server.ok()) << server.status();
    return *std::move(server);
  }

  httplib::Client Client() const { return httplib::Client("127.0.0.1", server_->port()); }

  ManualTime time_{1'793'512'020'000'000'000, 1'000};
  std::ostringstream out_;
  EventLog log_{{.sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(out_)}};
  EngineOptions options_;
  Engine engine_{options_, time_};
  LatencyRecorder latency_;
  ServiceCounters counters_;
  Readiness readiness_{{"limits not loaded"}};
  DriftDetector drift_;
  std::vector<std::string> information_;
  Metrics metrics_{{.engine = engine_,
                    .engine_options = options_,
                    .latency = latency_,
                    .service = counters_,
                    .reload_status = [] { return ReloadStatus(); },
                    .drift = drift_,
                    .build = {.version = "1.2.3"}}};
  OpsSurface surface_{.engine = engine_,
                      .readiness = readiness_,
                      .metrics = metrics_,
                      .latency = latency_,
                      .counters = counters_,
                      .log = log_,
                      .time = time_,
                      .information = [this] { return information_; }};
  std::unique_ptr<OpsServer> server_;
};

TEST_F(OpsServerTest, SaysWhereItListens) {
  EXPECT_GT(server_->port(), 0);
  EXPECT_EQ(server_->address(), absl::StrCat("127.0.0.1:", server_->port()));
}

TEST_F(OpsServerTest, ServesMetrics) {
  const auto result = Client().Get("/metrics");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status, 200);
  EXPECT_THAT(result->get_header_value("Content-Type"), StartsWith("text/plain; version=0.0.4"));
  EXPECT_THAT(result->body, HasSubstr("ebbgate_decisions_total{limit=\"api-user\",outcome=\"allowed\"} 0\n"));
}

TEST_F(OpsServerTest, ServesMetricsCompressedIfAsked) {
  httplib::Client client = Client();
  client.set_decompress(false);
  const auto result = client.Get("/metrics", {{"Accept-Encoding", "gzip"}});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->get_header_value("Content-Encoding"), "gzip");
  EXPECT_THAT(result->body, StartsWith("\x1f\x8b"));
  EXPECT_THAT(Client().Get("/metrics", {{"Accept-Encoding", "gzip"}})->body, HasSubstr("ebbgate_keys 0\n"));
}

TEST_F(OpsServerTest, IgnoresRanges) {
  std::string many = "bytes=0-";
  for (int i = 0; i < 100; ++i) many += ",0-";
  for (const std::string& range : {std::string("bytes=0-9"), many, std::string("bytes=junk")}) {
    const auto result = Client().Get("/metrics", {{"Range", range}});
    ASSERT_TRUE(result);
    EXPECT_THAT(result->status, ::testing::AnyOf(200, 416)) << range;
    EXPECT_LT(result->body.size(), 200'000u) << range;
    EXPECT_NE(result->status, 206) << range;
  }
}

TEST_F(OpsServerTest, TellsWhetherItIsReady) {
  auto result = Client().Get("/readyz");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status, 503);
  EXPECT_EQ(result->body, "{\"ready\":false,\"reasons\":[\"limits not loaded\"]}\n");
  EXPECT_EQ(result->get_header_value("Content-Type"), kJson);
  EXPECT_EQ(Client().Get("/healthz")->status, 200);

  readiness_.Clear("limits not loaded");
  result = Client().Get("/readyz");
  EXPECT_EQ(result->status, 200);
  EXPECT_EQ(result->body, "{\"ready\":true,\"reasons\":[]}\n");
}

TEST_F(OpsServerTest, InformationIsToldAndChangesNothing) {
  readiness_.Clear("limits not loaded");
  information_ = {"drift: a\"b is suspect", "another"};
  const auto result = Client().Get("/readyz");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status, 200);
  EXPECT_EQ(result->body,
            "{\"ready\":true,\"reasons\":[],\"information\":[\"drift: a\\\"b is suspect\",\"another\"]}\n");
}

TEST_F(OpsServerTest, AnswersHead) {
  const auto result = Client().Head("/readyz");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status, 503);
  EXPECT_EQ(result->body, "");
}

TEST_F(OpsServerTest, DecidesInJson) {
  httplib::Client client = Client();
  client.set_keep_alive(true);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(client.Post("/v1/should_allow", kAlice, kJson)->status, 200);
  const auto denied = client.Post("/v1/should_allow", kAlice, "application/json; charset=utf-8");
  EXPECT_EQ(denied->status, 429);
  EXPECT_EQ(denied->get_header_value("Retry-After"), "1");
  EXPECT_EQ(denied->get_header_value("RateLimit"), "\"api-user\";r=0;t=1");
  EXPECT_EQ(denied->get_header_value("RateLimit-Policy"), "\"api-user\";q=4");
  EXPECT_EQ(denied->get_header_value("Cache-Control"), "no-store");
  EXPECT_THAT(denied->body, HasSubstr("\"retryAfter\":\"0.500s\""));
  EXPECT_EQ(engine_.Counters().limits[0].allowed, 4u);
  EXPECT_EQ(client.Post("/v1/should_allow", "{", kJson)->status, 400);
  EXPECT_EQ(client.Post("/v1/should_allow", R"({"charges":[{"limit":"no","key":"a"}]})", kJson)->status, 404);
}

TEST_F(OpsServerTest, UnknownPathsAndWrongMethodsSaySo) {
  const auto missing = Client().Get("/favicon.ico");
  EXPECT_EQ(missing->status, 404);
  EXPECT_THAT(missing->body, HasSubstr("\"code\":5"));
  EXPECT_EQ(missing->get_header_value("Content-Type"), kJson);
  const auto wrong = Client().Get("/v1/should_allow");
  EXPECT_EQ(wrong->status, 405);
  EXPECT_EQ(wrong->get_header_value("Allow"), "POST");
  const auto post = Client().Post("/metrics", "x", "text/plain");
  EXPECT_EQ(post->status, 405);
  EXPECT_EQ(post->get_header_value("Allow"), "GET, HEAD");
  EXPECT_EQ(Client().Delete("/v1/should_allow")->status, 405);
  EXPECT_EQ(Client().Get("/../../etc/passwd")->status, 404);
  EXPECT_THAT(Client().Get("/")->body, HasSubstr("/v1/should_allow"));
}

TEST_F(OpsServerTest, RefusesWhatAWebPageCanSend) {
  EXPECT_EQ(Client().Post("/v1/should_allow", kAlice, "text/plain")->status, 415);
  EXPECT_EQ(Client().Post("/v1/should_allow", kAlice, "application/x-www-form-urlencoded")->status, 415);
  EXPECT_EQ(Client().Post("/v1/should_allow", kAlice, "multipart/form-data; boundary=x")->status, 415);
  EXPECT_EQ(Client().Post("/v1/should_allow", {{"Origin", "http://localhost:8080"}}, kAlice, kJson)->status, 403);
  EXPECT_EQ(Client().Options("/v1/should_allow")->status, 405);
  EXPECT_FALSE(Client().Options("/v1/should_allow")->has_header("Access-Control-Allow-Origin"));
  EXPECT_EQ(engine_.Counters().keys, 0u);
}

TEST_F(OpsServerTest, BodiesAreBoundedBeforeTheyAreRead) {
  const auto result = Client().Post("/v1/should_allow", std::string(kMaxMessageBytes + 1, ' '), kJson);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status, 413);
  // The largest one is read.
  std::string padded(kMaxMessageBytes, ' ');
  padded.replace(0, sizeof kAlice - 1, kAlice);
  EXPECT_EQ(Client().Post("/v1/should_allow", padded, kJson)->status, 200);

  RawConnection huge(server_->port());
  ASSERT_TRUE(huge.Send(
      "POST /v1/should_allow HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n"));
  EXPECT_THAT(huge.ReadUntil("\r\n"), StartsWith("HTTP/1.1 413 "));
}

TEST_F(OpsServerTest, ABodyWithoutAPlainLengthIsRefused) {
  const std::string head = "POST /v1/should_allow HTTP/1.1\r\nContent-Type: application/json\r\n";
  for (const char* framing :
       {"", "Transfer-Encoding: chunked\r\n", "Content-Length: 5\r\nContent-Length: 6\r\n", "Content-Length: +5\r\n",
        "Content-Length: -5\r\n", "Content-Length: \r\n", "Content-Length: 99999999999999999999999\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n"}) {
    RawConnection connection(server_->port());
    ASSERT_TRUE(connection.Send(absl::StrCat(head, framing, "\r\n5\r\nhello\r\n0\r\n\r\n")));
    const std::string answer = connection.ReadAll();
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 411 ")) << framing;
    // What came after the headers was not taken for another request.
    EXPECT_THAT(answer.substr(1), Not(HasSubstr("HTTP/1.1"))) << framing;
  }
  EXPECT_EQ(Client().Post("/v1/should_allow", {{"Content-Encoding", "gzip"}}, kAlice, kJson)->status, 415);
}

TEST_F(OpsServerTest, ABodyThatIsNotReadIsNotTakenForARequest) {
  const std::string smuggled = "GET /healthz HTTP/1.1\r\n\r\n";
  for (const char* path : {"/metrics", "/nowhere"}) {
    for (const char* method : {"GET", "POST", "PUT"}) {
      RawConnection connection(server_->port());
      ASSERT_TRUE(connection.Send(
          absl::StrCat(method, " ", path, " HTTP/1.1\r\nContent-Length: ", smuggled.size(), "\r\n\r\n", smuggled)));
      EXPECT_THAT(connection.ReadAll(), Not(HasSubstr("alive"))) << method << " " << path;
    }
  }
}

TEST_F(OpsServerTest, RequestsFollowEachOtherOnAConnection) {
  RawConnection connection(server_->port());
  // Two at once, then one more.
  const std::string request = "GET /healthz HTTP/1.1\r\n\r\n";
  ASSERT_TRUE(connection.Send(request + request));
  EXPECT_THAT(connection.ReadUntil("alive\":true}\n"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(connection.ReadUntil("alive\":true}\n"), StartsWith("HTTP/1.1 200 "));
  ASSERT_TRUE(connection.Send(request));
  EXPECT_THAT(connection.ReadUntil("alive\":true}\n"), StartsWith("HTTP/1.1 200 "));
  ASSERT_TRUE(connection.Send("GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n"));
  EXPECT_THAT(connection.ReadAll(), StartsWith("HTTP/1.1 200 "));
}

TEST_F(OpsServerTest, AConnectionServesABoundedNumberOfRequests) {
  RawConnection connection(server_->port());
  const std::string request = "HEAD /healthz HTTP/1.1\r\n\r\n";
  std::string answer;
  for (int i = 1; i <= kMaxHttpRequestsPerConnection; ++i) {
    ASSERT_TRUE(connection.Send(request)) << i;
    answer = connection.ReadUntil("\r\n\r\n");
    ASSERT_THAT(answer, StartsWith("HTTP/1.1 200 ")) << i;
  }
  EXPECT_THAT(answer, HasSubstr("Connection: close"));
  EXPECT_EQ(connection.ReadAll(), "");
}

TEST_F(OpsServerTest, HeadsAreBounded) {
  const std::string long_line = "GET /" + std::string(10'000, 'a') + " HTTP/1.1\r\n\r\n";
  RawConnection url(server_->port());
  ASSERT_TRUE(url.Send(long_line));
  EXPECT_THAT(url.ReadAll(), StartsWith("HTTP/1.1 414 "));

  RawConnection headers(server_->port());
  std::string many = "GET /healthz HTTP/1.1\r\n";
  for (int i = 0; i < 3000; ++i) absl::StrAppend(&many, "X-", i, ": y\r\n");
  headers.Send(many + "\r\n");
  EXPECT_THAT(headers.ReadAll(), Not(HasSubstr("alive")));

  // A line without end.
  RawConnection endless(server_->port());
  endless.Send(std::string(4 * 1024 * 1024, 'a'));
  EXPECT_THAT(endless.ReadAll(), Not(HasSubstr(" 200 ")));
  EXPECT_EQ(Client().Get("/healthz")->status, 200);
}

TEST_F(OpsServerTest, GarbageIsAnsweredOrDroppedAndNothingElse) {
  for (const absl::string_view garbage :
       {absl::string_view("\r\n\r\n"), absl::string_view("GET\r\n\r\n"), absl::string_view("\0\0\0\0\r\n\r\n", 8),
        absl::string_view("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        absl::string_view("\x16\x03\x01\x02\x00\x01\xfc\x03\r\n"),
        absl::string_view("GET /%00%ff HTTP/1.1\r\n: \r\nx\r\n\r\n"), absl::string_view("GET /%zz HTTP/9.9\r\n\r\n")}) {
    RawConnection connection(server_->port());
    ASSERT_TRUE(connection.Send(garbage));
    connection.Send("\r\n\r\n");
    EXPECT_THAT(connection.ReadUntil("\r\n"), Not(StartsWith("HTTP/1.1 200 ")));
  }
  EXPECT_EQ(Client().Get("/healthz")->status, 200);
}

TEST_F(OpsServerTest, IdleConnectionsKeepNobodyWaiting) {
  std::vector<std::unique_ptr<RawConnection>> idle;
  for (std::size_t i = 0; i < 2 * kMaxHttpConnections; ++i) {
    idle.push_back(std::make_unique<RawConnection>(server_->port()));
    ASSERT_TRUE(idle.back()->connected());
  }
  EXPECT_EQ(Client().Get("/healthz")->status, 200);
  // The newest of the idle ones still work; the oldest were closed to make room.
  ASSERT_TRUE(idle.back()->Send("GET /healthz HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(idle.back()->ReadUntil("\r\n"), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(idle.front()->ReadAll(), "");
}

TEST_F(OpsServerTest, ManyAtOnceAreAllAnswered) {
  std::vector<std::thread> threads;
  std::atomic<int> allowed{0};
  std::atomic<int> denied{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      httplib::Client client = Client();
      client.set_keep_alive(true);
      for (int i = 0; i < 25; ++i) {
        const auto result = client.Post("/v1/should_allow", kAlice, kJson);
        ASSERT_TRUE(result);
        ++(result->status == 200 ? allowed : denied);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allowed, 4);
  EXPECT_EQ(denied, 196);
}

TEST_F(OpsServerTest, APortInUseFailsAtOnceWithAHint) {
  const auto second = OpsServer::Start(Loopback(server_->port()), true, surface_);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(std::string(second.status().message()),
              ::testing::AllOf(HasSubstr(server_->address()), HasSubstr("in use"), HasSubstr("--ops-listen")));
}

TEST_F(OpsServerTest, AHostThatIsNoneFailsWithAHint) {
  ListenAddress address = Loopback(0);
  address.text = "999.0.0.1:0";
  address.host = "999.0.0.1";
  const auto server = OpsServer::Start(address, true, surface_);
  ASSERT_FALSE(server.ok());
  EXPECT_THAT(std::string(server.status().message()), HasSubstr("999.0.0.1"));
}

TEST_F(OpsServerTest, StopEndsIdleConnectionsAndFreesThePort) {
  RawConnection idle(server_->port());
  ASSERT_TRUE(idle.connected());
  const int port = server_->port();
  server_->Stop();
  server_->Stop();
  EXPECT_EQ(idle.ReadAll(), "");
  EXPECT_FALSE(RawConnection(port).connected());
  server_.reset();
  const auto next = OpsServer::Start(Loopback(port), true, surface_);
  EXPECT_TRUE(next.ok()) << next.status();
}

TEST_F(OpsServerTest, WithoutTheTwinItIsNotThere) {
  server_ = Start(false);
  EXPECT_EQ(Client().Post("/v1/should_allow", kAlice, kJson)->status, 404);
  EXPECT_EQ(Client().Get("/healthz")->status, 200);
  EXPECT_EQ(engine_.Counters().keys, 0u);
}

}  // namespace
}  // namespace ebbgate

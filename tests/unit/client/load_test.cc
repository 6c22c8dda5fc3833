#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>

#include "absl/time/clock.h"
#include "client/load/generator.h"
#include "client/load/process_cpu.h"
#include "tests/unit/client/fake_server.h"

namespace ebbgate::client {
namespace {

using ::testing::HasSubstr;

LoadOptions OptionsFor(const FakeServer& server) {
  LoadOptions options;
  options.address = server.address();
  options.limit = "api-user";
  options.calls = 200;
  options.outstanding = 8;
  options.timeout = absl::Seconds(60);
  return options;
}

LoadResult Load(const LoadOptions& options) {
  EXPECT_TRUE(CheckLoadOptions(options).ok());
  absl::StatusOr<LoadResult> result = RunLoad(options, [](const LoadProgress&) {});
  EXPECT_TRUE(result.ok()) << result.status();
  return *std::move(result);
}

// Denies every fourth key.
void DenySome(FakeServer& server) {
  server.decide = [](const v1::ShouldAllowRequest& call, v1::ShouldAllowResponse& response) {
    response.set_allowed((call.charges(0).key().back() - '0') % 4 != 0);
    return grpc::Status::OK;
  };
}

void ExpectAllCounted(const FakeServer& server, const LoadResult& result, std::int64_t calls, std::int64_t batch) {
  EXPECT_EQ(result.counts.calls, calls);
  EXPECT_EQ(result.counts.failed_calls, 0);
  EXPECT_EQ(result.latency.count(), calls);
  std::int64_t denied = 0;
  for (const auto& call : server.calls()) denied += (call.charges(0).key().back() - '0') % 4 == 0;
  EXPECT_EQ(static_cast<std::int64_t>(server.calls().size()), calls * batch);
  EXPECT_EQ(result.counts.denied, denied);
  EXPECT_EQ(result.counts.allowed, calls * batch - denied);
  EXPECT_EQ(result.counts.errors, 0);
}

TEST(LoadTest, UnaryCallsAreAllMadeAndCounted) {
  FakeServer server;
  DenySome(server);
  ExpectAllCounted(server, Load(OptionsFor(server)), 200, 1);
}

TEST(LoadTest, SeveralThreadsAndConnections) {
  FakeServer server;
  DenySome(server);
  LoadOptions options = OptionsFor(server);
  options.threads = 2;
  options.connections = 3;
  ExpectAllCounted(server, Load(options), 200, 1);
}

TEST(LoadTest, BatchesAreAllMadeAndCounted) {
  FakeServer server;
  DenySome(server);
  LoadOptions options = OptionsFor(server);
  options.mode = LoadMode::kBatch;
  options.batch = 20;
  options.calls = 30;
  ExpectAllCounted(server, Load(options), 30, 20);
}

TEST(LoadTest, StreamsAreDrainedAndCounted) {
  FakeServer server;
  DenySome(server);
  LoadOptions options = OptionsFor(server);
  options.mode = LoadMode::kStream;
  options.batch = 20;
  options.calls = 30;
  options.connections = 2;
  ExpectAllCounted(server, Load(options), 30, 20);
}

TEST(LoadTest, AnOpenLoopMakesTheCallsThatAreDue) {
  FakeServer server;
  DenySome(server);
  LoadOptions options = OptionsFor(server);
  options.rate = 2000;
  const LoadResult result = Load(options);
  ExpectAllCounted(server, result, 200, 1);
  EXPECT_GE(result.elapsed, absl::Milliseconds(99));  // the last is due after 199 intervals of 0.5 ms
}

TEST(LoadTest, AStallIsChargedToEveryCallThatItDelayed) {
  FakeServer server;
  std::atomic<bool> first{true};
  server.decide = [&](const v1::ShouldAllowRequest&, v1::ShouldAllowResponse& response) {
    if (first.exchange(false)) absl::SleepFor(absl::Milliseconds(200));
    response.set_allowed(true);
    return grpc::Status::OK;
  };
  LoadOptions options = OptionsFor(server);
  options.rate = 1000;
  options.outstanding = 1;  // the others wait for the place of the first
  options.calls = 100;
  const LoadResult result = Load(options);
  // The call due last, after 99 ms, could not go before 200 ms.
  EXPECT_GE(result.latency.QuantileNs(0.01), 95'000'000);
}

TEST(LoadTest, FailedCallsAreToldApart) {
  FakeServer server;
  server.decide = [](const v1::ShouldAllowRequest&, v1::ShouldAllowResponse&) {
    return grpc::Status(grpc::StatusCode::NOT_FOUND, "no limit of that name");
  };
  const LoadResult result = Load(OptionsFor(server));
  EXPECT_EQ(result.counts.calls, 0);
  EXPECT_EQ(result.counts.failed_calls, 200);
  EXPECT_EQ(result.counts.errors, 200);
  EXPECT_THAT(result.first_error, HasSubstr("no limit of that name"));
}

TEST(LoadTest, WithoutAServerItSaysSo) {
  LoadOptions options;
  options.address = "unix:/nowhere/at/all";
  options.limit = "l";
  options.timeout = absl::Milliseconds(50);
  const auto result = RunLoad(options, [](const LoadProgress&) {});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(result.status().message(), HasSubstr("/nowhere/at/all"));
}

TEST(LoadTest, OptionsOutOfRangeAreNamed) {
  const auto complaint = [](auto change) {
    LoadOptions options;
    options.limit = "l";
    change(options);
    return std::string(CheckLoadOptions(options).message());
  };
  EXPECT_EQ(complaint([](LoadOptions&) {}), "");
  EXPECT_THAT(complaint([](LoadOptions& o) { o.batch = 1001; }), HasSubstr("--batch"));
  EXPECT_THAT(complaint([](LoadOptions& o) { o.keys = 0; }), HasSubstr("--keys"));
  EXPECT_THAT(complaint([](LoadOptions& o) { o.rate = -1; }), HasSubstr("--rate"));
  EXPECT_THAT(complaint([](LoadOptions& o) { o.outstanding = 0; }), HasSubstr("--outstanding"));
  EXPECT_THAT(complaint([](LoadOptions& o) { o.threads = 0; }), HasSubstr("--threads"));
  EXPECT_THAT(complaint([](LoadOptions& o) { o.connections = 0; }), HasSubstr("--connections"));
  EXPECT_THAT(complaint([](LoadOptions& o) { o.deny_share = 2; }), HasSubstr("--deny-share"));
  EXPECT_THAT(complaint([](LoadOptions& o) { o.deny_share = 0.5; }), HasSubstr("--deny-limit"));
  EXPECT_THAT(complaint([](LoadOptions& o) { o.duration = absl::ZeroDuration(); }), HasSubstr("--duration"));
  EXPECT_THAT(complaint([](LoadOptions& o) {
                o.target = LoadTarget::kYardstick;
                o.mode = LoadMode::kStream;
              }),
              HasSubstr("--target"));
}

TEST(ProcessCpuTest, ReadsTheRightFieldsWhateverTheName) {
  EXPECT_EQ(*CpuTicksFromStat("7 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 110 220 0 0 20\n"), 330);
  EXPECT_FALSE(CpuTicksFromStat("7 (a) S 1 2").ok());
  EXPECT_FALSE(CpuTicksFromStat("").ok());
}

TEST(ProcessCpuTest, SeesThisProcess) {
  ASSERT_TRUE(ProcessCpuTime(getpid()).ok());
  EXPECT_GE(*ProcessCpuTime(getpid()), absl::ZeroDuration());
  EXPECT_EQ(ProcessCpuTime(0).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace ebbgate::client

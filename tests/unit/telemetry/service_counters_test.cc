#include "server/telemetry/service_counters.h"

#include <set>
#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace ebbgate {
namespace {

std::size_t Index(Method method) { return static_cast<std::size_t>(method); }
std::size_t Index(absl::StatusCode code) { return static_cast<std::size_t>(code); }

TEST(ServiceCounters, MethodsHaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < kMethods; ++i) names.insert(std::string(Name(static_cast<Method>(i))));
  EXPECT_EQ(names.size(), kMethods);
  EXPECT_EQ(names.count(""), 0u);
  EXPECT_EQ(Name(Method::kReloadLimits), "ReloadLimits");
}

TEST(ServiceCounters, CountsCallsByMethodAndCode) {
  ServiceCounters counters;
  counters.CallStarted(Method::kShouldAllow);
  counters.CallStarted(Method::kShouldAllow);
  counters.CallStarted(Method::kInspectKey);
  counters.CallEnded(Method::kShouldAllow, absl::StatusCode::kOk);
  counters.CallEnded(Method::kInspectKey, absl::StatusCode::kNotFound);
  const ServiceCounters::Snapshot snapshot = counters.Read();
  EXPECT_EQ(snapshot.in_flight[Index(Method::kShouldAllow)], 1u);
  EXPECT_EQ(snapshot.in_flight[Index(Method::kInspectKey)], 0u);
  EXPECT_EQ(snapshot.ended[Index(Method::kShouldAllow)][Index(absl::StatusCode::kOk)], 1u);
  EXPECT_EQ(snapshot.ended[Index(Method::kInspectKey)][Index(absl::StatusCode::kNotFound)], 1u);
  std::uint64_t all = 0;
  for (const auto& codes : snapshot.ended) {
    for (const std::uint64_t n : codes) all += n;
  }
  EXPECT_EQ(all, 2u);
}

TEST(ServiceCounters, ACallMayEndOnAnotherThread) {
  ServiceCounters counters;
  counters.CallStarted(Method::kStreamShouldAllow);
  std::thread([&] { counters.CallEnded(Method::kStreamShouldAllow, absl::StatusCode::kCancelled); }).join();
  EXPECT_EQ(counters.Read().in_flight[Index(Method::kStreamShouldAllow)], 0u);
}

TEST(ServiceCounters, ACodeThatIsNoneCountsAsUnknown) {
  ServiceCounters counters;
  counters.CallStarted(Method::kShouldAllow);
  counters.CallEnded(Method::kShouldAllow, static_cast<absl::StatusCode>(1000));
  EXPECT_EQ(counters.Read().ended[Index(Method::kShouldAllow)][Index(absl::StatusCode::kUnknown)], 1u);
}

TEST(ServiceCounters, CountsErrorsByReason) {
  ServiceCounters counters;
  counters.CountError(ErrorReason::kMalformed);
  counters.CountError(ErrorReason::kDraining, 5);
  counters.CountStreamMessage();
  const ServiceCounters::Snapshot snapshot = counters.Read();
  EXPECT_EQ(snapshot.errors.front(), 1u);
  EXPECT_EQ(snapshot.errors.back(), 5u);
  EXPECT_EQ(snapshot.stream_messages, 1u);
}

}  // namespace
}  // namespace ebbgate

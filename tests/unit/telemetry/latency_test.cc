#include "server/telemetry/latency.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "server/limiter/amount.h"

namespace ebbgate {
namespace {

TEST(Latency, BoundsReachFromUnderAMicrosecondToASecond) {
  EXPECT_EQ(LatencyRecorder::BoundNs(0), 125);
  EXPECT_EQ(LatencyRecorder::BoundNs(3), 1'000);
  EXPECT_GE(LatencyRecorder::BoundNs(LatencyRecorder::kBuckets - 1), kNsPerSecond);
}

TEST(Latency, ABoundBelongsToItsBucketAndWhatIsAboveToTheNext) {
  EXPECT_EQ(LatencyRecorder::BucketOf(0), 0u);
  EXPECT_EQ(LatencyRecorder::BucketOf(1), 0u);
  for (std::size_t bucket = 0; bucket < LatencyRecorder::kBuckets; ++bucket) {
    EXPECT_EQ(LatencyRecorder::BucketOf(LatencyRecorder::BoundNs(bucket)), bucket);
    EXPECT_EQ(LatencyRecorder::BucketOf(LatencyRecorder::BoundNs(bucket) + 1), bucket + 1);
  }
  EXPECT_EQ(LatencyRecorder::BucketOf(kInt64Max), LatencyRecorder::kBuckets);
}

TEST(Latency, CountsAndSums) {
  LatencyRecorder latency;
  latency.Record(125);
  latency.Record(126);
  latency.Record(3 * kNsPerSecond);
  latency.Record(-1);
  const LatencyRecorder::Snapshot snapshot = latency.Read();
  EXPECT_EQ(snapshot.counts[0], 2u);
  EXPECT_EQ(snapshot.counts[1], 1u);
  EXPECT_EQ(snapshot.counts[LatencyRecorder::kBuckets], 1u);
  EXPECT_EQ(snapshot.sum_ns, 3'000'000'251u);
}

TEST(Latency, DecisionsOfABatchShareItsTime) {
  LatencyRecorder latency;
  latency.Record(100'000, 1000);
  const LatencyRecorder::Snapshot snapshot = latency.Read();
  EXPECT_EQ(snapshot.counts[0], 1000u);
  EXPECT_EQ(snapshot.sum_ns, 100'000u);
}

TEST(Latency, ThreadsLoseNothing) {
  LatencyRecorder latency;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10'000; ++i) latency.Record(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::uint64_t count = 0;
  for (const std::uint64_t n : latency.Read().counts) count += n;
  EXPECT_EQ(count, 80'000u);
  EXPECT_EQ(latency.Read().sum_ns, 8u * 10'000 * 9'999 / 2);
}

}  // namespace
}  // namespace ebbgate

#include "server/telemetry/latency.h"

namespace ebbgate {

LatencyRecorder::Snapshot LatencyRecorder::Read() const {
  Snapshot snapshot;
  for (std::size_t bucket = 0; bucket <= kBuckets; ++bucket) snapshot.counts[bucket] = cells_.Sum(bucket);
  snapshot.sum_ns = cells_.Sum(kSumCell);
  return snapshot;
}

}  // namespace ebbgate

#include "server/telemetry/process_stats.h"

#include <fcntl.h>
#include <unistd.h>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace ebbgate {
namespace {

TEST(ProcessStats, AreThoseOfALivingProcess) {
  const ProcessStats stats = ReadProcessStats();
  ASSERT_TRUE(stats.start_time_seconds && stats.cpu_seconds && stats.resident_bytes && stats.virtual_bytes);
  ASSERT_TRUE(stats.threads && stats.open_fds && stats.max_fds);
  // The machine's clock may have been set since it started, but not by years.
  EXPECT_NEAR(*stats.start_time_seconds, absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()), 1e8);
  EXPECT_GE(*stats.cpu_seconds, 0);
  EXPECT_GT(*stats.resident_bytes, 100'000);
  EXPECT_GT(*stats.virtual_bytes, *stats.resident_bytes);
  EXPECT_GE(*stats.threads, 1);
  EXPECT_GT(*stats.max_fds, *stats.open_fds);
}

TEST(ProcessStats, CountsOpenFiles) {
  const double before = *ReadProcessStats().open_fds;
  const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(*ReadProcessStats().open_fds, before + 1);
  close(fd);
  EXPECT_EQ(*ReadProcessStats().open_fds, before);
}

}  // namespace
}  // namespace ebbgate

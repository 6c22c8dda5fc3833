// Each test changes a real file in its own way and waits for what must follow. Waits end when it has happened; their
// deadline only keeps a failing test from hanging.
#include "server/config/limits_watcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/store/mutex.h"
#include "tests/support/temp_dir.h"

namespace ebbgate {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Capacity(int tokens) {
  return absl::StrCat("limits:\n- name: L\n  capacity: ", tokens, "\n  refill: {tokens: 1, per: 1s}\n");
}

// Stands for the engine and for the log.
class Recorder {
 public:
  LimitsWatcher::Install Install() {
    return [this](std::vector<Limit> limits) {
      const MutexLock lock(mutex_);
      const std::int64_t capacity = limits.empty() ? 0 : WholeTokens(limits[0].parameters.capacity);
      ++installs_;
      return std::exchange(capacity_, capacity) != capacity;
    };
  }
  LimitsWatcher::Observe Observe() {
    return [this](const ReloadEvent& event) {
      const MutexLock lock(mutex_);
      events_.push_back(event);
    };
  }

  std::int64_t capacity() const {
    const MutexLock lock(mutex_);
    return capacity_;
  }
  int installs() const {
    const MutexLock lock(mutex_);
    return installs_;
  }
  std::vector<ReloadEvent> events() const {
    const MutexLock lock(mutex_);
    return events_;
  }

 private:
  mutable Mutex mutex_;
  std::int64_t capacity_ ABSL_GUARDED_BY(mutex_) = -1;
  int installs_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<ReloadEvent> events_ ABSL_GUARDED_BY(mutex_);
};

bool WaitFor(const std::function<bool()>& condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

class LimitsWatcherTest : public ::testing::Test {
 protected:
  void Start(const std::string& path) {
    absl::StatusOr<std::unique_ptr<LimitsWatcher>> watcher =
        LimitsWatcher::Start(path, recorder_.Install(), recorder_.Observe());
    ASSERT_TRUE(watcher.ok()) << watcher.status();
    watcher_ = *std::move(watcher);
  }
  bool WaitForCapacity(std::int64_t capacity) {
    return WaitFor([&] { return recorder_.capacity() == capacity; });
  }
  bool WaitForFailures(std::uint64_t failures) {
    return WaitFor([&] { return watcher_->Status().failures == failures; });
  }

  const TempDir dir_;
  Recorder recorder_;
  std::unique_ptr<LimitsWatcher> watcher_;
};

TEST_F(LimitsWatcherTest, LoadsTheFileAtTheStart) {
  Start(dir_.Write("limits.yaml", Capacity(1)));
  EXPECT_EQ(recorder_.capacity(), 1);
  const ReloadStatus status = watcher_->Status();
  EXPECT_TRUE(status.last_reload_successful);
  EXPECT_EQ(status.successes, 1u);
  EXPECT_EQ(status.failures, 0u);
  EXPECT_THAT(status.last_error, IsEmpty());
  EXPECT_GT(status.last_success, absl::UnixEpoch());
  ASSERT_EQ(recorder_.events().size(), 1u);
  EXPECT_TRUE(recorder_.events()[0].changed);
  EXPECT_EQ(recorder_.events()[0].limits, 1u);
}

TEST_F(LimitsWatcherTest, FailsToStartWithoutInstallingAnything) {
  EXPECT_EQ(LimitsWatcher::Start(dir_.File("none"), recorder_.Install(), recorder_.Observe()).status().code(),
            absl::StatusCode::kNotFound);
  const std::string bad = dir_.Write("bad.yaml", Capacity(0));
  EXPECT_THAT(std::string(LimitsWatcher::Start(bad, recorder_.Install(), recorder_.Observe()).status().message()),
              HasSubstr("bad.yaml:3: limits[0].capacity: must be at least 1"));
  EXPECT_EQ(recorder_.installs(), 0);
}

TEST_F(LimitsWatcherTest, SeesAFileWrittenInPlace) {
  Start(dir_.Write("limits.yaml", Capacity(1)));
  // The same length, so that only the content tells; several times, so that change times may coincide.
  for (int capacity = 2; capacity < 5; ++capacity) {
    dir_.Write("limits.yaml", Capacity(capacity));
    ASSERT_TRUE(WaitForCapacity(capacity));
  }
}

TEST_F(LimitsWatcherTest, SeesAWriteThatLeavesTheChangeTimeAsItWas) {
  const std::string path = dir_.Write("limits.yaml", Capacity(1));
  const auto time = std::filesystem::last_write_time(path);
  Start(path);
  dir_.Write("limits.yaml", Capacity(2));
  std::filesystem::last_write_time(path, time);
  EXPECT_TRUE(WaitForCapacity(2));
}

TEST_F(LimitsWatcherTest, SeesAFileRenamedOver) {
  Start(dir_.Write("limits.yaml", Capacity(1)));
  std::filesystem::rename(dir_.Write("new", Capacity(2)), dir_.File("limits.yaml"));
  EXPECT_TRUE(WaitForCapacity(2));
}

TEST_F(LimitsWatcherTest, SeesTheSymlinkOfAMountedConfigMapSwapped) {
  // limits.yaml -> ..data/limits.yaml, ..data -> ..1; then ..data is renamed over by a link to ..2, and ..1 removed.
  for (const char* name : {"..1", "..2"}) std::filesystem::create_directory(dir_.File(name));
  dir_.Write("..1/limits.yaml", Capacity(1));
  dir_.Write("..2/limits.yaml", Capacity(2));
  std::filesystem::create_symlink("..1", dir_.File("..data"));
  std::filesystem::create_symlink("..data/limits.yaml", dir_.File("limits.yaml"));
  Start(dir_.File("limits.yaml"));
  ASSERT_EQ(recorder_.capacity(), 1);
  std::filesystem::create_symlink("..2", dir_.File("..data_tmp"));
  std::filesystem::rename(dir_.File("..data_tmp"), dir_.File("..data"));
  std::filesystem::remove_all(dir_.File("..1"));
  EXPECT_TRUE(WaitForCapacity(2));
}

TEST_F(LimitsWatcherTest, KeepsTheLastGoodLimitsOfADeletedFileUntilItIsBack) {
  const std::string path = dir_.Write("limits.yaml", Capacity(1));
  Start(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(WaitForFailures(1));
  EXPECT_EQ(recorder_.capacity(), 1);
  EXPECT_EQ(recorder_.installs(), 1);
  EXPECT_FALSE(watcher_->Status().last_reload_successful);
  EXPECT_THAT(watcher_->Status().last_error, HasSubstr("No such file"));

  dir_.Write("limits.yaml", Capacity(2));
  ASSERT_TRUE(WaitForCapacity(2));
  ASSERT_TRUE(WaitFor([&] { return watcher_->Status().last_reload_successful; }));
  EXPECT_EQ(watcher_->Status().failures, 1u);
  EXPECT_THAT(watcher_->Status().last_error, IsEmpty());
}

TEST_F(LimitsWatcherTest, SucceedsAgainWhenADeletedFileComesBackAsItWas) {
  const std::string path = dir_.Write("limits.yaml", Capacity(1));
  Start(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(WaitForFailures(1));
  dir_.Write("limits.yaml", Capacity(1));
  ASSERT_TRUE(WaitFor([&] { return watcher_->Status().last_reload_successful; }));
  EXPECT_FALSE(recorder_.events().back().changed);
}

TEST_F(LimitsWatcherTest, CountsABadFileOnceAndKeepsTheLastGoodLimits) {
  Start(dir_.Write("limits.yaml", Capacity(1)));
  dir_.Write("limits.yaml", "limits:\n- name: L\n  capa");
  ASSERT_TRUE(WaitForFailures(1));
  EXPECT_EQ(recorder_.capacity(), 1);
  // Another bad content is another failure; only then is it sure that the first was not counted again.
  dir_.Write("limits.yaml", Capacity(0));
  ASSERT_TRUE(WaitForFailures(2));
  EXPECT_EQ(recorder_.events().size(), 3u);
  dir_.Write("limits.yaml", Capacity(2));
  EXPECT_TRUE(WaitForCapacity(2));
}

TEST_F(LimitsWatcherTest, LoadsNowWhenAsked) {
  Start(dir_.Write("limits.yaml", Capacity(1)));
  absl::StatusOr<bool> changed = watcher_->ReloadNow();
  ASSERT_TRUE(changed.ok());
  EXPECT_FALSE(*changed);

  dir_.Write("limits.yaml", Capacity(2));
  changed = watcher_->ReloadNow();
  ASSERT_TRUE(changed.ok());
  EXPECT_TRUE(*changed || recorder_.installs() > 2) << "changed now, or the watcher was faster";
  EXPECT_EQ(recorder_.capacity(), 2);

  dir_.Write("limits.yaml", "nonsense");
  EXPECT_EQ(watcher_->ReloadNow().status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(recorder_.capacity(), 2);
  EXPECT_FALSE(watcher_->Status().last_reload_successful);
}

TEST_F(LimitsWatcherTest, TellsWhatIsDoubtful) {
  Start(dir_.Write("limits.yaml", Capacity(1) + "  shadow: true\n"));
  ASSERT_EQ(recorder_.events().size(), 1u);
  EXPECT_EQ(recorder_.events()[0].warnings.size(), 1u);
}

TEST_F(LimitsWatcherTest, MayBeAskedByManyThreadsWhileTheFileChanges) {
  Start(dir_.Write("limits.yaml", Capacity(1)));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        watcher_->ReloadNow().IgnoreError();
        EXPECT_GE(watcher_->Status().successes, 1u);
      }
    });
  }
  for (int capacity = 2; capacity < 50; ++capacity) {
    std::filesystem::rename(dir_.Write("new", Capacity(capacity)), dir_.File("limits.yaml"));
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(watcher_->ReloadNow().ok());
  EXPECT_EQ(recorder_.capacity(), 49);
  EXPECT_EQ(watcher_->Status().failures, 0u);
}

}  // namespace
}  // namespace ebbgate

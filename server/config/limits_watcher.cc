#include "server/config/limits_watcher.h"

#include <chrono>
#include <utility>

#include "absl/memory/memory.h"
#include "server/config/files.h"
#include "server/config/limits_file.h"
#include "server/limiter/bounds.h"

namespace ebbgate {
namespace {

// A change is in force after two to three of these.
constexpr std::chrono::milliseconds kPollInterval(500);

}  // namespace

absl::StatusOr<std::unique_ptr<LimitsWatcher>> LimitsWatcher::Start(std::string path, Install install,
                                                                    Observe observe) {
  auto watcher = absl::WrapUnique(new LimitsWatcher(std::move(path), std::move(install), std::move(observe)));
  if (const absl::StatusOr<bool> loaded = watcher->ReloadNow(); !loaded.ok()) return loaded.status();
  watcher->thread_ = std::thread(&LimitsWatcher::Watch, watcher.get());
  return watcher;
}

LimitsWatcher::LimitsWatcher(std::string path, Install install, Observe observe)
    : path_(std::move(path)), install_(std::move(install)), observe_(std::move(observe)) {}

LimitsWatcher::~LimitsWatcher() {
  {
    const std::lock_guard<std::mutex> lock(stop_mutex_);
    stop_ = true;
  }
  stop_changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

absl::StatusOr<bool> LimitsWatcher::ReloadNow() {
  const MutexLock lock(loading_);
  candidate_ = Read();
  return Load(candidate_);
}

ReloadStatus LimitsWatcher::Status() const {
  const MutexLock lock(status_mutex_);
  return status_;
}

LimitsWatcher::Reading LimitsWatcher::Read() const {
  absl::StatusOr<std::string> content = ReadRegularFile(path_, kMaxLimitsFileBytes);
  if (!content.ok()) return {.status = content.status(), .content = ""};
  return {.status = absl::OkStatus(), .content = *std::move(content)};
}

void LimitsWatcher::Watch() {
  std::unique_lock<std::mutex> lock(stop_mutex_);
  while (!stop_changed_.wait_for(lock, kPollInterval, [this] { return stop_; })) {
    lock.unlock();
    Poll();
    lock.lock();
  }
}

void LimitsWatcher::Poll() {
  const MutexLock lock(loading_);
  Reading now = Read();
  const bool settled = now == candidate_;
  candidate_ = std::move(now);
  // What came of it is in the status and was told to the observer.
  if (settled && candidate_ != loaded_) Load(candidate_).IgnoreError();
}

absl::StatusOr<bool> LimitsWatcher::Load(Reading reading) {
  ReloadEvent event;
  if (!reading.status.ok()) {
    event.status = reading.status;
  } else {
    absl::StatusOr<std::vector<Limit>> limits = ParseLimits(reading.content, path_);
    event.status = limits.status();
    if (limits.ok()) {
      event.limits = limits->size();
      event.warnings = LintLimits(*limits);
      event.changed = install_(*std::move(limits));
    }
  }
  loaded_ = std::move(reading);
  {
    const MutexLock lock(status_mutex_);
    status_.last_reload_successful = event.status.ok();
    status_.last_error = std::string(event.status.message());
    ++(event.status.ok() ? status_.successes : status_.failures);
    if (event.status.ok()) status_.last_success = absl::Now();
  }
  observe_(event);
  if (!event.status.ok()) return event.status;
  return event.changed;
}

}  // namespace ebbgate

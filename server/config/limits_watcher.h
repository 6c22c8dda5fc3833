// Keeps the limits in force equal to the limits file: loads it at the start, and again whenever its content changes.
//
// The file is read twice a second and compared byte by byte, so no kind of change can be missed: written in place,
// renamed over, a symlink swapped (as in a mounted ConfigMap), deleted and created again. That costs some 20 us a
// second for a file of 100 KiB; change times and inotify are cheaper and each miss one of these.
//
// A change is acted upon when two readings in a row agree, so that a file caught while it is being written is not taken
// for a shorter one. It is therefore in force 0.5 to 1 s after the writer is done, or after ReloadNow at once.
// A file that is gone or not valid leaves the limits as they are, and counts as one failure until it changes again.
#ifndef EBBGATE_SERVER_CONFIG_LIMITS_WATCHER_H_
#define EBBGATE_SERVER_CONFIG_LIMITS_WATCHER_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/limiter/parameters.h"
#include "server/store/mutex.h"

namespace ebbgate {

// What came of one attempt to load the file, for logs.
struct ReloadEvent {
  absl::Status status;                // not OK: the limits in force stayed
  bool changed = false;               // the limits in force differ from before
  std::size_t limits = 0;             // in the file
  std::vector<std::string> warnings;  // of LintLimits
};

// For metrics, readiness and Admin.
struct ReloadStatus {
  bool last_reload_successful = false;
  absl::Time last_success;  // wall clock
  std::uint64_t successes = 0;
  std::uint64_t failures = 0;
  std::string last_error;  // of the last attempt; empty if it succeeded
};

// Thread-safe. Owns one thread, which sleeps nearly always; the destructor stops it at once and joins it.
class LimitsWatcher {
 public:
  // Puts limits in force and returns whether anything changed. Called by one thread at a time.
  using Install = std::function<bool(std::vector<Limit>)>;
  // Told of every attempt, after Install, by one thread at a time; must not call ReloadNow.
  using Observe = std::function<void(const ReloadEvent&)>;

  // Loads the file and starts watching it. Fails, having installed nothing, if it cannot be read or is not valid.
  static absl::StatusOr<std::unique_ptr<LimitsWatcher>> Start(std::string path, Install install, Observe observe);

  ~LimitsWatcher();
  LimitsWatcher(const LimitsWatcher&) = delete;
  LimitsWatcher& operator=(const LimitsWatcher&) = delete;

  // Loads the file now, changed or not. Returns whether the limits in force changed.
  absl::StatusOr<bool> ReloadNow();

  ReloadStatus Status() const;

 private:
  // The file as found: its content, or why it could not be read.
  struct Reading {
    absl::Status status;
    std::string content;
    friend bool operator==(const Reading&, const Reading&) = default;
  };

  LimitsWatcher(std::string path, Install install, Observe observe);

  Reading Read() const;
  void Watch();
  void Poll() ABSL_LOCKS_EXCLUDED(loading_);
  absl::StatusOr<bool> Load(Reading reading) ABSL_EXCLUSIVE_LOCKS_REQUIRED(loading_);

  const std::string path_;
  const Install install_;
  const Observe observe_;

  // Held while the file is read and loaded, so that an older reading never replaces a newer one.
  Mutex loading_;
  Reading loaded_ ABSL_GUARDED_BY(loading_);     // the last that was acted upon, with whatever success
  Reading candidate_ ABSL_GUARDED_BY(loading_);  // the last that was read

  mutable Mutex status_mutex_ ABSL_ACQUIRED_AFTER(loading_);
  ReloadStatus status_ ABSL_GUARDED_BY(status_mutex_);

  // A plain condition variable waits by the monotonic clock; absl::CondVar would sleep through a step of the wall
  // clock.
  std::mutex stop_mutex_;
  std::condition_variable stop_changed_;
  bool stop_ = false;

  std::thread thread_;
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_CONFIG_LIMITS_WATCHER_H_

// Signals as events that a thread waits for, instead of handlers that interrupt it.
//
// Thread-safety: made by main before any other thread, so that all of them inherit what it blocks; Wait is called by
// one thread.
#ifndef EBBGATE_SERVER_SIGNALS_H_
#define EBBGATE_SERVER_SIGNALS_H_

#include <csignal>
#include <cstdint>
#include <ctime>
#include <optional>

#include "server/limiter/amount.h"

namespace ebbgate {

// Takes SIGTERM, SIGINT and SIGHUP from their defaults; SIGPIPE is ignored, since a peer that hangs up is no reason to
// die.
class Signals {
 public:
  Signals() {
    sigemptyset(&awaited_);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&awaited_, signal);
    pthread_sigmask(SIG_BLOCK, &awaited_, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // The next signal.
  int Wait() const {
    int signal = 0;
    while (sigwait(&awaited_, &signal) != 0) {
    }
    return signal;
  }

  // The same, but nothing if none comes within `timeout_ns`.
  std::optional<int> WaitFor(std::int64_t timeout_ns) const {
    const timespec timeout = {static_cast<time_t>(timeout_ns / kNsPerSecond), timeout_ns % kNsPerSecond};
    const int signal = sigtimedwait(&awaited_, nullptr, &timeout);
    if (signal < 0) return std::nullopt;
    return signal;
  }

 private:
  sigset_t awaited_;
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_SIGNALS_H_

// Takes TCP connections, and has a few threads answer the requests that arrive on them.
//
// One thread watches all connections that wait for a request, so idle ones keep nobody busy; a connection goes to a
// worker when there is something to read, and comes back when the answer is sent. When the connections are as many as
// may be, the one idle for longest makes room for a new one; if none is idle, the new one is closed at once.
//
// Thread-safety: everything from any thread. Bounded: connections, threads, and the idle time of a connection (see
// bounds.h).
#ifndef EBBGATE_SERVER_SERVICE_HTTP_LISTENER_H_
#define EBBGATE_SERVER_SERVICE_HTTP_LISTENER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/config/listen_address.h"
#include "server/service/http_connection.h"
#include "server/telemetry/logging.h"

namespace ebbgate {

class HttpListener {
 public:
  // Answers one request, of which something can be read. Returns whether another one may follow.
  using Answer = std::function<bool(HttpConnection&)>;

  // Fails at once, saying what to do, if the address cannot be listened at.
  static absl::StatusOr<std::unique_ptr<HttpListener>> Start(const ListenAddress& address, Answer answer,
                                                             EventLog& log);
  ~HttpListener();
  HttpListener(const HttpListener&) = delete;
  HttpListener& operator=(const HttpListener&) = delete;

  // The actual one.
  int port() const { return port_; }

  // No more connections; requests being answered are finished; no thread is left when this returns.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Idle {
    std::unique_ptr<HttpConnection> connection;
    std::int64_t since_ns;
  };

  HttpListener(int listening_fd, int wake_fd, int port, Answer answer, EventLog& log);

  void Watch() ABSL_LOCKS_EXCLUDED(mutex_);
  void Accept() ABSL_LOCKS_EXCLUDED(mutex_);
  // Gives a connection to the workers, or closes it if there are too many.
  void Admit(std::unique_ptr<HttpConnection> connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CloseIdleSince(std::int64_t before_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Work() ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !waiting_.empty(); }
  void WakeWatcher();

  const int listening_fd_;
  const int wake_fd_;
  const int port_;
  const Answer answer_;
  EventLog& log_;
  LogThrottle accept_failed_;
  LogThrottle too_many_;

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::list<Idle> idle_ ABSL_GUARDED_BY(mutex_);  // longest first
  std::deque<std::unique_ptr<HttpConnection>> waiting_ ABSL_GUARDED_BY(mutex_);
  std::size_t connections_ ABSL_GUARDED_BY(mutex_) = 0;  // idle, waiting, and being answered

  absl::Mutex stop_mutex_;
  // The watcher, then the workers; empty once stopped.
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(stop_mutex_);
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_SERVICE_HTTP_LISTENER_H_

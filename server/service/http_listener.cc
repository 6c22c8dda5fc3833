#include "server/service/http_listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/limiter/bounds.h"
#include "server/limiter/moment.h"

namespace ebbgate {
namespace {

constexpr int kBacklog = 64;
// How often idle connections are looked at for having waited too long.
constexpr int kWatchMs = 1000;
// After an accept that failed for want of something, which will not come back in a microsecond.
constexpr int kAcceptPauseMs = 50;

std::string ErrorText(int error) { return std::generic_category().message(error); }

std::int64_t NowNs() { return SystemTime().MonotonicNs(); }

// Listens at one address, or returns -1 with errno set. SO_REUSEPORT stays off: with it a second server would share the
// port silently.
int ListenAt(const addrinfo& at) {
  const int fd = socket(at.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd, at.ai_addr, at.ai_addrlen) == 0 && listen(fd, kBacklog) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

absl::StatusOr<int> Listen(const ListenAddress& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = absl::StrCat(address.port);
  const int failure = getaddrinfo(address.host.empty() ? nullptr : address.host.c_str(), port.c_str(), &hints, &found);
  if (failure != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot listen at ", address.text, ": ", gai_strerror(failure), " (hint: give an IP address)"));
  }
  const absl::Cleanup free_found = [found] { freeaddrinfo(found); };
  int error = 0;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    const int fd = ListenAt(*at);
    if (fd >= 0) return fd;
    error = errno;
  }
  const char* const hint =
      error == EADDRINUSE ? " (hint: another server has this port; choose another with --ops-listen)" : "";
  return absl::UnavailableError(absl::StrCat("cannot listen at ", address.text, ": ", ErrorText(error), hint));
}

int PortOf(int fd) {
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length);
  const void* const address = &bound;
  return bound.ss_family == AF_INET6 ? ntohs(static_cast<const sockaddr_in6*>(address)->sin6_port)
                                     : ntohs(static_cast<const sockaddr_in*>(address)->sin_port);
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpListener>> HttpListener::Start(const ListenAddress& address, Answer answer,
                                                                  EventLog& log) {
  const absl::StatusOr<int> listening_fd = Listen(address);
  if (!listening_fd.ok()) return listening_fd.status();
  const int wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_fd < 0) {
    const int error = errno;
    close(*listening_fd);
    return absl::UnavailableError(absl::StrCat("cannot make an eventfd: ", ErrorText(error)));
  }
  return std::unique_ptr<HttpListener>(
      new HttpListener(*listening_fd, wake_fd, PortOf(*listening_fd), std::move(answer), log));
}

HttpListener::HttpListener(int listening_fd, int wake_fd, int port, Answer answer, EventLog& log)
    : listening_fd_(listening_fd), wake_fd_(wake_fd), port_(port), answer_(std::move(answer)), log_(log) {
  absl::MutexLock lock(&stop_mutex_);
  threads_.emplace_back([this] { Watch(); });
  for (std::size_t i = 0; i < kHttpThreads; ++i) threads_.emplace_back([this] { Work(); });
}

HttpListener::~HttpListener() {
  Stop();
  close(listening_fd_);
  close(wake_fd_);
}

void HttpListener::Stop() {
  absl::MutexLock stop_lock(&stop_mutex_);
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  WakeWatcher();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  absl::MutexLock lock(&mutex_);
  idle_.clear();
  waiting_.clear();
  // Callers are refused from now on, not left waiting.
  shutdown(listening_fd_, SHUT_RDWR);
}

void HttpListener::WakeWatcher() {
  const std::uint64_t one = 1;
  // It can only fail when the counter is full, and then the watcher is awake already.
  [[maybe_unused]] const ssize_t written = write(wake_fd_, &one, sizeof one);
}

void HttpListener::Watch() {
  std::vector<pollfd> watched;
  while (true) {
    watched.assign({{wake_fd_, POLLIN, 0}, {listening_fd_, POLLIN, 0}});
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) return;
      CloseIdleSince(NowNs() - kMaxHttpIdleNs);
      for (const Idle& idle : idle_) watched.push_back({idle.connection->fd(), POLLIN, 0});
    }
    if (poll(watched.data(), watched.size(), kWatchMs) <= 0) continue;
    if (watched[0].revents != 0) {
      std::uint64_t count;
      [[maybe_unused]] const ssize_t drained = read(wake_fd_, &count, sizeof count);
    }
    {
      absl::MutexLock lock(&mutex_);
      // Only this thread takes from the middle of the list, and others only append: it is as it was, or longer.
      auto idle = idle_.begin();
      for (std::size_t i = 2; i < watched.size(); ++i) {
        const auto here = idle++;
        if (watched[i].revents == 0) continue;
        waiting_.push_back(std::move(here->connection));
        idle_.erase(here);
      }
    }
    if (watched[1].revents != 0) Accept();
  }
}

void HttpListener::Accept() {
  while (true) {
    const int fd = accept4(listening_fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      const int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      absl::MutexLock lock(&mutex_);
      Admit(std::make_unique<HttpConnection>(fd));
      continue;
    }
    if (errno == EAGAIN) return;
    if (errno == EINTR || errno == ECONNABORTED) continue;
    log_.Throttled(accept_failed_, LogLevel::kWarning, "ops_accept_failed", {{"reason", ErrorText(errno)}});
    poll(nullptr, 0, kAcceptPauseMs);
    return;
  }
}

void HttpListener::Admit(std::unique_ptr<HttpConnection> connection) {
  if (connections_ >= kMaxHttpConnections) {
    if (idle_.empty()) {
      log_.Throttled(too_many_, LogLevel::kWarning, "ops_connection_refused", {{"open", connections_}});
      return;
    }
    idle_.pop_front();
    --connections_;
  }
  ++connections_;
  idle_.push_back({std::move(connection), NowNs()});
}

void HttpListener::CloseIdleSince(std::int64_t before_ns) {
  while (!idle_.empty() && idle_.front().since_ns < before_ns) {
    idle_.pop_front();
    --connections_;
  }
}

void HttpListener::Work() {
  while (true) {
    std::unique_ptr<HttpConnection> connection;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &HttpListener::HasWork));
      if (stopping_) return;
      connection = std::move(waiting_.front());
      waiting_.pop_front();
    }
    const bool more = answer_(*connection);
    if (!more) {
      connection->CloseGently();
      connection.reset();
    }
    absl::MutexLock lock(&mutex_);
    if (connection == nullptr) {
      --connections_;
    } else if (connection->HasBuffered()) {
      waiting_.push_back(std::move(connection));
    } else {
      idle_.push_back({std::move(connection), NowNs()});
      WakeWatcher();
    }
  }
}

}  // namespace ebbgate

#include "server/service/http_connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "server/limiter/bounds.h"
#include "server/limiter/moment.h"

namespace ebbgate {
namespace {

// What a peer may go on sending after the answer, and for how long it is listened to.
constexpr std::size_t kMaxSwallowedBytes = 1024 * 1024;
constexpr int kSwallowMs = 200;

// poll(2) runs by the system's clock, so a clock moved by hand would be no use here.
std::int64_t NowNs() { return SystemTime().MonotonicNs(); }

}  // namespace

HttpConnection::~HttpConnection() { close(fd_); }

int HttpConnection::BeginRequest() {
  deadline_ns_ = NowNs() + kMaxHttpRequestNs;
  read_ = 0;
  allowed_ = kMaxHttpHeadBytes;
  headers_ended_ = false;
  return ++requests_;
}

void HttpConnection::HeadersEnd(std::uint64_t body_bytes) {
  headers_ended_ = true;
  request_end_ = read_ + body_bytes;
  allowed_ = read_ + std::min<std::uint64_t>(body_bytes, kMaxMessageBytes);
}

void HttpConnection::CloseGently() {
  shutdown(fd_, SHUT_WR);
  std::size_t swallowed = 0;
  pollfd waiting{fd_, POLLIN, 0};
  while (swallowed < kMaxSwallowedBytes && poll(&waiting, 1, kSwallowMs) > 0) {
    const ssize_t got = recv(fd_, buffer_.data(), buffer_.size(), 0);
    if (got <= 0) return;
    swallowed += static_cast<std::size_t>(got);
  }
}

bool HttpConnection::WaitFor(short events) const {
  while (true) {
    const std::int64_t left_ns = deadline_ns_ - NowNs();
    if (left_ns <= 0) return false;
    pollfd waiting{fd_, events, 0};
    const int ready = poll(&waiting, 1, static_cast<int>(left_ns / 1'000'000) + 1);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

bool HttpConnection::is_readable() const { return HasBuffered() || WaitFor(POLLIN); }
bool HttpConnection::is_writable() const { return WaitFor(POLLOUT); }

bool HttpConnection::Fill() {
  while (WaitFor(POLLIN)) {
    const ssize_t got = recv(fd_, buffer_.data(), buffer_.size(), 0);
    if (got > 0) {
      begin_ = 0;
      end_ = static_cast<std::size_t>(got);
      return true;
    }
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) return false;
  }
  return false;
}

ssize_t HttpConnection::read(char* buffer, std::size_t size) {
  if (read_ >= allowed_) return -1;
  if (!HasBuffered() && !Fill()) return -1;
  const std::size_t now = std::min({size, end_ - begin_, static_cast<std::size_t>(allowed_ - read_)});
  std::memcpy(buffer, buffer_.data() + begin_, now);
  begin_ += now;
  read_ += now;
  return static_cast<ssize_t>(now);
}

ssize_t HttpConnection::write(const char* data, std::size_t size) {
  while (WaitFor(POLLOUT)) {
    const ssize_t sent = send(fd_, data, size, MSG_NOSIGNAL);
    if (sent >= 0) return sent;
    if (errno != EAGAIN && errno != EINTR) return -1;
  }
  return -1;
}

// Nothing here looks at addresses: who may connect is decided by where the server listens.
void HttpConnection::get_remote_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}
void HttpConnection::get_local_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}

}  // namespace ebbgate

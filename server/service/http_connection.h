// One TCP connection of the operations port, as the HTTP library reads and writes it.
//
// The library bounds neither the line nor the headers nor the time of a request; this stream does, for all of them:
// once a request has used up its bytes or its time, reading and writing fail, and the connection is closed.
//
// Thread-safety: one thread at a time. Owns the socket, which is non-blocking. Cost: one system call for some KiB.
#ifndef EBBGATE_SERVER_SERVICE_HTTP_CONNECTION_H_
#define EBBGATE_SERVER_SERVICE_HTTP_CONNECTION_H_

#include <httplib.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace ebbgate {

class HttpConnection final : public httplib::Stream {
 public:
  explicit HttpConnection(int fd) : fd_(fd) {}
  ~HttpConnection() override;
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  int fd() const { return fd_; }
  // Bytes that came with the request before and belong to the next.
  bool HasBuffered() const { return begin_ < end_; }

  // A request begins: from now on its time runs, and its bytes are counted. Returns how many have begun.
  int BeginRequest();
  // Its headers were read; its body is said to have `body_bytes`.
  void HeadersEnd(std::uint64_t body_bytes);
  // Whether the request that began was read to its end, so that what follows is another one.
  bool RequestConsumed() const { return headers_ended_ && read_ == request_end_; }

  // Says that nothing more will be sent, and swallows what the peer is still sending for a moment: closing at once
  // would make its system throw away the answer unread.
  void CloseGently();

  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* buffer, std::size_t size) override;
  ssize_t write(const char* data, std::size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  // None: the library would refuse sockets above FD_SETSIZE, and gRPC may hold thousands.
  socket_t socket() const override { return -1; }

 private:
  bool WaitFor(short events) const;
  // At least one byte into the empty buffer, or false.
  bool Fill();

  const int fd_;
  int requests_ = 0;
  std::int64_t deadline_ns_ = 0;  // monotonic
  // Bytes of the request: handed out so far, allowed, and where it ends.
  std::uint64_t read_ = 0;
  std::uint64_t allowed_ = 0;
  std::uint64_t request_end_ = 0;
  bool headers_ended_ = false;

  std::array<char, 4096> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_SERVICE_HTTP_CONNECTION_H_

#include "server/service/rpc_listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace ebbgate {
namespace {

class Socket {
 public:
  Socket(int family, int type) : fd_(socket(family, type | SOCK_CLOEXEC, 0)) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

absl::Status CannotListen(const ListenAddress& address, int error) {
  std::string hint;
  switch (error) {
    case EADDRINUSE:
      hint = "another process listens there; stop it, or choose another address";
      break;
    case EACCES:
      hint = "this user may not; choose a port from 1024 up, or another directory";
      break;
    case EADDRNOTAVAIL:
      hint = "this machine does not have that address; 0.0.0.0 or [::] stand for all of them";
      break;
    case ENOENT:
      hint = "the directory does not exist; create it first";
      break;
    default:
      hint = "see the message before this one";
  }
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", address.text, ": ", std::generic_category().message(error), " (", hint, ")"));
}

// gRPC tells only its log why it could not bind. This tries the same and returns the error, 0 if there is none.
int BindError(const sockaddr* address, socklen_t length) {
  const Socket probe(address->sa_family, SOCK_STREAM);
  if (probe.fd() < 0) return errno;
  const int on = 1;
  setsockopt(probe.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address->sa_family == AF_INET6) setsockopt(probe.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
  if (bind(probe.fd(), address, length) != 0 || listen(probe.fd(), 1) != 0) return errno;
  return 0;
}

std::string HostAndPort(const std::string& host, int port) {
  return host.find(':') == std::string::npos ? absl::StrCat(host, ":", port) : absl::StrCat("[", host, "]:", port);
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

absl::StatusOr<BoundAddress> BindTcp(grpc_server* server, const ListenAddress& address,
                                     grpc_server_credentials* credentials) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  const std::unique_ptr<addrinfo, FreeAddresses> list(found);
  if (failed != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address.text, ": ", gai_strerror(failed), " (is the name spelled right?)"));
  }
  BoundAddress bound;
  int error = EADDRNOTAVAIL;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    char host[NI_MAXHOST];
    if (getnameinfo(each->ai_addr, each->ai_addrlen, host, sizeof(host), nullptr, 0, NI_NUMERICHOST) != 0) continue;
    const int wanted = bound.port != 0 ? bound.port : address.port;
    const int error_here = wanted == 0 ? 0 : BindError(each->ai_addr, each->ai_addrlen);
    const bool absent = error_here == EADDRNOTAVAIL || error_here == EAFNOSUPPORT;
    if (absent) continue;
    if (error_here != 0) return CannotListen(address, error_here);
    const int port = grpc_server_add_http2_port(server, HostAndPort(host, wanted).c_str(), credentials);
    if (port == 0) return CannotListen(address, BindError(each->ai_addr, each->ai_addrlen));
    bound.port = port;
  }
  if (bound.port == 0) return CannotListen(address, error);
  bound.text = HostAndPort(address.host, bound.port);
  return bound;
}

absl::StatusOr<BoundAddress> BindUnix(grpc_server* server, const ListenAddress& address,
                                      grpc_server_credentials* credentials) {
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  if (address.path.size() >= sizeof(name.sun_path)) return CannotListen(address, ENAMETOOLONG);
  std::memcpy(name.sun_path, address.path.c_str(), address.path.size() + 1);
  struct stat file;
  if (lstat(address.path.c_str(), &file) == 0) {
    if (!S_ISSOCK(file.st_mode)) {
      return absl::UnavailableError(
          absl::StrCat("cannot listen on ", address.text, ": the file exists and is no socket (remove it)"));
    }
    const Socket probe(AF_UNIX, SOCK_STREAM);
    if (connect(probe.fd(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0) {
      return CannotListen(address, EADDRINUSE);
    }
    if (errno != ECONNREFUSED) return CannotListen(address, errno);
    if (unlink(address.path.c_str()) != 0) return CannotListen(address, errno);
  }
  // With a mask, there is no moment at which others could connect.
  const mode_t mask = umask(S_IXUSR | S_IXGRP | S_IRWXO);
  const int bound = grpc_server_add_http2_port(server, address.text.c_str(), credentials);
  umask(mask);
  if (bound == 0) {
    const int error = BindError(reinterpret_cast<const sockaddr*>(&name), sizeof(name));
    return CannotListen(address, error);
  }
  return BoundAddress{address.text, 0};
}

}  // namespace

absl::StatusOr<BoundAddress> Bind(grpc_server* server, const ListenAddress& address,
                                  grpc_server_credentials* credentials) {
  return address.is_unix() ? BindUnix(server, address, credentials) : BindTcp(server, address, credentials);
}

}  // namespace ebbgate

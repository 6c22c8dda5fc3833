#include "server/config/listen_address.h"

#include <arpa/inet.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/config/text.h"

namespace ebbgate {
namespace {

constexpr std::size_t kMaxHostBytes = 253;  // of a DNS name

absl::Status Bad(absl::string_view text, absl::string_view reason, absl::string_view hint) {
  return absl::InvalidArgumentError(absl::StrCat(Quote(text), " ", reason, " (hint: ", hint, ")"));
}

bool IsIpv6(const std::string& host) {
  in6_addr ignored;
  return ::inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

bool IsName(absl::string_view host) {
  return host.size() <= kMaxHostBytes && std::all_of(host.begin(), host.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_';
         });
}

absl::StatusOr<ListenAddress> ParseUnix(absl::string_view text) {
  absl::string_view path = absl::StripPrefix(text, "unix:");
  if (absl::StartsWith(path, "//")) path.remove_prefix(2);
  if (path.empty()) return Bad(text, "names no socket", "unix:/run/ebbgate/ebbgate.sock");
  // One byte of sun_path is for the NUL at its end.
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return Bad(text, absl::StrCat("has a path longer than ", sizeof(sockaddr_un::sun_path) - 1, " bytes"),
               "that is the system's bound for Unix sockets; take a shorter one");
  }
  if (HasControlCharacter(path)) return Bad(text, "holds a control character", "unix:/run/ebbgate/ebbgate.sock");
  return ListenAddress{.text = absl::StrCat("unix:", path), .host = "", .port = 0, .path = std::string(path)};
}

}  // namespace

bool ListenAddress::is_local() const {
  if (is_unix() || host == "localhost") return true;
  in_addr v4;
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6;
  return ::inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text) {
  if (absl::StartsWith(text, "unix:")) return ParseUnix(text);
  const std::size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) {
    return Bad(text, "is no address", "host:port such as 127.0.0.1:7370, or unix:/path");
  }
  const absl::string_view host_text = text.substr(0, colon);
  const absl::string_view port_text = text.substr(colon + 1);
  const bool bracketed = absl::StartsWith(host_text, "[") && absl::EndsWith(host_text, "]");
  const std::string host(bracketed ? host_text.substr(1, host_text.size() - 2) : host_text);
  if (host.empty() || host == "*") {
    return Bad(text, "names no host", "0.0.0.0 is every interface, 127.0.0.1 this machine only");
  }
  if (bracketed ? !IsIpv6(host) : !IsName(host)) {
    return Bad(text, "has no valid host", "a name, 127.0.0.1, or an IPv6 address in brackets such as [::1]:7370");
  }
  const absl::StatusOr<std::int64_t> port = ParseWholeNumber(port_text);
  if (!port.ok() || *port > 65535) {
    return Bad(text, "has no valid port", "a number from 1 to 65535, or 0 for any free one");
  }
  return ListenAddress{
      .text = absl::StrCat(host_text, ":", *port), .host = host, .port = static_cast<int>(*port), .path = ""};
}

}  // namespace ebbgate

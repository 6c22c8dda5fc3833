#include "client/channel.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <sstream>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "google/rpc/status.pb.h"

namespace ebbgate::client {
namespace {

// The pauses between tries to connect, the first and, after many in vain, the longest.
constexpr int kFirstReconnectMs = 100;
constexpr int kLongestReconnectMs = 5000;

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::NotFoundError(absl::StrCat("cannot read ", path, ": ", std::generic_category().message(errno)));
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> Credentials(const TlsFiles& files) {
  if (files.cert.empty() != files.key.empty()) {
    return absl::InvalidArgumentError("a TLS certificate and its key must be given together");
  }
  grpc::SslCredentialsOptions options;
  const std::pair<const std::string*, std::string*> wanted[] = {{&files.ca, &options.pem_root_certs},
                                                                {&files.cert, &options.pem_cert_chain},
                                                                {&files.key, &options.pem_private_key}};
  for (const auto& [path, text] : wanted) {
    if (path->empty()) continue;
    absl::StatusOr<std::string> content = ReadFile(*path);
    if (!content.ok()) return content.status();
    *text = *std::move(content);
  }
  return grpc::SslCredentials(options);
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const std::string& address,
                                                           const std::optional<TlsFiles>& tls, bool own_connection) {
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (tls.has_value()) {
    absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> secure = Credentials(*tls);
    if (!secure.ok()) return secure.status();
    credentials = *std::move(secure);
  }
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, own_connection ? 1 : 0);
  // A limiter is asked on the way to something else: a proxy meant for that is never meant for us.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // After a lost connection the next try to connect is made with the next attempt of a call, not a second later.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstReconnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLongestReconnectMs);
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  google::rpc::Status details;
  if (!status.error_details().empty() && details.ParseFromString(status.error_details())) {
    for (const google::protobuf::Any& detail : details.details()) {
      result.SetPayload(detail.type_url(), absl::Cord(detail.value()));
    }
  }
  return result;
}

void SetTimeout(grpc::ClientContext& context, absl::Duration timeout) {
  // Beyond a year it could as well be for ever, which would not fit the clock.
  timeout = std::min(timeout, absl::Hours(366 * 24));
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoNanoseconds(timeout));
}

}  // namespace ebbgate::client

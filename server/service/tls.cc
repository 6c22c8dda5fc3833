#include "server/service/tls.h"

namespace ebbgate {
namespace {

// Renewals come weeks apart; reading three small files now and then costs nothing.
constexpr unsigned kReloadEverySeconds = 5;

}  // namespace

ServerCredentialsPtr PlaintextCredentials() { return ServerCredentialsPtr(grpc_insecure_server_credentials_create()); }

ServerCredentialsPtr TlsCredentials(const TlsFiles& files) {
  const bool mutual = !files.client_ca.empty();
  grpc_tls_certificate_provider* const provider = grpc_tls_certificate_provider_file_watcher_create(
      files.key.c_str(), files.cert.c_str(), mutual ? files.client_ca.c_str() : nullptr, kReloadEverySeconds);
  grpc_tls_credentials_options* const options = grpc_tls_credentials_options_create();
  grpc_tls_credentials_options_set_certificate_provider(options, provider);
  grpc_tls_credentials_options_watch_identity_key_cert_pairs(options);
  if (mutual) grpc_tls_credentials_options_watch_root_certs(options);
  grpc_tls_credentials_options_set_cert_request_type(
      options,
      mutual ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  // Callers are known by who signed them; they have no host name to compare.
  grpc_tls_certificate_verifier* const verifier = grpc_tls_certificate_verifier_no_op_create();
  grpc_tls_credentials_options_set_certificate_verifier(options, verifier);
  grpc_tls_credentials_options_set_check_call_host(options, 0);
  ServerCredentialsPtr credentials(grpc_tls_server_credentials_create(options));  // takes the options
  grpc_tls_certificate_verifier_release(verifier);
  grpc_tls_certificate_provider_release(provider);
  return credentials;
}

}  // namespace ebbgate

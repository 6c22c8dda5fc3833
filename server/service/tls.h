// How a server proves who it is, and whom it believes: from files, read again every few seconds, so that a certificate
// that was renewed is in use for new connections without a restart.
//
// Thread-safety: plain function; what it returns is used by one server being built.
#ifndef EBBGATE_SERVER_SERVICE_TLS_H_
#define EBBGATE_SERVER_SERVICE_TLS_H_

#include <grpc/grpc_security.h>

#include <memory>

#include "server/config/server_options.h"

namespace ebbgate {

struct ReleaseCredentials {
  void operator()(grpc_server_credentials* credentials) const { grpc_server_credentials_release(credentials); }
};
using ServerCredentialsPtr = std::unique_ptr<grpc_server_credentials, ReleaseCredentials>;

ServerCredentialsPtr PlaintextCredentials();

// TLS 1.2 or newer. With files.client_ca, callers must show a certificate that it signed. Pre: files.enabled(), and the
// files were readable and matched a moment ago; while they are not, the last good ones stay in use.
ServerCredentialsPtr TlsCredentials(const TlsFiles& files);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_SERVICE_TLS_H_

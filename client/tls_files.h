// The PEM files of a TLS connection.
#ifndef EBBGATE_CLIENT_TLS_FILES_H_
#define EBBGATE_CLIENT_TLS_FILES_H_

#include <string>

namespace ebbgate::client {

struct TlsFiles {
  // Whom to trust; empty: the roots that gRPC ships with.
  std::string ca;
  // Who we are, for servers that ask; both or none.
  std::string cert;
  std::string key;
};

}  // namespace ebbgate::client

#endif  // EBBGATE_CLIENT_TLS_FILES_H_

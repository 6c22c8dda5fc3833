// Whether TLS files are what they should be, before a server depends on them. Plain functions that read files.
#ifndef EBBGATE_SERVER_CONFIG_TLS_CHECK_H_
#define EBBGATE_SERVER_CONFIG_TLS_CHECK_H_

#include <string>

#include "absl/status/status.h"

namespace ebbgate {

// Each is OK, or an error that begins with the path and says what is wrong and what to do.

// At least one certificate in PEM form, and each of them can be read.
absl::Status CheckCertificates(const std::string& path);

// A private key in PEM form, without a passphrase, that belongs to the first certificate of `cert_path`.
absl::Status CheckKey(const std::string& path, const std::string& cert_path);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_CONFIG_TLS_CHECK_H_

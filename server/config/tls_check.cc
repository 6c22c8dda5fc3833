#include "server/config/tls_check.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/config/files.h"
#include "server/limiter/bounds.h"

namespace ebbgate {
namespace {

// OpenSSL frees its objects by functions of C.
template <auto Free>
struct Release {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Bio = std::unique_ptr<BIO, Release<BIO_free>>;
using Certificate = std::unique_ptr<X509, Release<X509_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, Release<EVP_PKEY_free>>;

absl::Status Bad(const std::string& path, absl::string_view reason, absl::string_view hint) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", reason, " (hint: ", hint, ")"));
}

// A passphrase would be asked for on the terminal.
int NoPassphrase(char*, int, int, void*) { return 0; }

Bio Open(const std::string& pem) { return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))); }

absl::StatusOr<std::vector<Certificate>> ReadCertificates(const std::string& path) {
  const absl::StatusOr<std::string> pem = ReadRegularFile(path, kMaxPemFileBytes);
  if (!pem.ok()) return pem.status();
  const absl::Cleanup forget_errors = [] { ERR_clear_error(); };
  ERR_clear_error();
  const Bio bio = Open(*pem);
  std::vector<Certificate> certificates;
  while (Certificate next{PEM_read_bio_X509(bio.get(), nullptr, NoPassphrase, nullptr)}) {
    certificates.push_back(std::move(next));
  }
  // The end of the file is the error "no start line"; any other is a block that cannot be read.
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (at_end && !certificates.empty()) return certificates;
  if (at_end) return Bad(path, "holds no certificate", "PEM, with a line -----BEGIN CERTIFICATE-----");
  return Bad(path, absl::StrCat("certificate ", certificates.size() + 1, " cannot be read"),
             "the file may be damaged or cut short; try openssl x509 -in FILE -text");
}

}  // namespace

absl::Status CheckCertificates(const std::string& path) { return ReadCertificates(path).status(); }

absl::Status CheckKey(const std::string& path, const std::string& cert_path) {
  const absl::StatusOr<std::string> pem = ReadRegularFile(path, kMaxPemFileBytes);
  if (!pem.ok()) return pem.status();
  const absl::Cleanup forget_errors = [] { ERR_clear_error(); };
  const Bio bio = Open(*pem);
  const PrivateKey key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, nullptr));
  if (key == nullptr && absl::StrContains(*pem, "ENCRYPTED")) {
    return Bad(path, "is protected by a passphrase", "remove it with openssl pkey -in FILE -out NEW");
  }
  if (key == nullptr) return Bad(path, "holds no private key", "PEM, with a line -----BEGIN PRIVATE KEY-----");
  const absl::StatusOr<std::vector<Certificate>> certificates = ReadCertificates(cert_path);
  if (!certificates.ok()) return certificates.status();
  if (X509_check_private_key(certificates->front().get(), key.get()) == 1) return absl::OkStatus();
  return Bad(path, absl::StrCat("does not belong to the first certificate of ", cert_path),
             "the server's own certificate comes first in its file, before its chain");
}

}  // namespace ebbgate

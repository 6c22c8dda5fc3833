#include "server/config/options_check.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "server/config/tls_check.h"

namespace ebbgate {
namespace {

// Adds one error: of a setting, for a reason.
class Errors {
 public:
  explicit Errors(const SettingSources& sources) : sources_(sources) {}

  void Add(absl::string_view setting, absl::string_view reason) {
    lines_.push_back(absl::StrCat(sources_.at(setting).prefix, ": ", reason));
  }
  std::vector<std::string> Take() { return std::move(lines_); }

 private:
  const SettingSources& sources_;
  std::vector<std::string> lines_;
};

void CheckTls(const TlsFiles& tls, Errors& errors) {
  if (tls.cert.empty() != tls.key.empty()) {
    errors.Add(tls.cert.empty() ? "tls-key" : "tls-cert",
               absl::StrCat("needs --tls-", tls.cert.empty() ? "cert" : "key", " beside it"));
  }
  if (!tls.client_ca.empty() && tls.cert.empty() && tls.key.empty()) {
    errors.Add("tls-client-ca", "needs --tls-cert and --tls-key beside it");
  }
  const absl::Status cert = tls.cert.empty() ? absl::OkStatus() : CheckCertificates(tls.cert);
  if (!cert.ok()) errors.Add("tls-cert", cert.message());
  if (cert.ok() && !tls.cert.empty() && !tls.key.empty()) {
    if (const absl::Status key = CheckKey(tls.key, tls.cert); !key.ok()) errors.Add("tls-key", key.message());
  }
  const absl::Status authorities = tls.client_ca.empty() ? absl::OkStatus() : CheckCertificates(tls.client_ca);
  if (!authorities.ok()) errors.Add("tls-client-ca", authorities.message());
}

void CheckPlaintext(const ServerOptions& options, Errors& errors) {
  if (options.allow_plaintext) return;
  for (const ListenAddress& address : options.listen) {
    if (address.is_local() || options.tls.enabled()) continue;
    errors.Add("listen",
               absl::StrCat(address.text,
                            " can be reached from other machines, and would be in plain text (hint: "
                            "give --tls-cert and --tls-key, listen on 127.0.0.1, or say --allow-plaintext where "
                            "the network is protected)"));
  }
  const bool mutual = options.tls.enabled() && !options.tls.client_ca.empty();
  if (options.admin_listen.is_local() || mutual) return;
  errors.Add("admin-listen",
             absl::StrCat(options.admin_listen.text,
                          " can be reached from other machines, and whoever reaches it may reset "
                          "keys (hint: give --tls-cert, --tls-key and --tls-client-ca, listen on 127.0.0.1, or say "
                          "--allow-plaintext where the network is protected)"));
}

void CheckDuplicates(const ServerOptions& options, Errors& errors) {
  struct Use {
    absl::string_view setting;
    const ListenAddress* address;
  };
  std::vector<Use> uses;
  for (const ListenAddress& address : options.listen) uses.push_back({"listen", &address});
  uses.push_back({"ops-listen", &options.ops_listen});
  uses.push_back({"admin-listen", &options.admin_listen});
  for (std::size_t later = 1; later < uses.size(); ++later) {
    const ListenAddress& address = *uses[later].address;
    if (!address.is_unix() && address.port == 0) continue;  // each gets a port of its own
    for (std::size_t earlier = 0; earlier < later; ++earlier) {
      if (uses[earlier].address->text != address.text) continue;
      errors.Add(uses[later].setting, absl::StrCat(address.text, " is used twice, also by --", uses[earlier].setting));
    }
  }
}

}  // namespace

std::vector<std::string> CheckOptions(const ServerOptions& options, const SettingSources& sources) {
  Errors errors(sources);
  if (options.limits.empty()) {
    errors.Add("limits",
               "is missing (hint: name the file of limits, such as deploy/examples/limits.yaml; or set "
               "EBBGATE_LIMITS)");
  }
  CheckTls(options.tls, errors);
  CheckPlaintext(options, errors);
  CheckDuplicates(options, errors);
  return errors.Take();
}

}  // namespace ebbgate

// Every setting of `ebbgated`, and where it comes from: flags, environment, a YAML file, defaults, in this order.
//
//   absl::StatusOr<ServerOptions> options = ParseServerOptions(argc, argv, [](const char* name) { return getenv(name);
//   }); if (options.ok() && options->print_and_exit) { std::cout << *options->print_and_exit; return 0; }
//
// A setting `drain-delay` is the flag --drain-delay, the variable EBBGATE_DRAIN_DELAY and the key `drain_delay` of the
// file that --config names. Thread-safety: plain functions and values. Reads the files that the settings name (to check
// them); opens no socket.
#ifndef EBBGATE_SERVER_CONFIG_SERVER_OPTIONS_H_
#define EBBGATE_SERVER_CONFIG_SERVER_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/config/listen_address.h"
#include "server/engine/engine.h"
#include "server/limiter/amount.h"
#include "server/limiter/bounds.h"

namespace ebbgate {

enum class LogFormat : std::uint8_t { kText, kJson };

struct TlsFiles {
  std::string cert;       // PEM, the server's certificate first, then its chain
  std::string key;        // PEM, without a passphrase
  std::string client_ca;  // PEM; set: callers must show a certificate that one of these signed

  bool enabled() const { return !cert.empty(); }
};

// Valid as returned by ParseServerOptions: addresses parse, files were readable and match, numbers are in range. Made
// by hand, it holds the defaults, and neither limits nor listeners.
struct ServerOptions {
  // Text asked for by --help, --version or --print-config: print it and exit with 0. The rest then means nothing.
  std::optional<std::string> print_and_exit;
  // --check-config: load the limits too, say what is wrong or that all is well, and exit.
  bool check_config = false;
  // --print-config: see print_and_exit.
  bool print_config = false;

  // The limits file. Never empty.
  std::string limits;

  // Where calls are answered; at least one. TCP listeners use TLS if tls.enabled(), Unix sockets never do.
  std::vector<ListenAddress> listen;
  // HTTP: metrics, health, the JSON twin. Always TCP, always plain.
  ListenAddress ops_listen;
  // The Admin service; TLS as for `listen`.
  ListenAddress admin_listen;
  // Absent: see reflection_on().
  std::optional<bool> reflection;
  bool allow_plaintext = false;
  TlsFiles tls;

  EngineOptions engine;

  int threads = 2;                                              // completion queues and the threads that serve them
  std::int64_t max_calls_in_flight = kDefaultMaxCallsInFlight;  // beyond: UNAVAILABLE at once
  std::int64_t max_connection_age_ns = 10 * 60 * kNsPerSecond;  // TCP only; 0: for ever

  // On SIGTERM: health says NOT_SERVING, then calls are still served for drain_delay_ns, then those in flight may take
  // drain_timeout_ns to finish. Together they fit the 30 s that Kubernetes gives a pod.
  std::int64_t drain_delay_ns = 5 * kNsPerSecond;
  std::int64_t drain_timeout_ns = 20 * kNsPerSecond;

  LogFormat log_format = LogFormat::kText;
  std::string log_level = "info";  // debug, info, warning or error: names that spdlog knows

  // Whether the call listeners offer server reflection: as set, else only while all of them are local.
  bool reflection_on() const;
  // Whether the operations port offers the JSON twin, which charges like a call but knows neither TLS nor client
  // certificates: only while the port is loopback, or plain text is allowed.
  bool json_twin_on() const { return ops_listen.is_local() || allow_plaintext; }
};

// The settings, or INVALID_ARGUMENT with a line for each fault; each names the flag, the variable or the file and line
// that brought the value, and what to do. `getenv` returns null for a variable that is not set; an empty one counts as
// not set. Throws nothing.
absl::StatusOr<ServerOptions> ParseServerOptions(int argc, const char* const* argv,
                                                 const std::function<const char*(const char*)>& getenv);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_CONFIG_SERVER_OPTIONS_H_

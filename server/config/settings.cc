#include "server/config/settings.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "server/config/duration.h"
#include "server/config/text.h"
#include "server/limiter/parameters.h"

namespace ebbgate {
namespace {

using Values = std::vector<std::string>;

// --- Kinds of values -------------------------------------------------------------------------------------------------

absl::Status Bad(absl::string_view text, absl::string_view reason) {
  return absl::InvalidArgumentError(absl::StrCat(Quote(text), " ", reason));
}

absl::Status SetText(const Values& values, std::string& out) {
  if (values[0].empty()) return absl::InvalidArgumentError("must not be empty");
  out = values[0];
  return absl::OkStatus();
}
Values GetText(const std::string& text) { return text.empty() ? Values() : Values{text}; }

absl::Status SetSwitch(const Values& values, bool& out) {
  if (values[0] != "true" && values[0] != "false") return Bad(values[0], "must be true or false");
  out = values[0] == "true";
  return absl::OkStatus();
}
Values GetSwitch(bool on) { return {on ? "true" : "false"}; }

// The names are those of the values 0, 1, ...
template <typename Enum, std::size_t N>
absl::Status SetChoice(const Values& values, const absl::string_view (&names)[N], Enum& out) {
  const auto found = std::find(std::begin(names), std::end(names), values[0]);
  if (found == std::end(names)) return Bad(values[0], absl::StrCat("must be one of ", absl::StrJoin(names, ", ")));
  out = static_cast<Enum>(found - std::begin(names));
  return absl::OkStatus();
}
template <typename Enum, std::size_t N>
Values GetChoice(Enum choice, const absl::string_view (&names)[N]) {
  return {std::string(names[static_cast<std::size_t>(choice)])};
}

absl::Status CheckRange(absl::string_view text, std::int64_t value, std::int64_t least, std::int64_t most,
                        std::string (*print)(std::int64_t)) {
  if (value >= least && value <= most) return absl::OkStatus();
  return Bad(text, absl::StrCat("must be from ", print(least), " to ", print(most)));
}

std::string PrintNumber(std::int64_t value) { return absl::StrCat(value); }

template <typename Integer>
absl::Status SetNumber(const Values& values, std::int64_t least, std::int64_t most, Integer& out) {
  const absl::StatusOr<std::int64_t> value = ParseWholeNumber(values[0]);
  if (!value.ok()) return Bad(values[0], value.status().message());
  if (absl::Status status = CheckRange(values[0], *value, least, most, PrintNumber); !status.ok()) return status;
  out = static_cast<Integer>(*value);
  return absl::OkStatus();
}
Values GetNumber(std::int64_t value) { return {PrintNumber(value)}; }

absl::Status SetTime(const Values& values, std::int64_t least_ns, std::int64_t& out) {
  const absl::StatusOr<std::int64_t> ns = ParseDurationNs(values[0]);
  if (!ns.ok()) return ns.status();
  if (absl::Status status = CheckRange(values[0], *ns, least_ns, kMaxSettingNs, DescribeNs); !status.ok())
    return status;
  out = *ns;
  return absl::OkStatus();
}
// 0s stands for none.
absl::Status SetTimeOrNone(const Values& values, std::int64_t least_ns, std::int64_t& out) {
  if (SetTime(values, 0, out).ok() && out == 0) return absl::OkStatus();
  return SetTime(values, least_ns, out);
}
Values GetTime(std::int64_t ns) { return {DescribeNs(ns)}; }

struct ByteUnit {
  absl::string_view suffix;
  std::int64_t bytes;
};
constexpr ByteUnit kByteUnits[] = {{"GiB", 1LL << 30}, {"MiB", 1LL << 20}, {"KiB", 1LL << 10}};

std::string PrintBytes(std::int64_t bytes) {
  for (const ByteUnit& unit : kByteUnits) {
    if (bytes % unit.bytes == 0) return absl::StrCat(bytes / unit.bytes, unit.suffix);
  }
  return PrintNumber(bytes);
}

Values GetBytes(std::int64_t bytes) { return {PrintBytes(bytes)}; }

absl::Status SetBytes(const Values& values, std::int64_t& out) {
  absl::string_view number = values[0];
  std::int64_t unit_bytes = 1;
  for (const ByteUnit& unit : kByteUnits) {
    if (absl::ConsumeSuffix(&number, unit.suffix)) unit_bytes = unit.bytes;
  }
  const absl::StatusOr<std::int64_t> value = ParseWholeNumber(number);
  if (!value.ok()) return Bad(values[0], "must be a whole number of bytes, or of KiB, MiB or GiB such as 512MiB");
  const std::int64_t bytes = Saturate(static_cast<Int128>(*value) * unit_bytes);
  if (absl::Status status = CheckRange(values[0], bytes, kMinStoreBytes, kMaxStoreBytes, PrintBytes); !status.ok()) {
    return status;
  }
  out = bytes;
  return absl::OkStatus();
}

absl::Status SetAddress(const Values& values, ListenAddress& out) {
  absl::StatusOr<ListenAddress> address = ParseListenAddress(values[0]);
  if (!address.ok()) return address.status();
  out = *std::move(address);
  return absl::OkStatus();
}
Values GetAddress(const ListenAddress& address) { return {address.text}; }

absl::Status SetListeners(const Values& values, std::vector<ListenAddress>& out) {
  if (values.size() > kMaxListeners) {
    return absl::InvalidArgumentError(absl::StrCat("names more than ", kMaxListeners, " addresses"));
  }
  std::vector<ListenAddress> addresses(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (absl::Status status = SetAddress({values[i]}, addresses[i]); !status.ok()) return status;
  }
  out = std::move(addresses);
  return absl::OkStatus();
}
Values GetListeners(const std::vector<ListenAddress>& addresses) {
  Values values;
  for (const ListenAddress& address : addresses) values.push_back(address.text);
  return values;
}

absl::Status SetTcpAddress(const Values& values, ListenAddress& out) {
  ListenAddress address;
  if (absl::Status status = SetAddress(values, address); !status.ok()) return status;
  if (address.is_unix()) return Bad(values[0], "cannot be a Unix socket; scrapers and probes speak HTTP over TCP");
  out = std::move(address);
  return absl::OkStatus();
}

constexpr absl::string_view kOffOn[] = {"off", "on"};
constexpr absl::string_view kLogFormats[] = {"text", "json"};
constexpr absl::string_view kLogLevels[] = {"debug", "info", "warning", "error"};
constexpr absl::string_view kWhenFull[] = {"deny", "allow"};
constexpr absl::string_view kUnknownLimit[] = {"reject", "allow", "deny"};

absl::Status SetReflection(const Values& values, std::optional<bool>& out) {
  int on = 0;
  if (absl::Status status = SetChoice(values, kOffOn, on); !status.ok()) return status;
  out = on == 1;
  return absl::OkStatus();
}
Values GetReflection(std::optional<bool> on) { return on ? GetChoice(*on ? 1 : 0, kOffOn) : Values(); }

absl::Status SetLogLevel(const Values& values, std::string& out) {
  int index = 0;
  if (absl::Status status = SetChoice(values, kLogLevels, index); !status.ok()) return status;
  out = values[0];
  return absl::OkStatus();
}

// --- The table -------------------------------------------------------------------------------------------------------

// Binds a kind of value to a member of ServerOptions.
#define EBBGATE_SETTING(SET, GET, MEMBER, ...)                                                             \
  [](const Values& values, ServerOptions& o) { return SET(values, __VA_ARGS__ __VA_OPT__(, ) o.MEMBER); }, \
      [](const ServerOptions& o) { return GET(o.MEMBER); }
#define EBBGATE_CHOICE(MEMBER, NAMES)                                                        \
  [](const Values& values, ServerOptions& o) { return SetChoice(values, NAMES, o.MEMBER); }, \
      [](const ServerOptions& o) { return GetChoice(o.MEMBER, NAMES); }

constexpr Setting kSettings[] = {
    {"limits", "Limits", "FILE", "The limits file (YAML), read again when its content changes. Needed.", false,
     EBBGATE_SETTING(SetText, GetText, limits)},
    {"unknown-limit", "Limits", "reject|allow|deny",
     "What a charge on a limit gets that is not configured: the error NOT_FOUND, leave, or a refusal.", false,
     EBBGATE_CHOICE(engine.unknown_limit, kUnknownLimit)},
    {"wall-step-hold", "Limits", "TIME",
     "How long a step of the system's clock must hold before calendar windows follow it.", false,
     EBBGATE_SETTING(SetTime, GetTime, engine.wall_step_hold_ns, 0)},

    {"listen", "Addresses", "ADDR",
     "Where calls are answered: host:port or unix:/path; port 0 is any free one. Repeatable; in the variable separated "
     "by commas, in the file a list.",
     true, EBBGATE_SETTING(SetListeners, GetListeners, listen)},
    {"ops-listen", "Addresses", "ADDR",
     "Where operations are answered over HTTP: /metrics, /healthz, /readyz; and POST /v1/should_allow while the "
     "address "
     "is loopback or plain text is allowed.",
     false, EBBGATE_SETTING(SetTcpAddress, GetAddress, ops_listen)},
    {"admin-listen", "Addresses", "ADDR",
     "Where the Admin service answers (inspect, reset, list, reload). Beyond loopback it needs --tls-client-ca.", false,
     EBBGATE_SETTING(SetAddress, GetAddress, admin_listen)},
    {"reflection", "Addresses", "on|off",
     "Whether tools may ask for the service's description. Absent: on only while every --listen is loopback or a Unix "
     "socket.",
     false, EBBGATE_SETTING(SetReflection, GetReflection, reflection)},

    {"tls-cert", "Security", "FILE",
     "The server's certificate and its chain (PEM); TCP listeners then speak TLS. Read again when renewed.", false,
     EBBGATE_SETTING(SetText, GetText, tls.cert)},
    {"tls-key", "Security", "FILE", "The certificate's private key (PEM, without a passphrase).", false,
     EBBGATE_SETTING(SetText, GetText, tls.key)},
    {"tls-client-ca", "Security", "FILE", "Authorities (PEM) of which callers must show a certificate: mutual TLS.",
     false, EBBGATE_SETTING(SetText, GetText, tls.client_ca)},
    {"allow-plaintext", "Security", "",
     "Permit addresses beyond loopback without TLS, where a network of your own protects them.", false,
     EBBGATE_SETTING(SetSwitch, GetSwitch, allow_plaintext)},

    {"max-keys", "Memory", "N", "Keys held at once.", false,
     EBBGATE_SETTING(SetNumber, GetNumber, engine.max_keys, 1, kMaxKeys)},
    {"max-store-bytes", "Memory", "BYTES", "Memory for keys: bytes, or with KiB, MiB or GiB.", false,
     EBBGATE_SETTING(SetBytes, GetBytes, engine.max_store_bytes)},
    {"when-full", "Memory", "deny|allow",
     "What a new key gets when neither bound leaves room: the error UNAVAILABLE, or leave without an account.", false,
     EBBGATE_CHOICE(engine.when_full, kWhenFull)},
    {"dedupe-window", "Memory", "TIME", "How long the answer to a request id is remembered.", false,
     EBBGATE_SETTING(SetTime, GetTime, engine.dedupe_window_ns, kNsPerSecond)},
    {"max-request-ids", "Memory", "N", "Request ids remembered at once; beyond, calls with an id are refused.", false,
     EBBGATE_SETTING(SetNumber, GetNumber, engine.max_request_ids, 1, kMaxRequestIds)},
    {"max-holds", "Memory", "N",
     "Reservations' charges open at once, of all keys together; beyond, Reserve is refused with UNAVAILABLE.", false,
     EBBGATE_SETTING(SetNumber, GetNumber, engine.max_holds, 1, kMaxHolds)},

    {"threads", "Load", "N", "Threads that serve calls. Absent: one for every two cores, and two at least.", false,
     EBBGATE_SETTING(SetNumber, GetNumber, threads, kMinThreads, kMaxThreads)},
    {"max-calls-in-flight", "Load", "N", "Calls served at once; beyond, UNAVAILABLE.", false,
     EBBGATE_SETTING(SetNumber, GetNumber, max_calls_in_flight, 1, kMaxCallsInFlight)},
    {"max-connection-age", "Load", "TIME",
     "TCP connections are closed gracefully after it, so that a balancer spreads them anew; 0s: never.", false,
     EBBGATE_SETTING(SetTimeOrNone, GetTime, max_connection_age_ns, kNsPerSecond)},

    {"drain-delay", "Stopping", "TIME",
     "On SIGTERM: how long calls are still served after health says NOT_SERVING, until balancers have noticed.", false,
     EBBGATE_SETTING(SetTime, GetTime, drain_delay_ns, 0)},
    {"drain-timeout", "Stopping", "TIME", "And then how long calls in flight may take to finish.", false,
     EBBGATE_SETTING(SetTime, GetTime, drain_timeout_ns, 0)},

    {"log-format", "Logs", "text|json", "Lines for people or for programs.", false,
     EBBGATE_CHOICE(log_format, kLogFormats)},
    {"log-level", "Logs", "debug|info|warning|error", "The least important lines that are written.", false,
     EBBGATE_SETTING(SetLogLevel, GetText, log_level)},

    {"check-config", "Actions", "", "Check all settings and the limits file, say what is wrong, and exit.", false,
     EBBGATE_SETTING(SetSwitch, GetSwitch, check_config)},
    {"print-config", "Actions", "", "Print all settings as a file for --config, with where each came from, and exit.",
     false, EBBGATE_SETTING(SetSwitch, GetSwitch, print_config)},
};

#undef EBBGATE_SETTING
#undef EBBGATE_CHOICE

}  // namespace

absl::Span<const Setting> Settings() { return kSettings; }

std::string VariableOf(const Setting& setting) {
  return absl::StrCat("EBBGATE_", absl::AsciiStrToUpper(KeyOf(setting)));
}

std::string KeyOf(const Setting& setting) { return absl::StrReplaceAll(setting.name, {{"-", "_"}}); }

ServerOptions DefaultServerOptions() {
  ServerOptions options;
  options.listen = {{.text = "127.0.0.1:7370", .host = "127.0.0.1", .port = 7370, .path = ""}};
  options.ops_listen = {.text = "127.0.0.1:7371", .host = "127.0.0.1", .port = 7371, .path = ""};
  options.admin_listen = {.text = "127.0.0.1:7373", .host = "127.0.0.1", .port = 7373, .path = ""};
  // Threads of gRPC share one set of sockets and hand calls over to each other, so the second one costs a third more
  // processor time a call and adds little; those who call often need the other cores.
  const std::int64_t cores = std::thread::hardware_concurrency();
  options.threads = static_cast<int>(std::clamp<std::int64_t>(cores / 2, kMinThreads, kMaxThreads));
  return options;
}

}  // namespace ebbgate

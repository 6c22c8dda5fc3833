#include "server/service/ops_server.h"

#include <httplib.h>

#include <array>
#include <cstdint>
#include <exception>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "server/limiter/bounds.h"
#include "server/service/http_listener.h"
#include "server/service/json_twin.h"
#include "server/telemetry/escape.h"
#include "server/telemetry/metrics.h"

namespace ebbgate {
namespace {

constexpr char kJson[] = "application/json";
constexpr char kTwinPath[] = "/v1/should_allow";

constexpr char kIndex[] =
    "Ebbgate, operations port\n"
    "\n"
    "GET  /metrics          for Prometheus\n"
    "GET  /healthz          200 while the process lives\n"
    "GET  /readyz           200 when ready for calls, else 503 with the reasons\n"
    "POST /v1/should_allow  {\"charges\": [{\"limit\": \"...\", \"key\": \"...\"}]}\n";

void SetError(int http_status, absl::StatusCode code, absl::string_view message, httplib::Response& response) {
  response.status = http_status;
  response.set_content(ErrorJson(code, message), kJson);
}

// The size of the body as the headers tell it; nothing if they tell none, or not plainly.
std::optional<std::uint64_t> BodyBytes(const httplib::Request& request) {
  std::uint64_t bytes = 0;
  if (request.has_header("Transfer-Encoding") || request.get_header_value_count("Content-Length") != 1) {
    return std::nullopt;
  }
  const std::string text = request.get_header_value("Content-Length");
  if (text.empty() ||
      !absl::c_all_of(text, [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); })) {
    return std::nullopt;
  }
  if (!absl::SimpleAtoi(text, &bytes)) return std::nullopt;
  return bytes;
}

bool SaysJson(const httplib::Request& request) {
  const std::string type = request.get_header_value("Content-Type");
  const absl::string_view essence = absl::StripAsciiWhitespace(absl::string_view(type).substr(0, type.find(';')));
  return absl::EqualsIgnoreCase(essence, kJson);
}

// Refuses a call before its body is read. Returns whether it did.
bool RefuseTwin(const httplib::Request& request, httplib::Response& response) {
  const auto refuse = [&](int http_status, absl::StatusCode code, absl::string_view message) {
    SetError(http_status, code, message, response);
    return true;
  };
  constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
  // Browsers name the page that asks. A page may not spend anybody's tokens, even if its site's name was made to mean
  // this machine.
  if (request.has_header("Origin")) {
    return refuse(403, absl::StatusCode::kPermissionDenied, "requests of web pages are not served");
  }
  if (!SaysJson(request)) return refuse(415, kInvalid, "Content-Type must be application/json");
  // What expands cannot be bounded by its length.
  if (request.has_header("Content-Encoding")) return refuse(415, kInvalid, "Content-Encoding is not supported");
  const auto bytes = BodyBytes(request);
  if (!bytes) return refuse(411, kInvalid, "one Content-Length is needed, and no Transfer-Encoding");
  if (*bytes > kMaxMessageBytes) {
    return refuse(413, kInvalid, absl::StrCat("the body may have ", kMaxMessageBytes, " bytes"));
  }
  return false;
}

void AppendJsonList(const std::vector<std::string>& texts, std::string& json) {
  json += '[';
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) json += ',';
    AppendJsonString(texts[i], json);
  }
  json += ']';
}

std::string ReadinessJson(const std::vector<std::string>& reasons, const std::vector<std::string>& information) {
  std::string json = absl::StrCat("{\"ready\":", reasons.empty() ? "true" : "false", ",\"reasons\":");
  AppendJsonList(reasons, json);
  if (!information.empty()) {
    json += ",\"information\":";
    AppendJsonList(information, json);
  }
  return json + "}\n";
}

absl::StatusCode CodeOfHttp(int http_status) {
  if (http_status == 404) return absl::StatusCode::kNotFound;
  return http_status < 500 ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kInternal;
}

// What is behind each path. The HTTP library parses requests and writes answers; sockets and threads are
// HttpListener's.
class Routes final : private httplib::Server {
 public:
  Routes(bool json_twin, const OpsSurface& surface);

  // Reads one request and answers it. Returns whether the connection can carry another.
  bool AnswerOne(HttpConnection& connection);

 private:
  struct Page {
    const char* path;
    const char* method;
    void (Routes::*answer)(httplib::Response&) const;
  };
  static const std::array<Page, 4> kPages;

  // Answers everything but the twin; that one it lets pass if its headers are in order.
  HandlerResponse Route(const httplib::Request& request, httplib::Response& response) const;

  void Index(httplib::Response& response) const { response.set_content(kIndex, "text/plain; charset=utf-8"); }
  void Healthz(httplib::Response& response) const { response.set_content("{\"alive\":true}\n", kJson); }
  void Readyz(httplib::Response& response) const;
  void MetricsPage(httplib::Response& response) const;
  void Twin(const httplib::Request& request, httplib::Response& response) const;

  const bool json_twin_;
  const OpsSurface surface_;
};

const std::array<Routes::Page, 4> Routes::kPages = {{
    {"/", "GET", &Routes::Index},
    {"/healthz", "GET", &Routes::Healthz},
    {"/readyz", "GET", &Routes::Readyz},
    {"/metrics", "GET", &Routes::MetricsPage},
}};

Routes::Routes(bool json_twin, const OpsSurface& surface) : json_twin_(json_twin), surface_(surface) {
  set_pre_routing_handler(
      [this](const httplib::Request& request, httplib::Response& response) { return Route(request, response); });
  Post(kTwinPath, [this](const httplib::Request& request, httplib::Response& response) { Twin(request, response); });
  set_exception_handler([](const httplib::Request&, httplib::Response& response, const std::exception_ptr&) {
    SetError(500, absl::StatusCode::kInternal, "internal error", response);
  });
  // What the library itself refuses gets a body too.
  set_error_handler([](const httplib::Request&, httplib::Response& response) {
    if (!response.body.empty()) return;
    SetError(response.status, CodeOfHttp(response.status),
             absl::StrCat("the request was refused with status ", response.status), response);
  });
  set_default_headers({{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}});
  // Only told to clients; HttpListener and AnswerOne are what holds to it.
  set_keep_alive_timeout(kMaxHttpIdleNs / kNsPerSecond);
  set_keep_alive_max_count(kMaxHttpRequestsPerConnection);
  set_payload_max_length(kMaxMessageBytes);
}

bool Routes::AnswerOne(HttpConnection& connection) {
  const bool last = connection.BeginRequest() >= kMaxHttpRequestsPerConnection;
  bool closed = last;
  const auto headers_read = [&](httplib::Request& request) {
    // A list of a thousand overlapping ranges would make a small request a huge answer.
    request.headers.erase("Range");
    request.ranges.clear();
    // A body whose end is not plain never ends: the connection is closed after the answer.
    const bool no_body = (request.method == "GET" || request.method == "HEAD") &&
                         !request.has_header("Content-Length") && !request.has_header("Transfer-Encoding");
    connection.HeadersEnd(no_body ? 0 : BodyBytes(request).value_or(std::numeric_limits<std::uint32_t>::max()));
  };
  bool answered = false;
  try {
    answered = process_request(connection, last, closed, headers_read);
  } catch (...) {
    // Thrown while parsing or writing, by the library, or for want of memory: this connection is lost, no other.
  }
  return answered && !closed && connection.RequestConsumed();
}

httplib::Server::HandlerResponse Routes::Route(const httplib::Request& request, httplib::Response& response) const {
  if (json_twin_ && request.path == kTwinPath) {
    if (request.method != "POST") {
      response.set_header("Allow", "POST");
      SetError(405, absl::StatusCode::kUnimplemented, "use POST", response);
      return HandlerResponse::Handled;
    }
    return RefuseTwin(request, response) ? HandlerResponse::Handled : HandlerResponse::Unhandled;
  }
  for (const Page& page : kPages) {
    if (request.path != page.path) continue;
    if (request.method != page.method && request.method != "HEAD") {
      response.set_header("Allow", "GET, HEAD");
      SetError(405, absl::StatusCode::kUnimplemented, "use GET", response);
    } else {
      (this->*page.answer)(response);
    }
    return HandlerResponse::Handled;
  }
  SetError(404, absl::StatusCode::kNotFound, "nothing is here; GET / lists what is", response);
  return HandlerResponse::Handled;
}

void Routes::Readyz(httplib::Response& response) const {
  const std::vector<std::string> reasons = surface_.readiness.Reasons();
  response.status = reasons.empty() ? 200 : 503;
  const auto& information = surface_.information;
  response.set_content(ReadinessJson(reasons, information ? information() : std::vector<std::string>()), kJson);
}

void Routes::MetricsPage(httplib::Response& response) const {
  response.set_content(ExpositionText(surface_.metrics), "text/plain; version=0.0.4; charset=utf-8");
}

void Routes::Twin(const httplib::Request& request, httplib::Response& response) const {
  const HttpAnswer answer = AnswerShouldAllow(
      request.body,
      {.engine = surface_.engine, .latency = surface_.latency, .counters = surface_.counters, .time = surface_.time});
  response.status = answer.status;
  for (const auto& [name, value] : answer.fields) response.set_header(name, value);
  response.set_content(answer.body, kJson);
}

std::string WithPort(const ListenAddress& address, int port) {
  const bool v6 = absl::StrContains(address.host, ':');
  return absl::StrCat(v6 ? "[" : "", address.host, v6 ? "]:" : ":", port);
}

}  // namespace

class OpsServer::Impl {
 public:
  Impl(bool json_twin, const OpsSurface& surface) : routes(json_twin, surface) {}

  Routes routes;
  std::unique_ptr<HttpListener> listener;  // destroyed first: its threads use the routes
  std::string address;
};

absl::StatusOr<std::unique_ptr<OpsServer>> OpsServer::Start(const ListenAddress& address, bool json_twin,
                                                            const OpsSurface& surface) {
  auto impl = std::make_unique<Impl>(json_twin, surface);
  Routes& routes = impl->routes;
  auto listener = HttpListener::Start(
      address, [&routes](HttpConnection& connection) { return routes.AnswerOne(connection); }, surface.log);
  if (!listener.ok()) return listener.status();
  impl->listener = *std::move(listener);
  impl->address = WithPort(address, impl->listener->port());
  return std::unique_ptr<OpsServer>(new OpsServer(std::move(impl)));
}

OpsServer::OpsServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
OpsServer::~OpsServer() { Stop(); }
const std::string& OpsServer::address() const { return impl_->address; }
int OpsServer::port() const { return impl_->listener->port(); }
void OpsServer::Stop() { impl_->listener->Stop(); }

}  // namespace ebbgate

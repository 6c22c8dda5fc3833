#include "server/service/json_twin.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "ebbgate/v1/rate_limiter.pb.h"
#include "google/rpc/status.pb.h"
#include "server/service/call_codec.h"
#include "server/service/error_details.h"

namespace ebbgate {
namespace {

// What callers are told to wait when Ebbgate itself cannot answer.
constexpr char kUnavailableRetrySeconds[] = "1";

std::string ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  // `"allowed": false` is worth saying.
  options.always_print_primitive_fields = true;
  options.add_whitespace = false;
  std::string json;
  // Fails only for text that is not UTF-8, which neither parsing nor the engine lets through.
  if (!google::protobuf::util::MessageToJsonString(message, &json, options).ok()) return "{}\n";
  json += '\n';
  return json;
}

int HttpStatus(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
      return 400;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

// What the parser complains of, without the piece of the body that it shows below: that may be no text at all.
std::string FirstLine(absl::string_view complaint) {
  std::string line(complaint.substr(0, complaint.find('\n')));
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return !absl::ascii_isprint(c); }, '?');
  return line;
}

HttpAnswer AnswerError(const CallError& error) {
  google::rpc::Status status;
  ToRpcStatus(error, "", status);
  HttpAnswer answer{.status = HttpStatus(error.code()), .fields = {}, .body = ToJson(status)};
  if (answer.status == 503) answer.fields.emplace_back("Retry-After", kUnavailableRetrySeconds);
  return answer;
}

// As a string of RFC 8941, or false: those hold printable ASCII only, and names may hold more.
bool AppendQuoted(absl::string_view name, std::string& out) {
  if (!std::all_of(name.begin(), name.end(), [](unsigned char c) { return absl::ascii_isprint(c); })) return false;
  out += '"';
  for (const char c : name) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  out += '"';
  return true;
}

bool IsRefused(const ChargeAnswer& charge) {
  return charge.reason == Reason::kQuotaExceeded || charge.reason == Reason::kCostExceedsCapacity;
}

// Of several charges to one limit the field has room for one: the one that was refused, else with the least left.
bool MatchesLess(const ChargeAnswer& a, const ChargeAnswer& b) {
  if (IsRefused(a) != IsRefused(b)) return IsRefused(a);
  return a.remaining < b.remaining;
}

// RateLimit-Policy: "api-user";q=4      the quota
// RateLimit: "api-user";r=0;t=1         what is left of it, and the seconds until there is more
void AddRateLimitFields(const CallRequest& call, const CallAnswer& decision, HttpAnswer& answer) {
  std::string policy;
  std::string state;
  for (std::size_t i = 0; i < call.charges.size(); ++i) {
    const absl::string_view limit = call.charges[i].limit;
    const ChargeAnswer* shown = &decision.charges[i];
    bool first = true;
    for (std::size_t j = 0; j < call.charges.size(); ++j) {
      if (call.charges[j].limit != limit) continue;
      if (j < i) first = false;
      if (MatchesLess(decision.charges[j], *shown)) shown = &decision.charges[j];
    }
    std::string name;
    if (!first || !AppendQuoted(limit, name)) continue;
    const char* const comma = policy.empty() ? "" : ", ";
    absl::StrAppend(&policy, comma, name, ";q=", shown->capacity);
    absl::StrAppend(&state, comma, name, ";r=", shown->remaining);
    const std::int64_t wait_ns = shown->retry_after_ns != kNoWait ? shown->retry_after_ns : shown->reset_after_ns;
    absl::StrAppend(&state, ";t=", wait_ns == 0 ? 0 : RetryAfterSeconds(wait_ns));
  }
  if (policy.empty()) return;
  answer.fields.emplace_back("RateLimit-Policy", std::move(policy));
  answer.fields.emplace_back("RateLimit", std::move(state));
}

HttpAnswer AnswerDecision(CallCodec& codec) {
  const CallAnswer& decision = codec.answer();
  const absl::string_view bytes = codec.Encode();
  v1::ShouldAllowResponse response;
  response.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  HttpAnswer answer{.status = decision.allowed ? 200 : 429, .fields = {}, .body = ToJson(response)};
  if (!decision.allowed && decision.retry_after_ns != kNoWait) {
    answer.fields.emplace_back("Retry-After", absl::StrCat(RetryAfterSeconds(decision.retry_after_ns)));
  }
  AddRateLimitFields(codec.call(), decision, answer);
  return answer;
}

}  // namespace

HttpAnswer AnswerShouldAllow(absl::string_view body, const TwinParts& parts) {
  parts.counters.CallStarted(Method::kHttpShouldAllow);
  const auto fail = [&](const CallError& error) {
    parts.counters.CountError(error.reason);
    parts.counters.CallEnded(Method::kHttpShouldAllow, error.code());
    return AnswerError(error);
  };

  v1::ShouldAllowRequest request;
  const auto parsed =
      google::protobuf::util::JsonStringToMessage(google::protobuf::StringPiece(body.data(), body.size()), &request);
  if (!parsed.ok()) {
    const absl::string_view why(parsed.message().data(), parsed.message().size());
    return fail(
        {ErrorReason::kMalformed, "", absl::StrCat("the body is not a ShouldAllowRequest in JSON: ", FirstLine(why))});
  }

  // From here on, the same way as over gRPC.
  const std::string bytes = request.SerializeAsString();
  CallCodec codec;
  if (const CallFault fault = codec.Decode(bytes)) return fail(*fault);
  const CallAnswer& decision = codec.answer();
  const std::int64_t begin_ns = parts.time.MonotonicNs();
  parts.engine.Decide(codec.call(), codec.answer());
  parts.latency.Record(parts.time.MonotonicNs() - begin_ns);
  if (decision.error != nullptr) return fail(*decision.error);
  parts.counters.CallEnded(Method::kHttpShouldAllow, absl::StatusCode::kOk);
  return AnswerDecision(codec);
}

std::string ErrorJson(absl::StatusCode code, absl::string_view message) {
  google::rpc::Status status;
  status.set_code(static_cast<int>(code));
  status.set_message(std::string(message));
  return ToJson(status);
}

std::int64_t RetryAfterSeconds(std::int64_t ns) {
  return std::max<std::int64_t>(1, ns / kNsPerSecond + (ns % kNsPerSecond != 0 ? 1 : 0));
}

}  // namespace ebbgate

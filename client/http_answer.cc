#include "client/http_answer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace ebbgate::client {
namespace {

// The charges to tell of: each limit once (of several charges to one, the one with the least left), in order.
std::vector<const ChargeAnswer*> Policies(const Answer& answer) {
  std::vector<const ChargeAnswer*> chosen;
  for (const ChargeAnswer& charge : answer.charges) {
    if (charge.reason == Reason::kShadowed) continue;
    const auto same = std::find_if(chosen.begin(), chosen.end(),
                                   [&](const ChargeAnswer* other) { return other->limit == charge.limit; });
    if (same == chosen.end()) {
      chosen.push_back(&charge);
    } else if (charge.remaining < (*same)->remaining) {
      *same = &charge;
    }
  }
  return chosen;
}

const ChargeAnswer& Tightest(const std::vector<const ChargeAnswer*>& charges) {
  const auto marked = std::find_if(charges.begin(), charges.end(), [](const auto* charge) { return charge->tightest; });
  return marked == charges.end() ? *charges.front() : **marked;
}

// Of a charge that was refused, until it would pass, so that the field and Retry-After name one moment, as the draft
// asks; otherwise until all is there again.
std::int64_t ResetSeconds(const ChargeAnswer& charge) {
  if (charge.retry_after.has_value()) return std::max<std::int64_t>(1, WholeSecondsUp(*charge.retry_after));
  return WholeSecondsUp(charge.reset_after);
}

}  // namespace

std::int64_t WholeSecondsUp(absl::Duration length) {
  return absl::ToInt64Seconds(absl::Ceil(length, absl::Seconds(1)));
}

std::string StructuredString(absl::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += {'\\', c};
    } else if (c >= ' ' && c <= '~') {
      result.push_back(c);
    } else {
      absl::StrAppendFormat(&result, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return result + "\"";
}

HttpAnswer ToHttp(const Answer& answer) {
  HttpAnswer http;
  http.status = answer.allowed ? 200 : 429;
  if (!answer.allowed && answer.retry_after.has_value()) {
    const std::int64_t seconds = std::max<std::int64_t>(1, WholeSecondsUp(*answer.retry_after));
    http.fields.emplace_back("Retry-After", absl::StrCat(seconds));
  }
  const std::vector<const ChargeAnswer*> charges = Policies(answer);
  if (charges.empty()) return http;
  std::vector<std::string> policies, states;
  for (const ChargeAnswer* charge : charges) {
    const std::string name = StructuredString(charge->limit);
    policies.push_back(absl::StrCat(name, ";q=", charge->capacity));
    states.push_back(absl::StrCat(name, ";r=", charge->remaining, ";t=", ResetSeconds(*charge)));
  }
  http.fields.emplace_back("RateLimit-Policy", absl::StrJoin(policies, ", "));
  http.fields.emplace_back("RateLimit", absl::StrJoin(states, ", "));
  const ChargeAnswer& tightest = Tightest(charges);
  http.fields.emplace_back("X-RateLimit-Limit", absl::StrCat(tightest.capacity));
  http.fields.emplace_back("X-RateLimit-Remaining", absl::StrCat(tightest.remaining));
  http.fields.emplace_back("X-RateLimit-Reset", absl::StrCat(ResetSeconds(tightest)));
  return http;
}

}  // namespace ebbgate::client

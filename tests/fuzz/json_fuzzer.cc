// The JSON twin of ShouldAllow, given any body: it answers with one of its codes, in JSON, and counts the call once.
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "server/limiter/manual_time.h"
#include "server/service/json_twin.h"

namespace ebbgate {
namespace {

void Expect(bool holds, const char* what, const HttpAnswer& answer) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\nstatus %d, body %s\n", what, answer.status, answer.body.c_str());
  std::abort();
}

// Few keys and little time, so that the fuzzer finds full stores and empty buckets too.
struct Twin {
  ManualTime time{1'793'512'020'000'000'000, 1'000};
  Engine engine{EngineOptions{.max_keys = 200}, time};
  LatencyRecorder latency;
  ServiceCounters counters;
  std::uint64_t calls = 0;

  Twin() {
    Limit bucket;
    bucket.name = "api-user";
    bucket.parameters.capacity = FromTokens(4);
    bucket.parameters.refill = {.tokens = FromTokens(2), .per_ns = kNsPerSecond};
    Limit shadow = bucket;
    shadow.name = "s";
    shadow.shadow = true;
    engine.InstallLimits({bucket, shadow});
  }
};

bool IsHarmless(absl::string_view field) {
  for (const unsigned char c : field) {
    if (!absl::ascii_isprint(c)) return false;
  }
  return true;
}

void Check(const HttpAnswer& answer, Twin& twin) {
  switch (answer.status) {
    case 200:
    case 400:
    case 404:
    case 429:
    case 503:
      break;
    default:
      Expect(false, "the code is one of those documented", answer);
  }
  google::protobuf::Struct object;
  Expect(google::protobuf::util::JsonStringToMessage(answer.body, &object).ok(), "the body is JSON", answer);
  Expect(object.fields().count(answer.status == 200 || answer.status == 429 ? "allowed" : "code") == 1,
         "the body is an answer or an error", answer);
  for (const auto& [name, value] : answer.fields) Expect(IsHarmless(value), "fields hold printable ASCII", answer);

  const ServiceCounters::Snapshot counted = twin.counters.Read();
  constexpr std::size_t kMethod = static_cast<std::size_t>(Method::kHttpShouldAllow);
  std::uint64_t ended = 0;
  for (const std::uint64_t n : counted.ended[kMethod]) ended += n;
  Expect(ended == ++twin.calls && counted.in_flight[kMethod] == 0, "each call is counted once", answer);
}

}  // namespace
}  // namespace ebbgate

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static ebbgate::Twin twin;
  twin.time.Advance(1'000'000);
  twin.engine.Maintain();
  const void* const bytes = data;
  const absl::string_view body(static_cast<const char*>(bytes), size);
  ebbgate::Check(
      ebbgate::AnswerShouldAllow(
          body, {.engine = twin.engine, .latency = twin.latency, .counters = twin.counters, .time = twin.time}),
      twin);
  return 0;
}

// What a run of the load generator does.
#ifndef EBBGATE_CLIENT_LOAD_OPTIONS_H_
#define EBBGATE_CLIENT_LOAD_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "client/tls_files.h"

namespace ebbgate::client {

enum class LoadMode { kUnary, kBatch, kStream };
enum class KeyDistribution { kUniform, kZipf, kHot };
// kYardstick: the echo server of tests/bench, driven by the same loop with the same bytes.
enum class LoadTarget { kEbbgate, kYardstick };

struct LoadOptions {
  std::string address;
  std::optional<TlsFiles> tls;
  LoadTarget target = LoadTarget::kEbbgate;

  LoadMode mode = LoadMode::kUnary;
  // Decisions in one call, for kBatch and kStream.
  int batch = 100;

  // Open loop: calls started each second, whether or not earlier ones are answered. 0: closed loop, `outstanding` calls
  // are kept in flight. In the open loop `outstanding` bounds the calls in flight; the time that a call waits for a
  // place counts as its latency.
  double rate = 0;
  int outstanding = 64;

  std::string limit;
  std::optional<std::int64_t> cost;
  std::int64_t keys = 10'000;
  KeyDistribution distribution = KeyDistribution::kUniform;
  // This share of the decisions names `deny_limit` instead: one that is exhausted makes a known share of denials.
  double deny_share = 0;
  std::string deny_limit;

  // The run ends after `duration`, or with the last of `calls` calls if set.
  absl::Duration duration = absl::Seconds(10);
  std::int64_t calls = 0;
  int threads = 1;
  int connections = 1;
  // To connect, and for what is in flight at the end.
  absl::Duration timeout = absl::Seconds(5);
  // Whose CPU time to measure; 0: nobody's.
  int server_pid = 0;
};

}  // namespace ebbgate::client

#endif  // EBBGATE_CLIENT_LOAD_OPTIONS_H_

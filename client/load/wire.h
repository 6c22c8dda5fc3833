// Requests written and answers counted without message objects, so that the generator costs little beside the server.
//
// Only what load needs of the protobuf wire format; tests hold it against the generated messages.
#ifndef EBBGATE_CLIENT_LOAD_WIRE_H_
#define EBBGATE_CLIENT_LOAD_WIRE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/random/random.h"
#include "absl/strings/string_view.h"
#include "client/load/options.h"

namespace ebbgate::client {

// Picks keys by a distribution. Not thread-safe.
class KeyPicker {
 public:
  KeyPicker(KeyDistribution distribution, std::int64_t keys);
  // In [0, keys).
  std::int64_t Next();

 private:
  const KeyDistribution distribution_;
  const std::int64_t keys_;
  absl::InsecureBitGen random_;
  absl::zipf_distribution<std::int64_t> zipf_;
};

// Writes requests with ever new keys into one buffer. Not thread-safe.
class RequestWriter {
 public:
  explicit RequestWriter(const LoadOptions& options);

  // The next message: a ShouldAllowRequest, a ShouldAllowBatchRequest or an EchoMessage. Valid until the next call.
  absl::string_view Next();

 private:
  // A serialized ShouldAllowRequest and where the digits of its key stand.
  struct Template {
    std::string bytes;
    std::size_t digits_at = 0;
  };

  Template MakeTemplate(absl::string_view limit, const LoadOptions& options) const;
  void AppendCall();

  const bool in_batch_;
  const int calls_;
  const double deny_share_;
  KeyPicker keys_;
  absl::InsecureBitGen random_;
  const Template usual_;
  const Template denied_;
  std::string message_;
};

struct AnswerCounts {
  std::int64_t allowed = 0;
  std::int64_t denied = 0;
  std::int64_t errors = 0;
};

// Counts a ShouldAllowResponse or ShouldAllowBatchResponse. What cannot be read counts as an error.
AnswerCounts CountResponse(absl::string_view message);
AnswerCounts CountBatchResponse(absl::string_view message);

}  // namespace ebbgate::client

#endif  // EBBGATE_CLIENT_LOAD_WIRE_H_

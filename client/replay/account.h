// Who was admitted how much: an EnvelopeCheck for each key of a case.
#ifndef EBBGATE_CLIENT_REPLAY_ACCOUNT_H_
#define EBBGATE_CLIENT_REPLAY_ACCOUNT_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "client/replay/envelope.h"
#include "server/engine/call.h"
#include "server/limiter/parameters.h"

namespace ebbgate::replay {

// Not thread-safe. Follows the limits by itself, overrides included, so that a bucket given wrong parameters is seen.
class Account {
 public:
  explicit Account(const std::vector<Limit>& limits) : limits_(limits) {}

  // Enters what a call was charged; returns a line for each breach of **Envelope**.
  std::vector<std::string> Take(const CallRequest& call, const CallAnswer& answer, std::int64_t at_ns);

  void Reload(const std::vector<Limit>& limits, std::int64_t at_ns);

 private:
  using BucketName = std::pair<std::string, std::string>;

  const Limit* Find(absl::string_view name) const;

  std::vector<Limit> limits_;
  std::map<BucketName, EnvelopeCheck> checks_;
};

// The parameters of a key: an exact override, else the first pattern that matches, else the limit's own.
const Parameters& ParametersOf(const Limit& limit, absl::string_view key);

}  // namespace ebbgate::replay

#endif  // EBBGATE_CLIENT_REPLAY_ACCOUNT_H_

// `check LIMIT KEY [--cost N] --and LIMIT KEY [--cost N] ...`, and `reserve` alike: a grammar of groups that a flag
// parser does not know. What follows an --and is cut out here, and the rest is left to the parser.
#ifndef EBBGATE_CLIENT_CLI_SPLIT_CHARGES_H_
#define EBBGATE_CLIENT_CLI_SPLIT_CHARGES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/client.h"

namespace ebbgate::client {

struct SplitArguments {
  std::vector<std::string> rest;
  std::vector<Charge> charges;
};

// After each --and stand a limit and a key, then in any order --cost N of this charge and flags of the whole call. A
// limit or key that begins with "-" needs "--" before: `--and -- LIMIT KEY`. Without `check` or `reserve` before the
// first --and, all is rest. INVALID_ARGUMENT saying what is wrong.
absl::StatusOr<SplitArguments> SplitCharges(const std::vector<std::string>& args);

}  // namespace ebbgate::client

#endif  // EBBGATE_CLIENT_CLI_SPLIT_CHARGES_H_

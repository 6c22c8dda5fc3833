// Replays a case on the decision core with a clock moved by hand, and tells what differs.
//
// Beside what the steps expect, for every case:
//   * **Envelope** of each token_bucket and gcra key over all its admissions, by an account of its own (account.h):
//     reservations count at the time at which they may act, with what was finally settled;
//   * an answer's shape: a wait where one helps, none elsewhere (**Never**, **Honest wait**); amounts that add up.
//
// Thread-safe; each case gets an engine of its own.
#ifndef EBBGATE_CLIENT_REPLAY_REPLAYER_H_
#define EBBGATE_CLIENT_REPLAY_REPLAYER_H_

#include <string>
#include <vector>

#include "client/replay/case_file.h"

namespace ebbgate::replay {

struct Difference {
  int step = 0;  // from 1
  std::int64_t at_ns = 0;
  std::string field;
  std::string want;
  std::string got;
};

struct CaseResult {
  std::string name;
  std::vector<Difference> differences;
  std::int64_t decisions = 0;
};

CaseResult Replay(const Case& history);

}  // namespace ebbgate::replay

#endif  // EBBGATE_CLIENT_REPLAY_REPLAYER_H_

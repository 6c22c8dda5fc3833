// An answer held against what a step expects of it.
#ifndef EBBGATE_CLIENT_REPLAY_COMPARE_H_
#define EBBGATE_CLIENT_REPLAY_COMPARE_H_

#include <functional>
#include <string>

#include "client/replay/case_file.h"
#include "server/engine/call.h"

namespace ebbgate::replay {

using ReportDifference = std::function<void(std::string field, std::string want, std::string got)>;

// Calls `differ` for each named field that does not match, and for an answer that has a wait where none helps or none
// where one does. An error that is not expected differs.
void CompareAnswer(const Expectation& expect, const CallAnswer& answer, const ReportDifference& differ);
void CompareReservation(const Expectation& expect, const ReserveAnswer& answer, const ReportDifference& differ);
// Also for amounts that do not add up.
void CompareEnding(const Expectation& expect, const SettleAnswer& answer, const ReportDifference& differ);

// "ALLOWED", ...
absl::string_view Name(Reason reason);
// "settled", ...
absl::string_view Name(HoldState state);

}  // namespace ebbgate::replay

#endif  // EBBGATE_CLIENT_REPLAY_COMPARE_H_

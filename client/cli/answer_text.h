// Answers for people and for programs.
#ifndef EBBGATE_CLIENT_CLI_ANSWER_TEXT_H_
#define EBBGATE_CLIENT_CLI_ANSWER_TEXT_H_

#include <string>
#include <vector>

#include "client/client.h"
#include "client/json.h"

namespace ebbgate::client {

// "allowed   3 of 4 left, full in 500ms\n", and for several charges a line more each. Pre: one charge answer for each
// charge of the call.
std::string AnswerText(const Call& call, const Answer& answer);

// One charge: "3 of 4 left, full in 500ms". `wait` goes before its retry_after: "retry in".
std::string ChargeText(const ChargeAnswer& charge, absl::string_view wait);

// The member "charges" of an object. Pre: as many answers as charges.
void WriteCharges(const std::vector<Charge>& asked, const std::vector<ChargeAnswer>& answers, JsonWriter& json);

// One object on one line. Absent: what the answer does not have.
std::string AnswerJson(const Call& call, const Answer& answer);

}  // namespace ebbgate::client

#endif  // EBBGATE_CLIENT_CLI_ANSWER_TEXT_H_

// Answers for people and for programs.
#ifndef EBBGATE_CLIENT_CLI_ANSWER_TEXT_H_
#define EBBGATE_CLIENT_CLI_ANSWER_TEXT_H_

#include <string>

#include "client/client.h"

namespace ebbgate::client {

// "allowed   3 of 4 left, full in 500ms\n", and for several charges a line more each. Pre: one charge answer for each
// charge of the call.
std::string AnswerText(const Call& call, const Answer& answer);

// One object on one line. Absent: what the answer does not have.
std::string AnswerJson(const Call& call, const Answer& answer);

}  // namespace ebbgate::client

#endif  // EBBGATE_CLIENT_CLI_ANSWER_TEXT_H_

// What became of reservations, for people and for programs.
#ifndef EBBGATE_CLIENT_CLI_RESERVATION_TEXT_H_
#define EBBGATE_CLIENT_CLI_RESERVATION_TEXT_H_

#include <string>

#include "client/client.h"

namespace ebbgate::client {

// "granted   may start now; expires in 10m\n", with the id and the charges on lines of their own. Pre, here and below:
// one charge answer for each charge of the call.
std::string ReserveText(const ReserveCall& call, const ReserveAnswer& answer);
std::string ReserveJson(const ReserveCall& call, const ReserveAnswer& answer);

// "settled   37 of 50 spent, 13 given back\n", and for several charges a line more each.
std::string SettleText(const SettleAnswer& answer);
std::string SettleJson(const SettleAnswer& answer);

}  // namespace ebbgate::client

#endif  // EBBGATE_CLIENT_CLI_RESERVATION_TEXT_H_

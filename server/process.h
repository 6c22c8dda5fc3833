// One Ebbgate process from its options to its end: builds the parts in order, hands out references, serves until told
// to stop, and takes the parts down in the opposite order.
#ifndef EBBGATE_SERVER_PROCESS_H_
#define EBBGATE_SERVER_PROCESS_H_

#include "server/config/server_options.h"
#include "server/signals.h"

namespace ebbgate {

// Exit codes of the program, beside 0.
inline constexpr int kExitFailure = 1;
inline constexpr int kExitBadOptions = 2;

// Loads the limits and says on standard output what is wrong with them or that all is well. Returns the exit code.
int CheckConfig(const ServerOptions& options);

// Returns the exit code: 0 after an orderly stop. What prevents a start is said in one line on standard error.
int RunServer(const ServerOptions& options, const Signals& signals);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_PROCESS_H_

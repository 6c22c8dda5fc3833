// The whole command line `ebbgate` as a function, so that tests can call it.
#ifndef EBBGATE_CLIENT_CLI_APP_H_
#define EBBGATE_CLIENT_CLI_APP_H_

#include <ostream>
#include <string>
#include <vector>

namespace ebbgate::client {

// Runs one command; `args` without the program's name. Returns the exit code. Throws nothing.
int RunCommandLine(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);

}  // namespace ebbgate::client

#endif  // EBBGATE_CLIENT_CLI_APP_H_

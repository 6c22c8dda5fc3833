// ebbgated, the server.
#include <cstdlib>
#include <iostream>

#include "server/config/server_options.h"
#include "server/process.h"
#include "server/signals.h"

int main(int argc, char** argv) {
  const absl::StatusOr<ebbgate::ServerOptions> options =
      ebbgate::ParseServerOptions(argc, argv, [](const char* name) -> const char* { return std::getenv(name); });
  if (!options.ok()) {
    std::cerr << "ebbgated: " << options.status().message() << std::endl;
    return ebbgate::kExitBadOptions;
  }
  if (options->print_and_exit) {
    std::cout << *options->print_and_exit << std::flush;
    return 0;
  }
  if (options->check_config) return ebbgate::CheckConfig(*options);
  const ebbgate::Signals signals;
  return ebbgate::RunServer(*options, signals);
}

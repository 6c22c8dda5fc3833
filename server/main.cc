// ebbgated, the server.
#include <cstdlib>
#include <iostream>

#include "absl/synchronization/mutex.h"
#include "server/config/server_options.h"
#include "server/process.h"
#include "server/signals.h"

int main(int argc, char** argv) {
  // No thread has started that could change the environment meanwhile.
  const auto variable = [](const char* name) -> const char* {
    return std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  };
  const absl::StatusOr<ebbgate::ServerOptions> options = ebbgate::ParseServerOptions(argc, argv, variable);
  if (!options.ok()) {
    std::cerr << "ebbgated: " << options.status().message() << std::endl;
    return ebbgate::kExitBadOptions;
  }
  if (options->print_and_exit) {
    std::cout << *options->print_and_exit << std::flush;
    return 0;
  }
  if (options->check_config) return ebbgate::CheckConfig(*options);
  // Some distributions build Abseil so that each of gRPC's locks is checked for deadlocks, at 2 to 3 % of the time of a
  // call. Tests keep the check.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const ebbgate::Signals signals;
  return ebbgate::RunServer(*options, signals);
}

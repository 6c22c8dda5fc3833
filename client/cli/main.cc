#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "client/cli/app.h"

int main(int argc, char** argv) {
  // What gRPC logs by itself comes back as a status too, which is printed with more sense.
  // No thread has started that could read the environment meanwhile.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);  // NOLINT(concurrency-mt-unsafe)
  return ebbgate::client::RunCommandLine(std::vector<std::string>(argv + 1, argv + argc), std::cout, std::cerr);
}

// A machine whose time passes only while somebody sleeps, and whose randomness is told in advance.
#ifndef EBBGATE_TESTS_UNIT_CLIENT_FAKE_SURROUNDINGS_H_
#define EBBGATE_TESTS_UNIT_CLIENT_FAKE_SURROUNDINGS_H_

#include <vector>

#include "client/surroundings.h"

namespace ebbgate::client {

// For tests that call from one thread.
class FakeSurroundings final : public Surroundings {
 public:
  absl::Duration Now() override { return now; }
  void Sleep(absl::Duration length) override {
    slept.push_back(length);
    now += length;
  }
  // Bytes that differ from one time to the next where `byte` does not say what all of them are.
  bool RandomBytes(absl::Span<unsigned char> bytes) override {
    ++times_random;
    for (unsigned char& each : bytes) each = fixed ? byte : static_cast<unsigned char>(counter++);
    return has_randomness;
  }

  absl::Duration now = absl::Hours(7);
  std::vector<absl::Duration> slept;
  bool has_randomness = true;
  bool fixed = false;
  unsigned char byte = 0;
  int times_random = 0;

 private:
  unsigned counter = 1;
};

}  // namespace ebbgate::client

#endif  // EBBGATE_TESTS_UNIT_CLIENT_FAKE_SURROUNDINGS_H_

// What the client library asks of the machine: time, sleep, randomness. A test puts its own in ClientOptions.
#ifndef EBBGATE_CLIENT_SURROUNDINGS_H_
#define EBBGATE_CLIENT_SURROUNDINGS_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "absl/types/span.h"

namespace ebbgate::client {

// Thread-safe.
class Surroundings {
 public:
  virtual ~Surroundings() = default;

  // Time gone by since some moment; never runs back.
  virtual absl::Duration Now() = 0;
  // Returns when `length` has passed at the earliest.
  virtual void Sleep(absl::Duration length) = 0;
  // Fills `bytes` with what nobody can guess. False: there is no such source.
  virtual bool RandomBytes(absl::Span<unsigned char> bytes) = 0;
};

// The monotonic clock, a real sleep, and the kernel's randomness.
std::shared_ptr<Surroundings> RealSurroundings();

// 128 random bits in hexadecimal: an id for a call, as the library makes them. Empty if there is no randomness.
std::string NewRequestId(Surroundings& surroundings);

}  // namespace ebbgate::client

#endif  // EBBGATE_CLIENT_SURROUNDINGS_H_

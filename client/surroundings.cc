#include "client/surroundings.h"

#include <unistd.h>

#include <array>
#include <chrono>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"

namespace ebbgate::client {
namespace {

class Machine final : public Surroundings {
 public:
  absl::Duration Now() override { return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch()); }
  void Sleep(absl::Duration length) override {
    // A sleep ends early where the two clocks run at different speeds; time is what Now says.
    const absl::Duration until = Now() + length;
    for (absl::Duration left = length; left > absl::ZeroDuration(); left = until - Now()) absl::SleepFor(left);
  }
  bool RandomBytes(absl::Span<unsigned char> bytes) override { return getentropy(bytes.data(), bytes.size()) == 0; }
};

}  // namespace

std::shared_ptr<Surroundings> RealSurroundings() { return std::make_shared<Machine>(); }

std::string NewRequestId(Surroundings& surroundings) {
  std::array<unsigned char, 16> bits{};
  if (!surroundings.RandomBytes(absl::MakeSpan(bits))) return "";
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(bits.data()), bits.size()));
}

}  // namespace ebbgate::client

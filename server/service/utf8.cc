#include "server/service/utf8.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ebbgate {
namespace {

// Bytes of the sequence that begins at `at`, 0 if there is no valid one. Pre: the first byte is not ASCII.
std::size_t SequenceLength(const unsigned char* at, std::size_t left) {
  const unsigned char lead = at[0];
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || left < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((at[i] & 0xc0) != 0x80) return 0;
  }
  // The second byte is narrower where the first alone would allow an overlong form, a surrogate or too large a value.
  if (lead == 0xe0 && at[1] < 0xa0) return 0;
  if (lead == 0xed && at[1] > 0x9f) return 0;
  if (lead == 0xf0 && at[1] < 0x90) return 0;
  if (lead == 0xf4 && at[1] > 0x8f) return 0;
  return length;
}

}  // namespace

bool IsUtf8(absl::string_view text) {
  const auto* at = reinterpret_cast<const unsigned char*>(text.data());
  std::size_t left = text.size();
  while (left > 0) {
    std::size_t step = 1;
    std::uint64_t eight;
    if (left >= sizeof(eight) && (std::memcpy(&eight, at, sizeof(eight)), (eight & 0x8080808080808080) == 0)) {
      step = sizeof(eight);
    } else if (*at >= 0x80) {
      step = SequenceLength(at, left);
      if (step == 0) return false;
    }
    at += step;
    left -= step;
  }
  return true;
}

}  // namespace ebbgate

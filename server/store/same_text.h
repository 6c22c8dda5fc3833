// Whether two texts are equal, for texts that are mostly short: keys and names of limits.
#ifndef EBBGATE_SERVER_STORE_SAME_TEXT_H_
#define EBBGATE_SERVER_STORE_SAME_TEXT_H_

#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"

namespace ebbgate {

// The same as a == b, for less: a call of memcmp costs more than comparing a few words. Reads nothing beyond the texts.
inline bool SameText(absl::string_view a, absl::string_view b) {
  if (a.size() != b.size()) return false;
  const auto differs = [&]<typename Word>(Word, std::size_t at) {
    Word x, y;
    std::memcpy(&x, a.data() + at, sizeof(x));
    std::memcpy(&y, b.data() + at, sizeof(y));
    return x != y;
  };
  // Words from the front, and one that ends with the text.
  const std::size_t n = a.size();
  if (n >= sizeof(std::uint64_t)) {
    for (std::size_t at = 0; at + sizeof(std::uint64_t) < n; at += sizeof(std::uint64_t)) {
      if (differs(std::uint64_t{}, at)) return false;
    }
    return !differs(std::uint64_t{}, n - sizeof(std::uint64_t));
  }
  if (n >= sizeof(std::uint32_t)) {
    return !differs(std::uint32_t{}, 0) && !differs(std::uint32_t{}, n - sizeof(std::uint32_t));
  }
  return a == b;
}

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_STORE_SAME_TEXT_H_

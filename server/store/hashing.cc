#include "server/store/hashing.h"

#include <sodium/core.h>
#include <sodium/randombytes.h>

#include <cstdlib>

namespace ebbgate {

PlacementKey RandomPlacementKey() {
  if (sodium_init() < 0) std::abort();  // No source of randomness: nothing safe can be built on that.
  PlacementKey key;
  randombytes_buf(key.data(), key.size());
  return key;
}

PlacementKey DerivePlacementKey(const PlacementKey& process_key, std::uint32_t limit_id) {
  PlacementKey derived;
  for (std::uint32_t half = 0; half < 2; ++half) {
    const std::array<std::uint32_t, 2> input = {limit_id, half};
    crypto_shorthash(derived.data() + half * crypto_shorthash_BYTES,
                     reinterpret_cast<const unsigned char*>(input.data()), sizeof(input), process_key.data());
  }
  return derived;
}

}  // namespace ebbgate

// The two hashes of a bucket (**Distinct keys**).
//
// The ownership hash decides the slot, and by it the shard here and the owner in a cluster: fixed, versioned, equal on
// all nodes, fast. The placement hash decides where in a shard's table the key lies: keyed with bytes drawn when the
// process starts, so that nobody outside can aim many keys at one place. Neither joins limit and key into one string.
#ifndef EBBGATE_SERVER_STORE_HASHING_H_
#define EBBGATE_SERVER_STORE_HASHING_H_

#include <sodium/crypto_shorthash.h>
#include <xxhash.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"
#include "server/limiter/bounds.h"

namespace ebbgate {

// Version 1: XXH3-64 of the key, seeded with the XXH3-64 of the limit's name (itself seeded with the cluster's seed, 0
// until there is one); the slot is the top 14 bits. Changing anything here moves keys between nodes: make it version 2.
inline constexpr int kOwnershipHashVersion = 1;

inline std::uint64_t OwnershipSeed(absl::string_view limit, std::uint64_t cluster_seed = 0) {
  return XXH3_64bits_withSeed(limit.data(), limit.size(), cluster_seed);
}

inline std::uint32_t SlotOf(std::uint64_t ownership_seed, absl::string_view key) {
  static_assert(kSlots == 1u << 14);
  return static_cast<std::uint32_t>(XXH3_64bits_withSeed(key.data(), key.size(), ownership_seed) >> 50);
}

// Neighbouring slots share a shard, so that a slot lives whole in one.
inline std::uint32_t ShardOfSlot(std::uint32_t slot) { return slot / (kSlots / kShards); }

// A key for SipHash-2-4. One a process, from which one a limit is derived.
using PlacementKey = std::array<unsigned char, crypto_shorthash_KEYBYTES>;

// Drawn from the system's source of randomness.
PlacementKey RandomPlacementKey();
// For a limit by its number: SipHash of the number and 0, then 1, under the process's key.
PlacementKey DerivePlacementKey(const PlacementKey& process_key, std::uint32_t limit_id);

// About 18 ns for a short key.
inline std::uint64_t PlacementHash(const PlacementKey& limit_key, absl::string_view key) {
  std::uint64_t hash;
  static_assert(sizeof(hash) == crypto_shorthash_BYTES);
  crypto_shorthash(reinterpret_cast<unsigned char*>(&hash), reinterpret_cast<const unsigned char*>(key.data()),
                   key.size(), limit_key.data());
  return hash;
}

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_STORE_HASHING_H_

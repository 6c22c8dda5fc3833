// What the store keeps for one key: 64 bytes, one cache line, with the key itself where it is short.
#ifndef EBBGATE_SERVER_STORE_ENTRY_H_
#define EBBGATE_SERVER_STORE_ENTRY_H_

#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"
#include "server/limiter/bucket_state.h"
#include "server/store/same_text.h"

namespace ebbgate {

inline constexpr std::size_t kInlineKeyBytes = 20;

struct alignas(64) Entry {
  // The key, or a pointer to it on the heap when it is longer. First in the line, because memcmp reads 32 bytes where
  // it may, and would at the end of the line fetch the next one from memory: a third of the time of a decision.
  char key_storage[kInlineKeyBytes];
  std::uint32_t limit_id;
  // Index of the parameters that the state was written under, in the limits of `generation`.
  std::uint32_t policy;
  std::uint16_t key_bytes;
  // Low byte of the generation of limits; a reload brings all entries up to date before the next one may start, so two
  // generations at most are about.
  std::uint8_t generation;
  bool in_use : 1;
  bool has_promises : 1;  // which the shard keeps
  BucketState state;

  bool key_is_inline() const { return key_bytes <= kInlineKeyBytes; }
  char* heap_key() const {
    char* pointer;
    std::memcpy(&pointer, key_storage, sizeof(pointer));
    return pointer;
  }
  bool HasKey(absl::string_view other) const { return SameText(key(), other); }
  absl::string_view key() const { return {key_is_inline() ? key_storage : heap_key(), key_bytes}; }
};
static_assert(sizeof(Entry) == 64);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_STORE_ENTRY_H_

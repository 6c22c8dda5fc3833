// Limits made ready for deciding: names to numbers, keys to parameters, and how to bring old state along.
#ifndef EBBGATE_SERVER_ENGINE_LIMIT_TABLE_H_
#define EBBGATE_SERVER_ENGINE_LIMIT_TABLE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "server/limiter/bucket.h"
#include "server/limiter/moment.h"
#include "server/limiter/parameters.h"
#include "server/store/hashing.h"

namespace ebbgate {

// Parameters that some keys of a limit follow.
struct Policy {
  Parameters parameters;
  // Index in the limit's overrides; -1 for the limit's own parameters.
  int override_index = -1;
};

struct CompiledLimit {
  std::shared_ptr<const Limit> config;  // null: the number is free
  std::uint32_t id = 0;
  std::uint32_t base_policy = 0;  // the overrides' policies follow it
  // Removed from the file, but keys are still held: adding it again must find what they have spent.
  bool retired = false;
  // State is not forgotten before this (monotonic). After a capacity was lowered, a bucket can be full and still have
  // admitted more than its new capacity a moment ago; forgetting it, then raising the capacity, would mint tokens. Once
  // the old capacity has been refilled at the new rate, nothing is owed any more.
  std::int64_t keep_until_ns = std::numeric_limits<std::int64_t>::min();
  Microtokens owed = 0;  // that capacity, while keep_until_ns lies ahead
  std::uint64_t ownership_seed = 0;
  PlacementKey placement_key;
  absl::flat_hash_map<std::string, std::uint32_t> exact;        // key to policy
  std::vector<std::pair<std::string, std::uint32_t>> patterns;  // in the order of the file

  std::uint32_t PolicyFor(absl::string_view key) const;
};

// Immutable once made, but for `previous`. Shared by all threads.
class LimitTable {
 public:
  LimitTable() = default;

  // The successor of `before` with `limits` in force. `has_keys(id)` says whether state of a limit is still held; its
  // answer matters for limits that were retired before, which nobody can charge any more. `now_ns` is about now.
  static std::shared_ptr<LimitTable> Build(const std::shared_ptr<const LimitTable>& before, std::vector<Limit> limits,
                                           const PlacementKey& process_key, std::int64_t now_ns,
                                           const std::function<bool(std::uint32_t)>& has_keys);

  // The limit in force of that name, or null.
  const CompiledLimit* Find(absl::string_view name) const {
    const auto found = names_.find(name);
    return found == names_.end() ? nullptr : &by_id_[found->second];
  }
  // That, or else one of that name that was retired while keys of it are held; or null.
  const CompiledLimit* FindHeld(absl::string_view name) const;
  const CompiledLimit& limit(std::uint32_t id) const { return by_id_[id]; }
  // Numbers in use lie below this.
  std::uint32_t ids() const { return static_cast<std::uint32_t>(by_id_.size()); }
  const Policy& policy(std::uint32_t index) const { return policies_[index]; }
  std::uint64_t generation() const { return generation_; }
  const std::shared_ptr<const std::vector<Limit>>& limits() const { return limits_; }
  // Numbers that mean another limit than in the table before: their counts start anew.
  const std::vector<std::uint32_t>& reused_ids() const { return reused_ids_; }
  // Limits that were retired, and are given up because there are too many.
  const std::vector<std::string>& given_up() const { return given_up_; }

  // When it came in force; set once, with all shards locked.
  Moment installed_at;
  std::int64_t installed_at_wall_ns = 0;
  // The table that entries of the generation before refer to. Dropped when there are none left.
  mutable std::shared_ptr<const LimitTable> previous;

 private:
  void KeepIds(const LimitTable& before, const std::function<bool(std::uint32_t)>& has_keys);
  void Compile(CompiledLimit& limit, const PlacementKey& process_key);
  std::uint32_t FreeId(const LimitTable& before);

  std::uint64_t generation_ = 0;
  std::shared_ptr<const std::vector<Limit>> limits_ = std::make_shared<std::vector<Limit>>();
  std::vector<CompiledLimit> by_id_;
  absl::flat_hash_map<std::string, std::uint32_t> names_;
  std::vector<Policy> policies_;
  std::vector<std::uint32_t> reused_ids_;
  std::vector<std::string> given_up_;
};

// Whether two lists of limits are alike in everything, places in the file included.
bool SameLimits(const std::vector<Limit>& a, const std::vector<Limit>& b);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_ENGINE_LIMIT_TABLE_H_

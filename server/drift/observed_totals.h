// Adds up what reporters say they have seen, from cumulative totals such as a Prometheus counter carries.
//
// A process that reports is an instance of a reporter, and counts from a start. Of one start only the highest total
// matters: a report that is lost, repeated or overtaken by a later one changes nothing in the end. A restarted process
// has a new start, counted beside the old one; late reports of the old start are still told apart.
//
// A total counts in full if its start is no earlier than the moment from which its limit is watched. A process that was
// counting before that (Ebbgate restarted, the limit is new) counts from its first report on: what it saw earlier was
// admitted by somebody who is not asked any more. Starts that were forgotten (of silent instances, or too many of one)
// count from then on too if they are heard of again. So nothing is ever counted twice, and a sum never falls.
//
// Thread-safety: none; the owner has a lock. Bounded: reporters, instances, starts and totals, by bounds.h. Cost: a
// look into a hash table for each total.
#ifndef EBBGATE_SERVER_DRIFT_OBSERVED_TOTALS_H_
#define EBBGATE_SERVER_DRIFT_OBSERVED_TOTALS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/node_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/limiter/amount.h"

namespace ebbgate {

// The owner's number of a limit; small, and used again only after Forget.
using WatchedNumber = std::uint32_t;

struct ObservedTotal {
  WatchedNumber limit = 0;
  std::int64_t total = 0;
};

// What one instance has counted since its start.
struct InstanceReport {
  absl::string_view reporter;
  absl::string_view instance;
  std::int64_t start_wall_ns = 0;
  absl::Span<const ObservedTotal> totals;  // each limit once
};

class ObservedTotals {
 public:
  // Reports about a limit are taken from now on; `wall_ns` is now.
  void Watch(WatchedNumber limit, std::int64_t wall_ns);
  // All that is known of some limits, in one look at everything.
  void Forget(const absl::flat_hash_set<WatchedNumber>& limits);

  // Takes a whole report or, with RESOURCE_EXHAUSTED, nothing of it. Pre: its limits are watched, its totals are not
  // negative.
  absl::Status Add(const InstanceReport& report, std::int64_t now_ns);

  // Forgets instances that have been silent for long, and reporters without instances.
  void Age(std::int64_t now_ns);

  // Everything counted for a limit, by whomever.
  Uint128 Sum(WatchedNumber limit) const { return limits_[limit].sum; }
  // The part of each reporter that is not forgotten, by name: called with (reporter, sum).
  template <typename Told>
  void ForEachReporter(WatchedNumber limit, Told told) const {
    for (const auto& [name, reporter] : reporters_) {
      if (const auto found = reporter.sums.find(limit); found != reporter.sums.end()) told(name, found->second);
    }
  }

  std::size_t reporters() const { return reporters_.size(); }
  std::size_t instances() const { return instances_; }
  std::size_t totals() const { return totals_; }

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

  struct Counted {
    std::int64_t base = 0;  // not counted
    std::int64_t highest = 0;
  };
  struct Start {
    std::int64_t wall_ns = 0;
    absl::flat_hash_map<WatchedNumber, Counted> totals;
  };
  struct Instance {
    std::int64_t last_report_ns = 0;
    std::int64_t forgotten_start_ns = kNever;  // wall: the latest of the starts that were dropped
    std::vector<Start> starts;                 // the earliest first
  };
  struct Reporter {
    absl::node_hash_map<std::string, Instance> instances;
    absl::flat_hash_map<WatchedNumber, Uint128> sums;
  };
  struct Watched {
    std::int64_t since_wall_ns = 0;
    Uint128 sum = 0;
  };

  bool HasRoom(const InstanceReport& report) const;
  const Instance* FindInstance(const InstanceReport& report) const;
  // The start's entry, made if need be; null if the start is older than all that can be told apart.
  Start* FindStart(Instance& instance, std::int64_t start_wall_ns);
  bool CountsInFull(const Instance& instance, std::int64_t start_wall_ns, WatchedNumber limit) const;
  void Drop(const Start& start, std::int64_t& forgotten_start_ns);

  std::map<std::string, Reporter, std::less<>> reporters_;
  std::vector<Watched> limits_;
  std::int64_t forgotten_start_ns_ = kNever;  // wall: the latest start of instances that were forgotten whole
  std::size_t instances_ = 0;
  std::size_t totals_ = 0;
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_DRIFT_OBSERVED_TOTALS_H_

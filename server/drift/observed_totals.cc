#include "server/drift/observed_totals.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/limiter/bounds.h"

namespace ebbgate {

void ObservedTotals::Watch(WatchedNumber limit, std::int64_t wall_ns) {
  if (limit >= limits_.size()) limits_.resize(limit + std::size_t{1});
  limits_[limit] = {.since_wall_ns = wall_ns, .sum = 0};
}

void ObservedTotals::Forget(const absl::flat_hash_set<WatchedNumber>& limits) {
  if (limits.empty()) return;
  for (const WatchedNumber limit : limits) limits_[limit] = Watched();
  const auto forgotten = [&limits](const auto& entry) { return limits.contains(entry.first); };
  for (auto& [reporter_name, reporter] : reporters_) {
    absl::erase_if(reporter.sums, forgotten);
    for (auto& [instance_name, instance] : reporter.instances) {
      for (Start& start : instance.starts) {
        totals_ -= start.totals.size();
        absl::erase_if(start.totals, forgotten);
        totals_ += start.totals.size();
      }
    }
  }
}

const ObservedTotals::Instance* ObservedTotals::FindInstance(const InstanceReport& report) const {
  const auto reporter = reporters_.find(report.reporter);
  if (reporter == reporters_.end()) return nullptr;
  const auto instance = reporter->second.instances.find(report.instance);
  return instance == reporter->second.instances.end() ? nullptr : &instance->second;
}

bool ObservedTotals::HasRoom(const InstanceReport& report) const {
  if (reporters_.size() >= kMaxReporters && reporters_.find(report.reporter) == reporters_.end()) return false;
  const Instance* const instance = FindInstance(report);
  if (instance == nullptr && instances_ >= kMaxReportingInstances) return false;
  std::size_t added = report.totals.size();
  if (instance != nullptr) {
    const auto start = std::find_if(instance->starts.begin(), instance->starts.end(),
                                    [&](const Start& each) { return each.wall_ns == report.start_wall_ns; });
    if (start != instance->starts.end()) {
      for (const ObservedTotal& each : report.totals) added -= start->totals.contains(each.limit) ? 1 : 0;
    }
  }
  return added == 0 || totals_ + added <= kMaxObservedTotals;
}

absl::Status ObservedTotals::Add(const InstanceReport& report, std::int64_t now_ns) {
  if (!HasRoom(report)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "no room for another reporter, instance or total: there are ", reporters_.size(), " reporters, ", instances_,
        " instances and ", totals_, " totals; those that fall silent make room after an hour"));
  }
  Reporter& reporter = reporters_[std::string(report.reporter)];
  const auto [found, is_new] = reporter.instances.try_emplace(report.instance);
  Instance& instance = found->second;
  instances_ += is_new ? 1 : 0;
  instance.last_report_ns = now_ns;
  Start* const start = FindStart(instance, report.start_wall_ns);
  if (start == nullptr) return absl::OkStatus();
  for (const ObservedTotal& each : report.totals) {
    Uint128& sum = reporter.sums[each.limit];
    auto [entry, first] = start->totals.try_emplace(each.limit);
    Counted& counted = entry->second;
    if (first) {
      ++totals_;
      counted.base = CountsInFull(instance, start->wall_ns, each.limit) ? 0 : each.total;
      counted.highest = counted.base;
    }
    if (each.total <= counted.highest) continue;
    const Uint128 more = static_cast<Uint128>(each.total - counted.highest);
    counted.highest = each.total;
    sum += more;
    limits_[each.limit].sum += more;
  }
  return absl::OkStatus();
}

ObservedTotals::Start* ObservedTotals::FindStart(Instance& instance, std::int64_t start_wall_ns) {
  std::vector<Start>& starts = instance.starts;
  const auto is_before = [](const Start& start, std::int64_t wall_ns) { return start.wall_ns < wall_ns; };
  auto at = std::lower_bound(starts.begin(), starts.end(), start_wall_ns, is_before);
  if (at != starts.end() && at->wall_ns == start_wall_ns) return &*at;
  if (starts.size() >= kMaxStartsPerInstance) {
    if (at == starts.begin()) return nullptr;
    Drop(starts.front(), instance.forgotten_start_ns);
    starts.erase(starts.begin());
    at = std::lower_bound(starts.begin(), starts.end(), start_wall_ns, is_before);
  }
  return &*starts.insert(at, {.wall_ns = start_wall_ns, .totals = {}});
}

bool ObservedTotals::CountsInFull(const Instance& instance, std::int64_t start_wall_ns, WatchedNumber limit) const {
  return start_wall_ns >= limits_[limit].since_wall_ns && start_wall_ns > instance.forgotten_start_ns &&
         start_wall_ns > forgotten_start_ns_;
}

void ObservedTotals::Drop(const Start& start, std::int64_t& forgotten_start_ns) {
  totals_ -= start.totals.size();
  forgotten_start_ns = std::max(forgotten_start_ns, start.wall_ns);
}

void ObservedTotals::Age(std::int64_t now_ns) {
  for (auto reporter = reporters_.begin(); reporter != reporters_.end();) {
    auto& instances = reporter->second.instances;
    for (auto at = instances.begin(); at != instances.end();) {
      const Instance& instance = at->second;
      if (now_ns - instance.last_report_ns < kInstanceIdleNs) {
        ++at;
        continue;
      }
      for (const Start& start : instance.starts) Drop(start, forgotten_start_ns_);
      --instances_;
      instances.erase(at++);
    }
    reporter = instances.empty() ? reporters_.erase(reporter) : std::next(reporter);
  }
}

}  // namespace ebbgate

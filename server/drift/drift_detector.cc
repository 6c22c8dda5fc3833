#include "server/drift/drift_detector.h"

#include <algorithm>
#include <limits>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "server/limiter/bounds.h"

namespace ebbgate {
namespace {

// Limits looked at under one lock: reports come in on the threads that decide calls, and must not wait for a scrape.
constexpr std::size_t kLimitsPerLock = 256;

std::uint64_t Saturated(Uint128 value) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  return value > kMost ? kMost : static_cast<std::uint64_t>(value);
}

absl::Status Invalid(absl::string_view field, absl::string_view reason) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", reason));
}

// Names become labels and cells of tables, and are compared byte by byte: what looks alike is alike.
absl::Status CheckName(absl::string_view field, absl::string_view name, std::size_t max_bytes) {
  if (name.empty()) return Invalid(field, "must not be empty");
  if (name.size() > max_bytes) {
    return Invalid(field, absl::StrCat("must be at most ", max_bytes, " bytes, not ", name.size()));
  }
  for (const char c : name) {
    if (c <= ' ' || c > '~') return Invalid(field, "must be of visible ASCII characters, without blanks");
  }
  return absl::OkStatus();
}

absl::Status CheckHead(const ObservedReport& report) {
  if (absl::Status status = CheckName("reporter", report.reporter, kMaxReporterNameBytes); !status.ok()) return status;
  if (absl::Status status = CheckName("instance", report.instance, kMaxInstanceNameBytes); !status.ok()) return status;
  if (report.start_wall_ns <= 0) return Invalid("start_time", "must be after 1970-01-01 00:00 UTC");
  if (report.totals.empty()) return Invalid("totals", "must hold at least one total");
  if (report.totals.size() > kMaxTotalsPerReport) {
    return Invalid("totals",
                   absl::StrCat("must hold at most ", kMaxTotalsPerReport, " totals, not ", report.totals.size()));
  }
  return absl::OkStatus();
}

}  // namespace

// --- Limits ----------------------------------------------------------------------------------------------------------

WatchedNumber DriftDetector::Add(const Limit& limit, std::int64_t wall_ns) {
  WatchedNumber number = static_cast<WatchedNumber>(watched_.size());
  if (free_.empty()) {
    watched_.emplace_back();
  } else {
    number = free_.back();
    free_.pop_back();
  }
  watched_[number] = Watched();
  watched_[number].limit = limit.name;
  watched_[number].window = DriftWindow(limit.drift);
  numbers_.emplace(limit.name, number);
  totals_.Watch(number, wall_ns);
  return number;
}

void DriftDetector::Watch(const std::vector<Limit>& limits, std::int64_t wall_ns) {
  const MutexLock lock(mutex_);
  absl::flat_hash_set<absl::string_view> kept;
  for (const Limit& limit : limits) kept.insert(limit.name);
  absl::flat_hash_set<WatchedNumber> gone;
  for (const WatchedNumber number : order_) {
    Watched& watched = watched_[number];
    if (kept.contains(watched.limit)) continue;
    gone.insert(number);
    numbers_.erase(watched.limit);
    watched = Watched();
    free_.push_back(number);
  }
  totals_.Forget(gone);
  ++watches_;
  order_.clear();
  for (const Limit& limit : limits) {
    const auto found = numbers_.find(limit.name);
    const WatchedNumber number = found != numbers_.end() ? found->second : Add(limit, wall_ns);
    Watched& watched = watched_[number];
    if (!(watched.window.settings() == limit.drift)) watched.window = DriftWindow(limit.drift);
    order_.push_back(number);
  }
}

// --- Reports ---------------------------------------------------------------------------------------------------------

absl::Status DriftDetector::Resolve(const ObservedReport& report, std::vector<ObservedTotal>& totals) const {
  absl::flat_hash_set<WatchedNumber> named;
  for (std::size_t i = 0; i < report.totals.size(); ++i) {
    const ObservedReport::Total& each = report.totals[i];
    const auto field = [&](absl::string_view name) { return absl::StrCat("totals[", i, "].", name); };
    if (each.limit.empty()) return Invalid(field("limit"), "must not be empty");
    if (each.limit.size() > kMaxLimitNameBytes) {
      return Invalid(field("limit"), absl::StrCat("must be at most ", kMaxLimitNameBytes, " bytes"));
    }
    if (each.total < 0) return Invalid(field("total"), "must not be negative");
    if (each.total > kMaxObservedTotal) {
      return Invalid(field("total"), absl::StrCat("must be at most ", kMaxObservedTotal));
    }
    const auto found = numbers_.find(each.limit);
    if (found == numbers_.end()) {
      return absl::NotFoundError(absl::StrCat(field("limit"), ": no limit of this name is configured"));
    }
    if (!named.insert(found->second).second) return Invalid(field("limit"), "is named twice in this report");
    totals.push_back({.limit = found->second, .total = each.total});
  }
  return absl::OkStatus();
}

absl::Status DriftDetector::Report(const ObservedReport& report, std::int64_t now_ns) {
  if (absl::Status status = CheckHead(report); !status.ok()) return status;
  std::vector<ObservedTotal> totals;
  totals.reserve(report.totals.size());
  const MutexLock lock(mutex_);
  if (absl::Status status = Resolve(report, totals); !status.ok()) return status;
  absl::Status added = totals_.Add({.reporter = report.reporter,
                                    .instance = report.instance,
                                    .start_wall_ns = report.start_wall_ns,
                                    .totals = totals},
                                   now_ns);
  if (!added.ok()) return added;
  for (const ObservedTotal& each : totals) {
    Watched& watched = watched_[each.limit];
    watched.news = true;
    watched.last_report_ns = std::max(watched.last_report_ns.value_or(now_ns), now_ns);
  }
  news_.store(true, std::memory_order_release);
  return absl::OkStatus();
}

// --- Judging ---------------------------------------------------------------------------------------------------------

std::vector<DriftChange> DriftDetector::Evaluate(absl::Span<const AdmittedCost> admitted, std::int64_t now_ns) {
  std::vector<DriftChange> changes;
  const MutexLock lock(mutex_);
  // Without figures nothing is judged, and the news stay news.
  if (!admitted.empty()) news_.store(false, std::memory_order_release);
  totals_.Age(now_ns);
  for (const AdmittedCost& each : admitted) {
    const auto found = numbers_.find(each.limit);
    if (found == numbers_.end()) continue;
    Watched& watched = watched_[found->second];
    if (!std::exchange(watched.news, false)) continue;
    watched.window.Add(now_ns,
                       {.admitted = each.cost, .given_back = each.given_back, .received = totals_.Sum(found->second)});
  }
  for (const WatchedNumber number : order_) {
    Watched& watched = watched_[number];
    watched.window.Age(now_ns);
    const DriftState state = watched.window.reading().state;
    if (state == watched.told) continue;
    changes.push_back({.now = Describe(number), .before = std::exchange(watched.told, state)});
  }
  return changes;
}

// --- Looking in ------------------------------------------------------------------------------------------------------

LimitDrift DriftDetector::Describe(WatchedNumber number) const {
  const Watched& watched = watched_[number];
  LimitDrift drift{.limit = watched.limit,
                   .settings = watched.window.settings(),
                   .reading = watched.window.reading(),
                   .last_report_ns = watched.last_report_ns,
                   .received = Saturated(totals_.Sum(number)),
                   .reporters = {}};
  totals_.ForEachReporter(number, [&](const std::string& reporter, Uint128 sum) {
    drift.reporters.emplace_back(reporter, Saturated(sum));
  });
  return drift;
}

std::vector<LimitDrift> DriftDetector::ReadIf(const std::function<bool(const Watched&)>& wanted) const {
  std::vector<LimitDrift> limits;
  std::uint64_t watch = 0;
  std::size_t at = 0;
  for (bool more = true; more;) {
    const MutexLock lock(mutex_);
    if (at == 0 || watch != watches_) {
      watch = watches_;
      at = 0;
      limits.clear();
    }
    const std::size_t end = std::min(order_.size(), at + kLimitsPerLock);
    for (; at < end; ++at) {
      if (wanted(watched_[order_[at]])) limits.push_back(Describe(order_[at]));
    }
    more = at < order_.size();
  }
  return limits;
}

std::vector<LimitDrift> DriftDetector::Read() const {
  return ReadIf([](const Watched&) { return true; });
}

std::vector<LimitDrift> DriftDetector::OutOfBounds() const {
  return ReadIf([](const Watched& watched) { return watched.window.reading().state != DriftState::kOk; });
}

std::optional<LimitDrift> DriftDetector::Read(absl::string_view limit) const {
  const MutexLock lock(mutex_);
  const auto found = numbers_.find(limit);
  if (found == numbers_.end()) return std::nullopt;
  return Describe(found->second);
}

DriftCounts DriftDetector::Counts() const {
  const MutexLock lock(mutex_);
  return {.reporters = totals_.reporters(), .instances = totals_.instances()};
}

}  // namespace ebbgate

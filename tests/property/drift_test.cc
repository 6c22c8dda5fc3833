// Drift against plain references: what reports add up to, whatever happens to them on the way, and when a limit drifts.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/drift/drift_window.h"
#include "server/drift/observed_totals.h"
#include "server/limiter/bounds.h"
#include "tests/property/random.h"
#include "tests/support/durations.h"

namespace ebbgate::testing {
namespace {

constexpr std::int64_t kWatchedAt = 1'793'512'800 * kSecond;
constexpr WatchedNumber kLimits = 3;

// --- Sums ------------------------------------------------------------------------------------------------------------

struct Sent {
  int reporter = 0;
  int instance = 0;
  std::int64_t start_ns = 0;
  std::vector<ObservedTotal> totals;
};

// A process that counts, reports now and then, and restarts.
class Process {
 public:
  Process(int reporter, int instance, Random& random) : random_(random), sent_{reporter, instance, 0, {}} {
    // Some were counting before anybody watched.
    Restart(kWatchedAt + random.Between(-1, 3) * kSecond);
  }

  void Restart(std::int64_t start_ns) {
    sent_.start_ns = start_ns;
    sent_.totals.clear();
    for (WatchedNumber limit = 0; limit < kLimits; ++limit) sent_.totals.push_back({limit, 0});
  }

  Sent Report() {
    for (ObservedTotal& each : sent_.totals) each.total += random_.OneIn(3) ? 0 : random_.Magnitude(1, 1'000'000'000);
    Sent report = sent_;
    if (random_.OneIn(4)) report.totals.erase(report.totals.begin() + random_.Between(0, kLimits - 1));
    return report;
  }

  std::int64_t start_ns() const { return sent_.start_ns; }

 private:
  Random& random_;
  Sent sent_;
};

// Everything all processes send, in the order sent.
std::vector<Sent> Sends(Random& random) {
  std::vector<Process> processes;
  for (int i = 0; i < 6; ++i) processes.emplace_back(i % 2, i / 2, random);
  std::vector<Sent> sends;
  std::vector<int> restarts(processes.size());
  for (int i = 0; i < 120; ++i) {
    const auto at = static_cast<std::size_t>(random.Between(0, 5));
    Process& process = processes[at];
    if (random.OneIn(10) && ++restarts[at] < static_cast<int>(kMaxStartsPerInstance)) {
      process.Restart(process.start_ns() + random.Between(1, 5) * kSecond);
    }
    sends.push_back(process.Report());
  }
  return sends;
}

// Loses some, repeats some, and lets some overtake others.
std::vector<Sent> Arrivals(const std::vector<Sent>& sends, Random& random) {
  std::vector<std::pair<std::int64_t, Sent>> arrivals;
  for (std::size_t i = 0; i < sends.size(); ++i) {
    const int copies = random.OneIn(5) ? 0 : random.OneIn(5) ? 2 : 1;
    for (int copy = 0; copy < copies; ++copy) {
      arrivals.emplace_back(static_cast<std::int64_t>(i) + (random.OneIn(3) ? random.Between(0, 40) : 0), sends[i]);
    }
  }
  std::stable_sort(arrivals.begin(), arrivals.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Sent> ordered;
  for (const auto& [at, sent] : arrivals) ordered.push_back(sent);
  return ordered;
}

// What should come of it: of each start and limit the highest total that arrived, less the first of those that began
// too early.
class Reference {
 public:
  void Add(const Sent& sent) {
    for (const ObservedTotal& each : sent.totals) {
      std::vector<std::int64_t>& arrived = arrived_[{sent.reporter, sent.instance, sent.start_ns, each.limit}];
      arrived.push_back(each.total);
    }
  }

  std::int64_t Sum(WatchedNumber limit, std::optional<int> reporter = std::nullopt) const {
    std::int64_t sum = 0;
    for (const auto& [key, totals] : arrived_) {
      const auto& [of_reporter, instance, start_ns, of_limit] = key;
      if (of_limit != limit || of_reporter != reporter.value_or(of_reporter)) continue;
      sum += *std::max_element(totals.begin(), totals.end()) - (start_ns < kWatchedAt ? totals.front() : 0);
    }
    return sum;
  }

 private:
  std::map<std::tuple<int, int, std::int64_t, WatchedNumber>, std::vector<std::int64_t>> arrived_;
};

void Take(ObservedTotals& totals, const Sent& sent) {
  const std::string reporter = absl::StrCat(sent.reporter), instance = absl::StrCat(sent.instance);
  ASSERT_TRUE(
      totals
          .Add({.reporter = reporter, .instance = instance, .start_wall_ns = sent.start_ns, .totals = sent.totals},
               kHour)
          .ok());
}

TEST(ObservedTotalsProperty, TheSumIsRightWhateverHappensToReports) {
  const std::uint64_t seed = Seed();
  for (int history = 0; history < Times(400); ++history) {
    SCOPED_TRACE(Again(seed, history));
    Random random(seed, static_cast<std::uint64_t>(history));
    ObservedTotals totals;
    for (WatchedNumber limit = 0; limit < kLimits; ++limit) totals.Watch(limit, kWatchedAt);
    Reference reference;
    const std::vector<Sent> sends = Sends(random);
    for (const Sent& sent : Arrivals(sends, random)) {
      Take(totals, sent);
      reference.Add(sent);
      for (WatchedNumber limit = 0; limit < kLimits; ++limit) {
        ASSERT_EQ(static_cast<std::int64_t>(totals.Sum(limit)), reference.Sum(limit));
      }
    }
    for (WatchedNumber limit = 0; limit < kLimits; ++limit) {
      totals.ForEachReporter(limit, [&](const std::string& reporter, Uint128 sum) {
        EXPECT_EQ(static_cast<std::int64_t>(sum), reference.Sum(limit, reporter == "0" ? 0 : 1));
      });
    }
    // Silence forgets who they were, and not what they counted; coming back counts nothing twice.
    totals.Age(kHour + kInstanceIdleNs);
    EXPECT_EQ(totals.totals(), 0u);
    for (const Sent& sent : sends) Take(totals, sent);
    for (WatchedNumber limit = 0; limit < kLimits; ++limit) {
      std::int64_t most = 0;  // had every report arrived
      Reference all;
      for (const Sent& sent : sends) all.Add(sent);
      most = reference.Sum(limit) + all.Sum(limit);
      EXPECT_GE(static_cast<std::int64_t>(totals.Sum(limit)), reference.Sum(limit));
      EXPECT_LE(static_cast<std::int64_t>(totals.Sum(limit)), most);
    }
  }
}

// --- States ----------------------------------------------------------------------------------------------------------

struct Point {
  std::int64_t at_ns = 0;
  std::int64_t admitted = 0;
  std::int64_t received = 0;
};

// Judged from the whole history, in the words of drift_window.h.
class PlainWindow {
 public:
  explicit PlainWindow(const DriftSettings& settings) : settings_(settings) {}

  DriftState Add(const Point& point) {
    if (!points_.empty() && point.at_ns - points_.back().at_ns > settings_.window_ns) {
      points_.clear();
      out_.clear();
    }
    points_.push_back(point);
    const auto [span_ns, out] = Look();
    out_.push_back(out);
    if (!out || span_ns < settings_.window_ns / kDriftYoungPart) return DriftState::kOk;
    std::size_t within = out_.size() - 1;
    while (within > 0 && out_[within]) --within;
    const bool whole = point.at_ns - points_[within].at_ns >= settings_.window_ns;
    return whole ? DriftState::kDrifting : DriftState::kSuspect;
  }

 private:
  std::pair<std::int64_t, bool> Look() const {
    const Point& newest = points_.back();
    const Point* oldest = &newest;
    for (const Point& each : points_) {
      if (newest.at_ns - each.at_ns >= settings_.window_ns) continue;
      oldest = &each;
      break;
    }
    const Int128 admitted = newest.admitted - oldest->admitted, received = newest.received - oldest->received;
    const Int128 ratio = settings_.ratio_micros;
    const bool out = std::max(admitted, received) >= settings_.minimum &&
                     (received * 1'000'000 > admitted * ratio || admitted * 1'000'000 > received * ratio);
    return {newest.at_ns - oldest->at_ns, out};
  }

  const DriftSettings settings_;
  std::vector<Point> points_;
  std::vector<bool> out_;
};

TEST(DriftWindowProperty, JudgesAsAPlainLookAtTheWholeHistoryDoes) {
  const std::uint64_t seed = Seed();
  std::set<DriftState> seen;
  for (int history = 0; history < Times(400); ++history) {
    SCOPED_TRACE(Again(seed, history));
    Random random(seed, static_cast<std::uint64_t>(history));
    const DriftSettings settings{.ratio_micros = random.Between(kMinDriftRatioMicros, 2'000'000),
                                 .window_ns = random.Magnitude(kMinDriftWindowNs, kMaxDriftWindowNs),
                                 .minimum = random.Magnitude(1, 1000)};
    DriftWindow window(settings);
    PlainWindow plain(settings);
    Point point{.at_ns = kHour};
    std::int64_t share = 1000;  // received per 1000 admitted
    for (int i = 0; i < 400; ++i) {
      if (random.OneIn(40)) share = random.Pick<std::int64_t>({700, 900, 1000, 1000, 1100, 1300, 2300});
      // No two points so close that one takes the other's place.
      point.at_ns += random.OneIn(100) ? settings.window_ns * 2
                                       : settings.window_ns / kDriftPoints + random.Between(1, settings.window_ns / 20);
      const std::int64_t admitted = random.OneIn(20) ? 0 : random.Between(0, 200);
      point.admitted += admitted;
      point.received += admitted * share / 1000 + (random.OneIn(50) ? 300 : 0);
      window.Add(point.at_ns, {.admitted = static_cast<std::uint64_t>(point.admitted),
                               .received = static_cast<Uint128>(point.received)});
      ASSERT_EQ(window.reading().state, plain.Add(point)) << "point " << i;
      seen.insert(window.reading().state);
    }
  }
  EXPECT_EQ(seen.size(), 3u);
}

}  // namespace
}  // namespace ebbgate::testing

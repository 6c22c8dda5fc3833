// A greedy caller takes all there is, whenever there is anything, while limits are lowered, raised, slowed, removed and
// added again, and the engine forgets what it can. It never gets more than the promise.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "server/engine/engine.h"
#include "server/limiter/manual_time.h"
#include "tests/property/envelope.h"
#include "tests/property/random.h"
#include "tests/support/limits.h"

namespace ebbgate::testing {
namespace {

class Greed {
 public:
  explicit Greed(std::uint64_t stream) : random_(Seed(), stream), engine_({}, time_) { Change(); }

  void Step() {
    time_.Advance(random_.Pick<std::int64_t>({0, 1, kSecond / 10, kSecond, 3 * kSecond, 20 * kSecond, kHour}));
    if (random_.OneIn(3)) Change();
    // Long enough after, and often enough, that whatever may be forgotten is.
    for (std::int64_t i = random_.Between(0, 3); i > 0; --i) {
      if (random_.OneIn(2)) time_.Advance(kSecond);
      engine_.Maintain();
    }
    const std::string key = random_.Pick<const char*>({"plain", "vip"});
    const std::int64_t most = Remaining(key);
    if (most == 0) return;
    const std::int64_t cost = random_.OneIn(3) ? random_.Between(1, most) : most;
    if (Ask(engine_, "limit", key, cost).allowed) events_[key].push_back({time_.MonotonicNs(), FromTokens(cost)});
  }

  bool KeptItsPromise() const {
    return std::all_of(events_.begin(), events_.end(),
                       [](const auto& each) { return KeepsEnvelopeOfLargest(each.second); });
  }
  std::size_t events() const { return events_.at("plain").size() + events_.at("vip").size(); }

 private:
  std::int64_t Remaining(const std::string& key) {
    const CallAnswer answer = Ask(engine_, "limit", key, 0);
    return answer.error == nullptr ? answer.charges[0].remaining : 0;
  }

  void Change() {
    if (!events_.empty() && random_.OneIn(6)) {  // Removed; what it holds goes on refilling until it comes back.
      engine_.InstallLimits({Bucket("other", 1, 1, kSecond)});
      return;
    }
    const std::int64_t capacity = random_.Pick<std::int64_t>({1, 2, 10, 50});
    const std::int64_t per_ns = random_.Pick<std::int64_t>({kSecond / 100, kSecond, 10 * kSecond, 24 * kHour});
    Limit limit = Bucket("limit", capacity, 1, per_ns, random_.OneIn(2) ? Algorithm::kGcra : Algorithm::kTokenBucket);
    const Rate refill = limit.parameters.refill;
    events_["plain"].push_back({time_.MonotonicNs(), 0, limit.parameters.capacity, refill});
    std::int64_t vip_capacity = capacity;
    if (random_.OneIn(2)) {
      vip_capacity = random_.Pick<std::int64_t>({1, 5, 100});
      limit = With(limit, random_.OneIn(2) ? "vip" : "v*", vip_capacity);
    }
    events_["vip"].push_back({time_.MonotonicNs(), 0, FromTokens(vip_capacity), refill});
    engine_.InstallLimits({limit});
  }

  Random random_;
  ManualTime time_{0, 1000 * kSecond};
  Engine engine_;
  std::map<std::string, std::vector<BucketEvent>> events_;
};

TEST(EngineEnvelope, AGreedyCallerGetsNoMoreWhateverIsChangedAndForgotten) {
  std::size_t events = 0;
  for (int history = 0; history < Times(1500); ++history) {
    SCOPED_TRACE(Again(Seed(), history));
    Greed greed(static_cast<std::uint64_t>(history));
    for (int i = 0; i < 60; ++i) greed.Step();
    ASSERT_TRUE(greed.KeptItsPromise());
    events += greed.events();
  }
  EXPECT_GT(events, static_cast<std::size_t>(Times(1500)) * 20);
}

// A slower rate comes before the time is up after which the lowered bucket may be forgotten: it takes longer then.
TEST(EngineEnvelope, LoweringSlowingForgettingAndRaisingMintsNothing) {
  ManualTime time(0, 1000 * kSecond);
  Engine engine({}, time);
  engine.InstallLimits({Bucket("L", 10, 1, 24 * kHour)});
  EXPECT_EQ(AllowedOf(engine, "L", "k", 20), 10);
  engine.InstallLimits({Bucket("L", 1, 10, kSecond)});
  time.Advance(kSecond / 5);
  engine.InstallLimits({Bucket("L", 1, 1, 24 * kHour)});
  for (int i = 0; i < 100; ++i) {
    time.Advance(kSecond);
    engine.Maintain();
  }
  engine.InstallLimits({Bucket("L", 10, 1, 24 * kHour)});
  EXPECT_EQ(AllowedOf(engine, "L", "k", 20), 1);
}

}  // namespace
}  // namespace ebbgate::testing

// Random histories of calls, changes of limits, pauses and maintenance, through the engine and its model side by side.
#include "server/engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "server/limiter/manual_time.h"
#include "tests/property/engine_histories.h"
#include "tests/property/engine_model.h"
#include "tests/property/history.h"
#include "tests/property/random.h"

namespace ebbgate::testing {
namespace {

constexpr std::int64_t kDedupeWindowNs = 1'000'000'007;

struct Shape {
  bool changes = false;
  bool late_readings = false;
  bool upkeep = false;
};

class EngineHistory {
 public:
  EngineHistory(std::uint64_t stream, Shape shape)
      : random_(Seed(), stream),
        shape_(shape),
        start_ns_(RandomStart(random_)),
        time_(start_ns_, start_ns_),
        engine_({.dedupe_window_ns = kDedupeWindowNs}, time_),
        model_(kDedupeWindowNs),
        limits_(RandomLimits(random_)) {
    engine_.InstallLimits(limits_);
    model_.Install(limits_, time_.MonotonicNs());
  }

  bool Over() const { return time_.MonotonicNs() > kLastReadingNs; }

  // What went wrong, or "".
  std::string Step() {
    const std::size_t any = static_cast<std::size_t>(random_.Between(0, static_cast<std::int64_t>(limits_.size()) - 1));
    time_.Advance(std::max<std::int64_t>(0, furthest_ns_ - time_.MonotonicNs()));
    if (random_.OneIn(3)) time_.Advance(RandomPause(random_, limits_[any].parameters));
    if (Over()) return "";
    furthest_ns_ = time_.MonotonicNs();
    const bool late = shape_.late_readings && random_.OneIn(6);
    if (late) time_.Advance(-random_.Magnitude(1, 10'000'000'000));
    if (shape_.upkeep && random_.OneIn(5)) engine_.Maintain();
    const std::int64_t now_ns = time_.MonotonicNs();
    std::string wrong = model_.Forget(engine_, now_ns);
    wrong += model_.Compare(engine_, now_ns);
    if (shape_.changes && random_.OneIn(15)) wrong += Change(now_ns);
    OwnCall call = RandomCall(random_, limits_);
    if (late) call.request_id.clear();  // How long an id is remembered is told by the furthest reading.
    std::vector<ChargeRequest> charges;
    engine_.Decide(View(call, charges), answer_);
    ++calls_;
    return wrong + model_.Check(call, now_ns, answer_);
  }

  std::string CheckCounters() {
    const EngineCounters counters = engine_.Counters();
    const LimitCounters& is = counters.limits.front();  // "limit-0" was never away.
    const LimitCounters& due = model_.Expected("limit-0");
    const bool same = is.limit == "limit-0" && is.allowed == due.allowed && is.denied == due.denied &&
                      is.failed == due.failed && is.peeked == due.peeked && is.admitted_cost == due.admitted_cost &&
                      is.shadow_refused_cost == due.shadow_refused_cost;
    return same && counters.replayed_calls == model_.replays() ? "" : "counters differ";
  }

  int calls() const { return calls_; }

 private:
  std::string Change(std::int64_t now_ns) {
    limits_ = ChangedLimits(random_, limits_);
    engine_.InstallLimits(limits_);
    // Keys of a limit that comes back may have been forgotten while it was away.
    const std::string wrong = model_.Forget(engine_, now_ns);
    model_.Install(limits_, now_ns);
    return wrong + model_.Compare(engine_, now_ns);
  }

  Random random_;
  const Shape shape_;
  const std::int64_t start_ns_;
  ManualTime time_;
  Engine engine_;
  EngineModel model_;
  std::vector<Limit> limits_;
  CallAnswer answer_;
  std::int64_t furthest_ns_ = start_ns_;
  int calls_ = 0;
};

void Replay(int calls, Shape shape) {
  for (int history = 0, made = 0; made < Times(calls); ++history) {
    SCOPED_TRACE(Again(Seed(), history));
    EngineHistory one(static_cast<std::uint64_t>(history), shape);
    for (int i = 0; i < 300 && !one.Over(); ++i) {
      const std::string wrong = one.Step();
      ASSERT_EQ(wrong, "") << "at step " << i;
    }
    ASSERT_EQ(one.CheckCounters(), "");  // **Counted**.
    made += one.calls() + 1;
  }
}

TEST(EngineExact, CallsAreAnsweredAsByTheModel) { Replay(100'000, {}); }
TEST(EngineForgetOnlyFull, UpkeepChangesNoAnswer) { Replay(100'000, {.upkeep = true}); }
TEST(EngineOneClock, LateReadingsCountAsTheLast) { Replay(100'000, {.late_readings = true, .upkeep = true}); }
TEST(EngineSettledChange, ChangesOfLimitsAddNothing) {
  Replay(150'000, {.changes = true, .late_readings = true, .upkeep = true});
}

// --- Batches ---------------------------------------------------------------------------------------------------------

// The same calls one after the other, with upkeep, and in batches, without.
TEST(Batch, IsDecidedAsItsCallsOneAfterTheOther) {
  for (int history = 0; history < Times(300); ++history) {
    SCOPED_TRACE(Again(Seed(), history));
    Random random(Seed(), static_cast<std::uint64_t>(history));
    const std::int64_t start_ns = RandomStart(random);
    ManualTime time(start_ns, start_ns);
    Engine one_by_one({}, time), batched({}, time);
    std::vector<Limit> limits = RandomLimits(random);
    one_by_one.InstallLimits(limits);
    batched.InstallLimits(limits);
    for (int step = 0; step < 20 && time.MonotonicNs() < kLastReadingNs; ++step) {
      std::vector<OwnCall> calls;
      for (std::int64_t i = random.Between(1, 150); i > 0; --i) calls.push_back(RandomCall(random, limits));
      std::vector<std::vector<ChargeRequest>> charges(calls.size());
      std::vector<CallRequest> requests;
      for (std::size_t i = 0; i < calls.size(); ++i) requests.push_back(View(calls[i], charges[i]));
      std::vector<CallAnswer> answers(calls.size());
      batched.DecideBatch(requests, absl::MakeSpan(answers));
      for (std::size_t i = 0; i < calls.size(); ++i) {
        CallAnswer answer;
        one_by_one.Decide(requests[i], answer);
        ASSERT_EQ(Difference(answers[i], answer), "") << "call " << i << " of batch " << step;
      }
      one_by_one.Maintain();
      time.Advance(RandomPause(random, limits.front().parameters));
    }
    const EngineCounters a = one_by_one.Counters(), b = batched.Counters();
    for (std::size_t i = 0; i < a.limits.size(); ++i) {
      EXPECT_EQ(a.limits[i].allowed, b.limits[i].allowed);
      EXPECT_EQ(a.limits[i].denied, b.limits[i].denied);
      EXPECT_EQ(a.limits[i].failed, b.limits[i].failed);
      EXPECT_EQ(a.limits[i].peeked, b.limits[i].peeked);
      EXPECT_EQ(a.limits[i].admitted_cost, b.limits[i].admitted_cost);
    }
    EXPECT_EQ(a.invalid_calls, b.invalid_calls);
    EXPECT_EQ(a.unknown_limit, b.unknown_limit);
    EXPECT_EQ(a.replayed_calls, b.replayed_calls);
  }
}

}  // namespace
}  // namespace ebbgate::testing

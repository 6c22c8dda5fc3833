#include "server/engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/limiter/manual_time.h"
#include "tests/support/limits.h"

namespace ebbgate {
namespace {

using ::testing::AllOf;
using testing::AllowedOf;
using testing::Ask;
using testing::Bucket;
using ::testing::Field;
using testing::kHour;
using testing::kSecond;
using ::testing::Pointee;
using testing::Windowed;
using testing::With;

// 2026-01-01T00:00:00Z.
constexpr std::int64_t kStartWallNs = 1'767'225'600 * kSecond;

class EngineTest : public ::testing::Test {
 protected:
  Engine& Make(const std::vector<Limit>& limits, const EngineOptions& options = {}) {
    engine_ = std::make_unique<Engine>(options, time_);
    engine_->InstallLimits(limits);
    return *engine_;
  }
  LimitCounters CountersOf(const std::string& limit) const {
    for (const LimitCounters& each : engine_->Counters().limits) {
      if (each.limit == limit) return each;
    }
    ADD_FAILURE() << "no counters of " << limit;
    return {};
  }
  void MaintainFor(std::int64_t ns) {
    for (std::int64_t passed = 0; passed < ns; passed += kSecond) {
      time_.Advance(kSecond);
      engine_->Maintain();
    }
  }

  ManualTime time_{kStartWallNs, 1000 * kSecond};
  std::unique_ptr<Engine> engine_;
};

::testing::Matcher<const CallAnswer&> FailsWith(ErrorReason reason, const std::string& field) {
  return Field(&CallAnswer::error, Pointee(AllOf(Field(&CallError::reason, reason), Field(&CallError::field, field))));
}

// --- Bad input: a clear error, nothing changes ---------------------------------------------------------------------

TEST_F(EngineTest, BadInputNamesTheField) {
  Limit capped = Bucket("capped", 10, 1, kHour);
  capped.max_cost = 5;
  Engine& engine = Make({Bucket("L", 10, 1, kHour), capped});
  const std::string long_key(1025, 'k');
  const std::string long_name(129, 'n');
  const std::string long_id(65, 'i');
  EXPECT_THAT(Ask(engine, {}), FailsWith(ErrorReason::kInvalidField, "charges"));
  EXPECT_THAT(Ask(engine, std::vector<ChargeRequest>(33, {.limit = "L", .key = "k", .cost = {}})),
              FailsWith(ErrorReason::kInvalidField, "charges"));
  EXPECT_THAT(Ask(engine, "", "k"), FailsWith(ErrorReason::kInvalidField, "charges[0].limit"));
  EXPECT_THAT(Ask(engine, long_name, "k"), FailsWith(ErrorReason::kInvalidField, "charges[0].limit"));
  EXPECT_THAT(Ask(engine, "L", ""), FailsWith(ErrorReason::kInvalidField, "charges[0].key"));
  EXPECT_THAT(Ask(engine, "L", long_key), FailsWith(ErrorReason::kKeyTooLong, "charges[0].key"));
  EXPECT_THAT(Ask(engine, "L", "k", -1), FailsWith(ErrorReason::kCostOutOfRange, "charges[0].cost"));
  EXPECT_THAT(Ask(engine, "L", "k", kInt64Max), FailsWith(ErrorReason::kCostOutOfRange, "charges[0].cost"));
  EXPECT_THAT(Ask(engine, "L", "k", kMaxCostTokens + 1), FailsWith(ErrorReason::kCostOutOfRange, "charges[0].cost"));
  EXPECT_THAT(Ask(engine, "capped", "k", 6), FailsWith(ErrorReason::kCostAboveMaximum, "charges[0].cost"));
  EXPECT_THAT(Ask(engine, "nope", "k"), FailsWith(ErrorReason::kUnknownLimit, "charges[0].limit"));
  EXPECT_THAT(Ask(engine, {{"L", "k", 1}, {"L", "", 1}}), FailsWith(ErrorReason::kInvalidField, "charges[1].key"));
  EXPECT_THAT(Ask(engine, {{"L", "k", 1}}, long_id), FailsWith(ErrorReason::kInvalidField, "request_id"));
  EXPECT_EQ(Ask(engine, "L", "k", 10).allowed, true) << "nothing was charged";
  EXPECT_EQ(Ask(engine, "L", "k", kMaxCostTokens).reason, Reason::kCostExceedsCapacity) << "the largest cost is one";
  EXPECT_EQ(engine.Counters().invalid_calls, 12u);
  EXPECT_EQ(engine.Counters().unknown_limit, 1u);
}

TEST_F(EngineTest, UnknownLimitsMayBeAllowedOrDenied) {
  EngineOptions options;
  options.unknown_limit = UnknownLimit::kAllow;
  Engine& lenient = Make({Bucket("L", 2, 1, kHour)}, options);
  EXPECT_TRUE(Ask(lenient, "nope", "k").allowed);
  EXPECT_EQ(Ask(lenient, {{"nope", "k", {}}, {"L", "k", {}}}).charges[1].remaining, 1);
  EXPECT_EQ(lenient.Counters().keys, 1u) << "no state for names that are not configured";
  options.unknown_limit = UnknownLimit::kDeny;
  Engine& strict = Make({Bucket("L", 2, 1, kHour)}, options);
  const CallAnswer denied = Ask(strict, {{"nope", "k", {}}, {"L", "k", {}}});
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.reason, Reason::kCostExceedsCapacity);
  EXPECT_EQ(denied.retry_after_ns, kNoWait);
  EXPECT_EQ(denied.charges[1].remaining, 2) << "all or nothing";
  EXPECT_EQ(strict.Counters().unknown_limit, 1u);
}

// --- Several charges -------------------------------------------------------------------------------------------------

TEST_F(EngineTest, TheLongestWaitOfThoseThatRefused) {
  Engine& engine =
      Make({Bucket("fast", 1, 1, kSecond), Bucket("slow", 1, 1, 10 * kSecond), Bucket("free", 9, 1, kHour)});
  ASSERT_TRUE(Ask(engine, {{"fast", "k", {}}, {"slow", "k", {}}}).allowed);
  const CallAnswer denied = Ask(engine, {{"free", "k", {}}, {"fast", "k", {}}, {"slow", "k", {}}});
  EXPECT_EQ(denied.retry_after_ns, 10 * kSecond);
  EXPECT_EQ(denied.charges[0].retry_after_ns, kNoWait);
  EXPECT_EQ(denied.charges[1].retry_after_ns, kSecond);
  EXPECT_EQ(denied.charges[2].retry_after_ns, 10 * kSecond);
  EXPECT_FALSE(denied.charges[0].tightest || denied.charges[1].tightest);
  EXPECT_TRUE(denied.charges[2].tightest);
  EXPECT_EQ(denied.charges[0].remaining, 9);
  time_.Advance(10 * kSecond - 1);
  EXPECT_FALSE(Ask(engine, {{"free", "k", {}}, {"fast", "k", {}}, {"slow", "k", {}}}).allowed);
  time_.Advance(1);
  EXPECT_TRUE(Ask(engine, {{"free", "k", {}}, {"fast", "k", {}}, {"slow", "k", {}}}).allowed);
}

TEST_F(EngineTest, NeverBeatsNotNow) {
  Engine& engine = Make({Bucket("a", 1, 1, kSecond), Bucket("b", 5, 1, kSecond)});
  ASSERT_TRUE(Ask(engine, "a", "k").allowed);
  const CallAnswer denied = Ask(engine, {{"a", "k", 1}, {"b", "k", 6}});
  EXPECT_EQ(denied.reason, Reason::kCostExceedsCapacity);
  EXPECT_EQ(denied.retry_after_ns, kNoWait) << "no wait helps";
  EXPECT_EQ(denied.charges[0].retry_after_ns, kSecond) << "of this charge alone";
  EXPECT_TRUE(denied.charges[1].tightest);
}

TEST_F(EngineTest, CostsToOneKeyThatAddUpBeyondMicrotokensAreNever) {
  Engine& engine = Make({Bucket("L", kMaxCapacityTokens, 1'000'000, kSecond)});
  const std::vector<ChargeRequest> charges(32, {.limit = "L", .key = "k", .cost = kMaxCostTokens});
  EXPECT_EQ(Ask(engine, charges).reason, Reason::kCostExceedsCapacity);
  EXPECT_TRUE(Ask(engine, "L", "k", kMaxCapacityTokens).allowed);
}

// --- Counted ---------------------------------------------------------------------------------------------------------

TEST_F(EngineTest, Counted) {
  Limit shadow = Bucket("shadow", 1, 1, kHour);
  shadow.shadow = true;
  Engine& engine = Make({Bucket("L", 5, 1, kHour), shadow});
  Ask(engine, {{"L", "k", 3}, {"shadow", "k", 1}});
  Ask(engine, {{"L", "k", 2}, {"shadow", "k", 1}});   // the shadow would refuse
  Ask(engine, {{"L", "k", 1}, {"shadow", "s2", 1}});  // L refuses, the shadow's key is untouched
  Ask(engine, {{"L", "k", 6}});                       // never
  Ask(engine, {{"L", "k", 0}});                       // a look
  Ask(engine, {{"L", "k", 1}}, {}, /*peek=*/true);    // another
  Ask(engine, {{"L", "k", 1}, {"L", "", 1}});         // an error: two requests to L
  const LimitCounters l = CountersOf("L");
  EXPECT_EQ(l.allowed, 2u);
  EXPECT_EQ(l.denied, 2u);
  EXPECT_EQ(l.failed, 2u);
  EXPECT_EQ(l.peeked, 2u);
  EXPECT_EQ(l.admitted_cost, 5u);
  EXPECT_EQ(l.refused_quota, 1u);
  EXPECT_EQ(l.refused_never, 1u);
  const LimitCounters s = CountersOf("shadow");
  EXPECT_EQ(s.allowed, 2u);
  EXPECT_EQ(s.denied, 1u);
  EXPECT_EQ(s.admitted_cost, 1u);
  EXPECT_EQ(s.shadow_refused, 1u);
  EXPECT_EQ(s.shadow_refused_cost, 1u);
}

// --- Batches ---------------------------------------------------------------------------------------------------------

TEST_F(EngineTest, ABatchAnswersInOrderEachItsOwn) {
  Engine& engine = Make({Bucket("L", 2, 1, kHour), Bucket("M", 1, 1, kHour)});
  const std::vector<ChargeRequest> one = {{"L", "k", {}}};
  const std::vector<ChargeRequest> two = {{"L", "k", {}}, {"M", "k", {}}};
  const std::vector<ChargeRequest> bad = {{"L", "", {}}};
  const std::vector<ChargeRequest> unknown = {{"nope", "k", {}}};
  const std::vector<ChargeRequest> none;
  const std::vector<CallRequest> calls = {
      {.charges = one}, {.charges = bad},  {.charges = one, .peek = true},      {.charges = two}, {.charges = unknown},
      {.charges = one}, {.charges = none}, {.charges = one, .request_id = "id"}};
  std::vector<CallAnswer> answers(calls.size());
  engine.DecideBatch(calls, absl::MakeSpan(answers));
  EXPECT_TRUE(answers[0].allowed);
  EXPECT_THAT(answers[1], FailsWith(ErrorReason::kInvalidField, "charges[0].key"));
  EXPECT_EQ(answers[2].charges[0].remaining, 1);
  EXPECT_TRUE(answers[3].allowed);
  EXPECT_THAT(answers[4], FailsWith(ErrorReason::kUnknownLimit, "charges[0].limit"));
  EXPECT_FALSE(answers[5].allowed);
  EXPECT_THAT(answers[6], FailsWith(ErrorReason::kInvalidField, "charges"));
  EXPECT_FALSE(answers[7].allowed);
  EXPECT_EQ(CountersOf("L").allowed + CountersOf("L").denied + CountersOf("L").failed, 5u);
}

TEST_F(EngineTest, ALargeBatchOnOneKeyIsDecidedInOrder) {
  Engine& engine = Make({Bucket("L", 700, 1, kHour)});
  std::vector<ChargeRequest> charges(1000, {.limit = "L", .key = "hot", .cost = {}});
  std::vector<CallRequest> calls(1000);
  for (std::size_t i = 0; i < 1000; ++i) calls[i].charges = absl::MakeConstSpan(&charges[i], 1);
  std::vector<CallAnswer> answers(1000);
  engine.DecideBatch(calls, absl::MakeSpan(answers));
  for (std::size_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(answers[i].allowed, i < 700) << i;
    EXPECT_EQ(answers[i].charges[0].remaining, std::max<std::int64_t>(0, 699 - static_cast<std::int64_t>(i)));
  }
}

// --- A full store ----------------------------------------------------------------------------------------------------

TEST_F(EngineTest, AFullStoreDeniesAsOverloadAndChargesNothing) {
  EngineOptions options;
  options.max_keys = 100;
  Engine& engine = Make({Bucket("L", 1, 1, kHour), Bucket("known", 5, 1, kHour)}, options);
  ASSERT_TRUE(Ask(engine, "known", "k").allowed);
  EXPECT_EQ(AllowedOf(engine, "L", "first", 1), 1);
  for (int i = 0; i < 98; ++i) ASSERT_TRUE(Ask(engine, "L", std::to_string(i)).allowed);
  const CallAnswer full = Ask(engine, {{"known", "k", 1}, {"L", "one too many", 1}});
  EXPECT_THAT(full, FailsWith(ErrorReason::kStoreFull, ""));
  EXPECT_EQ(full.error->code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Ask(engine, "known", "k", 0).charges[0].remaining, 4) << "all or nothing";
  EXPECT_FALSE(Ask(engine, "L", "first").allowed) << "keys that are known are decided as ever";
  EXPECT_EQ(engine.Counters().store_full_denied, 1u);
  EXPECT_EQ(engine.Counters().keys, 100u);
  EXPECT_EQ(CountersOf("L").failed, 1u);
  time_.Advance(kHour);  // All are full again, so room can be made.
  EXPECT_TRUE(Ask(engine, "L", "one too many").allowed);
}

TEST_F(EngineTest, AFullStoreMayAllowInstead) {
  EngineOptions options;
  options.max_keys = 10;
  options.when_full = WhenFull::kAllow;
  Engine& engine = Make({Bucket("L", 1, 1, kHour)}, options);
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(Ask(engine, "L", std::to_string(i)).allowed);
  EXPECT_EQ(engine.Counters().store_full_allowed, 20u);
  EXPECT_EQ(engine.Counters().keys, 10u);
  EXPECT_EQ(CountersOf("L").admitted_cost, 30u) << "what was admitted is counted, with an account or without";
  EXPECT_FALSE(Ask(engine, "L", "0").allowed);
}

TEST_F(EngineTest, AnExactWindowsLogIsWithinTheBoundOfBytes) {
  EngineOptions options;
  options.max_store_bytes = 20'000;
  Engine& engine = Make({Windowed("L", Algorithm::kExactWindow, 10'000, kHour)}, options);
  int allowed = 0;
  for (int i = 0; i < 5'000; ++i) {
    time_.Advance(1);
    const CallAnswer answer = Ask(engine, "L", "k");
    allowed += answer.error == nullptr;
    ASSERT_LE(engine.Counters().store_bytes, 20'000u);
  }
  EXPECT_GT(allowed, 500);
  EXPECT_LT(allowed, 1250);
  EXPECT_EQ(CountersOf("L").admitted_cost, static_cast<std::uint64_t>(allowed));
}

// --- Forget only full ------------------------------------------------------------------------------------------------

TEST_F(EngineTest, ForgetOnlyFull) {
  Engine& engine = Make({Bucket("slow", 100, 1, kHour), Bucket("quick", 10, 1, kSecond)});
  ASSERT_TRUE(Ask(engine, "slow", "k", 3).allowed);
  ASSERT_TRUE(Ask(engine, "quick", "k", 10).allowed);
  MaintainFor(9 * kSecond);
  EXPECT_EQ(engine.Counters().keys, 2u);
  MaintainFor(2 * kSecond);
  EXPECT_EQ(engine.Counters().keys, 1u) << "the quick one is full";
  time_.Advance(3 * kHour - 12 * kSecond);
  engine.Maintain();
  EXPECT_EQ(engine.Counters().keys, 1u) << "time to live is the time to full";
  MaintainFor(2 * kSecond);
  EXPECT_EQ(engine.Counters().keys, 0u);
  EXPECT_EQ(engine.Counters().keys_expired, 2u);
  EXPECT_EQ(engine.Counters().store_bytes, 0u);
}

TEST_F(EngineTest, AMillionKeysComeAndGoInFlatMemory) {
  Engine& engine = Make({Bucket("L", 1, 1, kSecond)});
  std::uint64_t most = 0;
  for (int i = 0; i < 300'000; ++i) {
    time_.Advance(100'000);  // 10,000 keys a second, each full again a second later
    ASSERT_TRUE(Ask(engine, "L", "key-" + std::to_string(i)).allowed);
    if (i % 1000 == 0) engine.Maintain();
    most = std::max(most, engine.Counters().keys);
    if (i == 100'000) most = 0;
  }
  EXPECT_LT(most, 40'000u);
}

// --- Settled change --------------------------------------------------------------------------------------------------

TEST_F(EngineTest, TheSameLimitsAgainChangeNothing) {
  Engine& engine = Make({Bucket("L", 10, 1, kSecond)});
  AllowedOf(engine, "L", "k", 7);
  const std::uint64_t generation = engine.limits().generation;
  EXPECT_FALSE(engine.InstallLimits({Bucket("L", 10, 1, kSecond)}));
  EXPECT_EQ(engine.limits().generation, generation);
  EXPECT_TRUE(engine.InstallLimits({Bucket("L", 10, 1, kSecond), Bucket("M", 1, 1, kSecond)}));
  EXPECT_EQ(AllowedOf(engine, "L", "k", 10), 3);
}

TEST_F(EngineTest, WhatReservationsMayDoCountsAsAChange) {
  Engine& engine = Make({Bucket("L", 10, 1, kSecond)});
  Limit changed = Bucket("L", 10, 1, kSecond);
  changed.on_hold_expiry = OnHoldExpiry::kGiveBack;
  EXPECT_TRUE(engine.InstallLimits({changed}));
  changed.max_debt = 0;
  EXPECT_TRUE(engine.InstallLimits({changed}));
  changed.max_holds = 1;
  EXPECT_TRUE(engine.InstallLimits({changed}));
  changed.parameters.pace = true;
  EXPECT_TRUE(engine.InstallLimits({changed}));
  EXPECT_FALSE(engine.InstallLimits({changed}));
}

TEST_F(EngineTest, ALimitThatComesBackFindsWhatWasSpent) {
  Engine& engine = Make({Bucket("L", 10, 1, kHour)});
  AllowedOf(engine, "L", "k", 10);
  engine.InstallLimits({});
  EXPECT_THAT(Ask(engine, "L", "k"), FailsWith(ErrorReason::kUnknownLimit, "charges[0].limit"));
  MaintainFor(5 * kSecond);
  for (int i = 0; i < 5; ++i) engine.InstallLimits({Bucket("other" + std::to_string(i), 1, 1, kHour)});
  EXPECT_EQ(CountersOf("L").allowed, 10u) << "its counters stay as long as its keys";
  engine.InstallLimits({Bucket("L", 20, 1, kHour)});
  EXPECT_EQ(AllowedOf(engine, "L", "k", 10), 0);
  time_.Advance(2 * kHour);
  EXPECT_EQ(AllowedOf(engine, "L", "k", 10), 2);
}

TEST_F(EngineTest, ARemovedLimitIsForgottenWithItsLastKey) {
  Engine& engine = Make({Bucket("L", 1, 1, kSecond)});
  AllowedOf(engine, "L", "k", 1);
  engine.InstallLimits({Bucket("M", 1, 1, kSecond)});
  MaintainFor(5 * kSecond);
  EXPECT_EQ(engine.Counters().keys, 0u);
  engine.InstallLimits({Bucket("N", 1, 1, kSecond)});
  engine.InstallLimits({Bucket("O", 1, 1, kSecond)});
  EXPECT_EQ(engine.Counters().limits.size(), 2u) << "O, and N for one more change; L and M are gone";
  EXPECT_EQ(CountersOf("O").allowed, 0u) << "a number used again starts at zero";
  EXPECT_EQ(AllowedOf(engine, "O", "k", 3), 1);
}

TEST_F(EngineTest, LoweringForgettingAndRaisingMintsNothing) {
  Engine& engine = Make({Bucket("L", 10, 1, 10 * kSecond)});
  EXPECT_EQ(AllowedOf(engine, "L", "k", 5), 5);
  engine.InstallLimits({Bucket("L", 1, 1, 10 * kSecond)});  // full at 1, but five were spent a moment ago
  MaintainFor(3 * kSecond);
  engine.InstallLimits({Bucket("L", 10, 1, 10 * kSecond)});
  EXPECT_EQ(AllowedOf(engine, "L", "k", 10), 1);
  MaintainFor(300 * kSecond);
  EXPECT_EQ(engine.Counters().keys, 0u) << "in the end it is forgotten";
}

TEST_F(EngineTest, OverridesChangeOwnersOfKeys) {
  Engine& engine = Make({With(Bucket("L", 2, 1, kHour), "vip-*", 10)});
  EXPECT_EQ(AllowedOf(engine, "L", "vip-1", 20), 10);
  EXPECT_EQ(AllowedOf(engine, "L", "other", 20), 2);
  engine.InstallLimits({With(With(Bucket("L", 2, 1, kHour), "vip-1", 50), "oth*", 9)});
  EXPECT_EQ(AllowedOf(engine, "L", "vip-1", 20), 0) << "raising adds nothing";
  EXPECT_EQ(AllowedOf(engine, "L", "other", 20), 0);
  EXPECT_EQ(AllowedOf(engine, "L", "vip-2", 20), 2) << "a new key starts full";
  EXPECT_EQ(engine.Inspect("L", "vip-1")->override_pattern, "vip-1");
  EXPECT_EQ(engine.Inspect("L", "vip-1")->capacity, 50);
}

// --- Once ------------------------------------------------------------------------------------------------------------

TEST_F(EngineTest, Once) {
  Engine& engine = Make({Bucket("L", 5, 1, kHour)});
  const std::vector<ChargeRequest> charges = {{"L", "k", 2}};
  EXPECT_FALSE(Ask(engine, charges, "r").replayed);
  time_.Advance(60 * kSecond - 1);
  const CallAnswer again = Ask(engine, charges, "r");
  EXPECT_TRUE(again.replayed);
  EXPECT_EQ(again.charges[0].remaining, 3);
  EXPECT_THAT(Ask(engine, {{"L", "k", 1}}, "r"), FailsWith(ErrorReason::kRequestIdReused, "request_id"));
  EXPECT_THAT(Ask(engine, {{"L", "k2", 2}}, "r"), FailsWith(ErrorReason::kRequestIdReused, "request_id"));
  EXPECT_EQ(engine.Counters().request_ids, 1u);
  time_.Advance(1);
  const CallAnswer later = Ask(engine, charges, "r");
  EXPECT_FALSE(later.replayed) << "the window has passed";
  EXPECT_EQ(later.charges[0].remaining, 1);
  EXPECT_EQ(engine.Counters().replayed_calls, 1u);
  MaintainFor(61 * kSecond);
  EXPECT_EQ(engine.Counters().request_ids, 0u);
}

TEST_F(EngineTest, NoRoomForAnIdIsOverloadAndChargesNothing) {
  EngineOptions options;
  options.max_request_ids = 3;
  Engine& engine = Make({Bucket("L", 100, 1, kHour)}, options);
  for (const char* id : {"a", "b", "c"}) EXPECT_TRUE(Ask(engine, {{"L", "k", 1}}, id).allowed);
  EXPECT_THAT(Ask(engine, {{"L", "k", 1}}, "d"), FailsWith(ErrorReason::kRequestIdsFull, ""));
  EXPECT_TRUE(Ask(engine, {{"L", "k", 1}}, "a").replayed) << "those remembered still are";
  EXPECT_EQ(CountersOf("L").admitted_cost, 3u);
  EXPECT_EQ(CountersOf("L").failed, 1u);
  EXPECT_EQ(engine.Counters().request_ids_refused, 1u);
  MaintainFor(61 * kSecond);
  EXPECT_TRUE(Ask(engine, {{"L", "k", 1}}, "d").allowed);
}

// --- Looking in ------------------------------------------------------------------------------------------------------

TEST_F(EngineTest, InspectTellsLevelAgeAndLocalTime) {
  Limit limit = Bucket("L", 4, 2, kSecond);
  ASSERT_TRUE(absl::LoadTimeZone("America/New_York", &limit.display_zone));
  Engine& engine = Make({limit});
  EXPECT_FALSE(engine.Inspect("L", "k")->known);
  EXPECT_EQ(engine.Inspect("L", "k")->remaining, 4);
  Ask(engine, "L", "k", 3);
  time_.Advance(kSecond / 4);
  const Inspection inspection = *engine.Inspect("L", "k");
  EXPECT_TRUE(inspection.known);
  EXPECT_EQ(inspection.level, 1'500'000);
  EXPECT_EQ(inspection.remaining, 1);
  EXPECT_EQ(inspection.reset_after_ns, kSecond * 5 / 4);
  EXPECT_EQ(inspection.last_change_age_ns, kSecond / 4);
  EXPECT_EQ(inspection.last_change_label, "2025-12-31 19:00 EST");
  EXPECT_EQ(inspection.parameters, "token_bucket capacity 4, refill 2 per 1s");
  EXPECT_EQ(engine.Inspect("nope", "k").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(engine.Inspect("L", "").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(EngineTest, ResetMakesFull) {
  Engine& engine = Make({Bucket("L", 4, 1, kHour), Windowed("X", Algorithm::kExactWindow, 3, kHour)});
  EXPECT_FALSE(*engine.Reset("L", "k"));
  AllowedOf(engine, "L", "k", 4);
  AllowedOf(engine, "X", "k", 3);
  EXPECT_TRUE(*engine.Reset("L", "k"));
  EXPECT_TRUE(*engine.Reset("X", "k"));
  EXPECT_EQ(engine.Counters().store_bytes, 0u);
  EXPECT_EQ(AllowedOf(engine, "L", "k", 9), 4);
  EXPECT_EQ(AllowedOf(engine, "X", "k", 9), 3);
  EXPECT_EQ(engine.Counters().keys_reset, 2u);
  EXPECT_EQ(engine.Reset("nope", "k").status().code(), absl::StatusCode::kNotFound);
}

// --- One clock -------------------------------------------------------------------------------------------------------

TEST_F(EngineTest, OneClock) {
  Engine& engine = Make({Bucket("L", 5, 5, kSecond)});
  EXPECT_EQ(AllowedOf(engine, "L", "k", 9), 5);
  const std::uint64_t before = engine.Counters().clock_regressions;
  time_.MoveTo(time_.MonotonicNs() - 400'000'000);
  EXPECT_EQ(Ask(engine, "L", "k").retry_after_ns, 200'000'000) << "a reading behind the last counts as the last";
  EXPECT_EQ(engine.Counters().clock_regressions, before + 1);
  for (const std::int64_t step : {kHour, -kHour, 87'600 * kHour}) {
    time_.StepWall(step);
    engine.Maintain();
    EXPECT_EQ(AllowedOf(engine, "L", "k", 9), 0) << "wall time earns nothing";
  }
}

}  // namespace
}  // namespace ebbgate

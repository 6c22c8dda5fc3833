#include "server/drift/drift_window.h"

#include "gtest/gtest.h"
#include "tests/support/durations.h"

namespace ebbgate {
namespace {

using testing::kSecond;

constexpr std::int64_t kMinute = 60 * kSecond;
// Any moment: nothing depends on where the monotonic clock begins.
constexpr std::int64_t kStart = 1'000'000 * kSecond;

// Two counters that rise evenly, reported every ten seconds.
class Traffic {
 public:
  explicit Traffic(const DriftSettings& settings = DriftSettings()) : window_(settings) { Report(); }

  // So many tokens a minute, for so long. Returns the state after the last report.
  DriftState Run(std::int64_t admitted_per_minute, std::int64_t received_per_minute, std::int64_t ns,
                 std::int64_t every_ns = 10 * kSecond) {
    for (std::int64_t passed_ns = 0; passed_ns < ns; passed_ns += every_ns) {
      now_ns_ += every_ns;
      admitted_micros_ += Uint128{1'000'000} * admitted_per_minute * every_ns / kMinute;
      received_micros_ += Uint128{1'000'000} * received_per_minute * every_ns / kMinute;
      Report();
    }
    return window_.reading().state;
  }

  void Report() {
    window_.Add(now_ns_, {.admitted = static_cast<std::uint64_t>(admitted_micros_ / 1'000'000),
                          .given_back = given_back_,
                          .received = received_micros_ / 1'000'000});
  }

  std::int64_t now_ns_ = kStart;
  Uint128 admitted_micros_ = 0;
  Uint128 received_micros_ = 0;
  std::uint64_t given_back_ = 0;
  DriftWindow window_;
};

TEST(DriftWindow, EqualCountersAreOk) {
  Traffic traffic;
  EXPECT_EQ(traffic.Run(600, 600, 60 * kMinute), DriftState::kOk);
  EXPECT_EQ(traffic.window_.reading().span_ns, 9 * kMinute + 50 * kSecond);  // less than a window
  EXPECT_EQ(traffic.window_.reading().admitted, 5900u);
  EXPECT_EQ(traffic.window_.reading().received, 5900u);
}

TEST(DriftWindow, TheIncidentDriftsAfterTenMinutesAndNotBefore) {
  Traffic traffic;
  EXPECT_EQ(traffic.Run(600, 1380, 2 * kMinute + 20 * kSecond), DriftState::kOk);  // too young to judge
  EXPECT_EQ(traffic.Run(600, 1380, 10 * kSecond), DriftState::kSuspect);
  EXPECT_EQ(traffic.Run(600, 1380, 7 * kMinute + 20 * kSecond), DriftState::kSuspect);
  EXPECT_EQ(traffic.now_ns_ - kStart, 9 * kMinute + 50 * kSecond);
  EXPECT_EQ(traffic.Run(600, 1380, 10 * kSecond), DriftState::kDrifting);
  EXPECT_EQ(traffic.window_.reading().out_since_ns, kStart);
}

TEST(DriftWindow, TheIncidentAfterQuietYears) {
  Traffic traffic;
  traffic.Run(600, 600, 30 * kMinute);
  // 780 a minute too many of 5,900: 15 % are reached within 69 s.
  EXPECT_EQ(traffic.Run(600, 1380, 60 * kSecond), DriftState::kOk);
  EXPECT_EQ(traffic.Run(600, 1380, 10 * kSecond), DriftState::kSuspect);
  EXPECT_EQ(traffic.Run(600, 1380, 9 * kMinute + 40 * kSecond), DriftState::kSuspect);
  EXPECT_EQ(traffic.Run(600, 1380, 10 * kSecond), DriftState::kDrifting);
  EXPECT_EQ(traffic.now_ns_ - kStart, 41 * kMinute);
  EXPECT_EQ(traffic.Run(600, 1380, 47 * kMinute), DriftState::kDrifting);
  // It ends when the window holds less than 15 % too many.
  EXPECT_EQ(traffic.Run(600, 600, 8 * kMinute + 40 * kSecond), DriftState::kDrifting);
  EXPECT_EQ(traffic.Run(600, 600, 10 * kSecond), DriftState::kOk);
  EXPECT_FALSE(traffic.window_.reading().out_since_ns.has_value());
}

TEST(DriftWindow, TheBoundsAreExact) {
  const auto judge = [](std::uint64_t admitted, std::uint64_t received) {
    DriftWindow window{DriftSettings()};
    window.Add(kStart, {.admitted = 0, .received = 0});
    window.Add(kStart + 5 * kMinute, {.admitted = admitted, .received = received});
    return window.reading().state;
  };
  EXPECT_EQ(judge(100'000'000, 115'000'000), DriftState::kOk);
  EXPECT_EQ(judge(100'000'000, 115'000'001), DriftState::kSuspect);
  EXPECT_EQ(judge(115'000'000, 100'000'000), DriftState::kOk);
  EXPECT_EQ(judge(115'000'001, 100'000'000), DriftState::kSuspect);
  EXPECT_EQ(judge(~std::uint64_t{0}, ~std::uint64_t{0}), DriftState::kOk);  // nothing wraps
  EXPECT_EQ(judge(~std::uint64_t{0}, 0), DriftState::kSuspect);
  EXPECT_EQ(judge(0, 100), DriftState::kSuspect);
  EXPECT_EQ(judge(0, 99), DriftState::kOk);  // fewer than the minimum
  EXPECT_EQ(judge(99, 0), DriftState::kOk);
  EXPECT_EQ(judge(100, 0), DriftState::kSuspect);
}

TEST(DriftWindow, SettingsAreTheLimits) {
  Traffic traffic({.ratio_micros = 2'000'000, .window_ns = kMinute, .minimum = 10});
  EXPECT_EQ(traffic.Run(60, 119, 10 * kMinute, kSecond), DriftState::kOk);
  EXPECT_EQ(traffic.Run(60, 240, 59 * kSecond, kSecond), DriftState::kSuspect);
  EXPECT_EQ(traffic.Run(60, 240, 2 * kMinute, kSecond), DriftState::kDrifting);
}

TEST(DriftWindow, AdmittedAndNeverSeenIsDriftToo) {
  Traffic traffic;
  EXPECT_EQ(traffic.Run(600, 500, 10 * kMinute), DriftState::kDrifting);
}

TEST(DriftWindow, QuietLimitsDoNotFlap) {
  Traffic traffic;
  for (int i = 0; i < 60; ++i) {
    EXPECT_EQ(traffic.Run(0, 10, kMinute), DriftState::kOk);
    EXPECT_EQ(traffic.Run(10, 0, kMinute), DriftState::kOk);
  }
}

TEST(DriftWindow, OneBurstLeavesTheWindowBeforeItIsDrift) {
  for (const std::int64_t before_ns : {std::int64_t{0}, kMinute, 30 * kMinute}) {
    Traffic traffic;
    traffic.Run(600, 600, before_ns);
    traffic.received_micros_ += Uint128{1'000'000} * 100'000;
    for (int i = 0; i < 120; ++i) EXPECT_NE(traffic.Run(600, 600, 10 * kSecond), DriftState::kDrifting);
    EXPECT_EQ(traffic.window_.reading().state, DriftState::kOk);
  }
}

TEST(DriftWindow, WhatWasAdmittedBeforeAnyReportCountsNeitherWay) {
  DriftWindow window{DriftSettings()};
  window.Add(kStart, {.admitted = 1'000'000, .received = 0});
  window.Add(kStart + 5 * kMinute, {.admitted = 1'001'000, .received = 1'000});
  EXPECT_EQ(window.reading().state, DriftState::kOk);
  EXPECT_EQ(window.reading().admitted, 1'000u);
}

TEST(DriftWindow, SilenceEndsTheComparison) {
  Traffic traffic;
  EXPECT_EQ(traffic.Run(600, 1380, 10 * kMinute), DriftState::kDrifting);
  traffic.window_.Age(traffic.now_ns_ + 10 * kMinute);
  EXPECT_EQ(traffic.window_.reading().state, DriftState::kDrifting);
  traffic.window_.Age(traffic.now_ns_ + 10 * kMinute + 1);
  EXPECT_EQ(traffic.window_.reading().state, DriftState::kOk);
  EXPECT_EQ(traffic.window_.reading().span_ns, 0);
  // What was admitted meanwhile, and nobody reported, counts neither way.
  traffic.now_ns_ += kMinute * 60;
  traffic.admitted_micros_ += Uint128{1'000'000} * 1'000'000;
  EXPECT_EQ(traffic.Run(600, 600, 20 * kMinute), DriftState::kOk);
}

TEST(DriftWindow, AnAdmittedCounterThatFellBeginsAnew) {
  Traffic traffic;
  EXPECT_EQ(traffic.Run(600, 1380, 10 * kMinute), DriftState::kDrifting);
  traffic.admitted_micros_ = 0;
  EXPECT_EQ(traffic.Run(600, 600, 5 * kMinute), DriftState::kOk);
  EXPECT_LT(traffic.window_.reading().admitted, 3001u);
}

TEST(DriftWindow, WhatIsGivenBackWasNotAdmitted) {
  Traffic traffic;
  for (int i = 0; i < 120; ++i) {
    // Each ten seconds 100 are reserved, and 40 of them given back.
    EXPECT_EQ(traffic.Run(600, 360, 10 * kSecond), DriftState::kOk) << i;
    traffic.given_back_ += 40;
    traffic.Report();
  }
  // Of the oldest point the 40 were still to come.
  EXPECT_EQ(traffic.window_.reading().admitted + 40, traffic.window_.reading().received);
  // More comes back than is admitted: none is.
  traffic.given_back_ += 100'000;
  traffic.Report();
  EXPECT_EQ(traffic.window_.reading().admitted, 0u);
  EXPECT_EQ(traffic.window_.reading().state, DriftState::kSuspect);
}

TEST(DriftWindow, OneClockAReadingBehindTheLastCountsAsTheLast) {
  DriftWindow window{DriftSettings()};
  window.Add(kStart, {.admitted = 0, .received = 0});
  window.Add(kStart + 5 * kMinute, {.admitted = 1'000, .received = 1'000});
  window.Add(kStart - kMinute, {.admitted = 2'000, .received = 2'000});
  EXPECT_EQ(window.reading().span_ns, 5 * kMinute);
  EXPECT_EQ(window.reading().received, 2'000u);
}

TEST(DriftWindow, BoundedHoweverOftenReportsCome) {
  Traffic traffic({.ratio_micros = 1'150'000, .window_ns = kMinute, .minimum = 10});
  EXPECT_EQ(traffic.Run(60'000, 60'000, kMinute, kSecond / 100), DriftState::kOk);
  EXPECT_EQ(traffic.Run(60'000, 90'000, 10 * kSecond, kSecond / 100), DriftState::kOk);
  EXPECT_EQ(traffic.Run(60'000, 90'000, 67 * kSecond, kSecond / 100), DriftState::kSuspect);
  EXPECT_EQ(traffic.Run(60'000, 90'000, 20 * kSecond, kSecond / 100), DriftState::kDrifting);
  EXPECT_GT(traffic.window_.reading().span_ns, 58 * kSecond);
}

}  // namespace
}  // namespace ebbgate

// Reservations on one bucket, ("L", "k"), in few words.
#ifndef EBBGATE_TESTS_UNIT_ENGINE_RESERVATIONS_FIXTURE_H_
#define EBBGATE_TESTS_UNIT_ENGINE_RESERVATIONS_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "server/engine/engine.h"
#include "server/limiter/manual_time.h"
#include "tests/support/limits.h"

namespace ebbgate::testing {

inline constexpr std::int64_t kMs = 1'000'000;

class ReservationsTest : public ::testing::Test {
 protected:
  void Make(const std::vector<Limit>& limits, const EngineOptions& options = {}) {
    engine_ = std::make_unique<Engine>(options, time_);
    engine_->InstallLimits(limits);
  }
  // Moves to `ns` after the start.
  void At(std::int64_t ns) { time_.MoveTo(kStartNs + ns); }

  ReserveAnswer Reserve(const std::vector<ChargeRequest>& charges, std::int64_t max_wait_ns,
                        std::int64_t hold_ns = kDefaultHoldNs, absl::string_view request_id = {}) {
    ReserveAnswer answer;
    engine_->Reserve(
        {.call = {.charges = charges, .request_id = request_id}, .max_wait_ns = max_wait_ns, .hold_ns = hold_ns},
        answer);
    return answer;
  }
  // The id of a hold on ("L", "k") that must be granted.
  std::string Granted(std::int64_t cost, std::int64_t max_wait_ns, std::int64_t act_after_ns,
                      std::int64_t hold_ns = kDefaultHoldNs) {
    const ReserveAnswer answer = Reserve({{"L", "k", cost}}, max_wait_ns, hold_ns);
    EXPECT_EQ(answer.call.error, nullptr);
    EXPECT_TRUE(answer.call.allowed);
    EXPECT_EQ(answer.act_after_ns, act_after_ns);
    EXPECT_EQ(answer.expires_after_ns, act_after_ns + hold_ns);
    return answer.reservation_id;
  }
  SettleAnswer Settle(const std::string& id, const std::vector<std::int64_t>& actual) {
    SettleAnswer answer;
    engine_->Settle(id, actual, answer);
    return answer;
  }
  SettleAnswer Cancel(const std::string& id) {
    SettleAnswer answer;
    engine_->Cancel(id, answer);
    return answer;
  }
  std::int64_t Remaining() { return Ask(*engine_, "L", "k", 0).charges[0].remaining; }
  LimitCounters Counters() { return engine_->Counters().limits.front(); }

  static constexpr std::int64_t kStartNs = 1000 * kSecond;
  ManualTime time_{1'767'225'600 * kSecond, kStartNs};  // 2026-01-01T00:00:00Z
  std::unique_ptr<Engine> engine_;
};

inline void ExpectEnd(const SettleAnswer& answer, HoldState state, bool repeated) {
  EXPECT_EQ(answer.error, nullptr);
  EXPECT_EQ(answer.state, state);
  EXPECT_EQ(answer.repeated, repeated);
}

}  // namespace ebbgate::testing

#endif  // EBBGATE_TESTS_UNIT_ENGINE_RESERVATIONS_FIXTURE_H_

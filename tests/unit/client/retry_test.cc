#include "client/retry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "google/rpc/error_details.pb.h"
#include "tests/unit/client/fake_surroundings.h"

namespace ebbgate::client {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Lt;
using ::testing::SizeIs;

const absl::Status kUnavailable = absl::UnavailableError("gone");

absl::Status UnavailableFor(absl::Duration wait) {
  google::rpc::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(absl::ToInt64Seconds(wait));
  absl::Status status = kUnavailable;
  status.SetPayload("type.googleapis.com/google.rpc.RetryInfo", absl::Cord(info.SerializeAsString()));
  return status;
}

class RetryTest : public testing::Test {
 protected:
  // Answers each attempt with the next of `answers`, the last one for ever.
  absl::Status Run(std::vector<absl::Status> answers, absl::Duration timeout = absl::Minutes(1)) {
    left_.clear();
    return WithRetries(options_, surroundings_, timeout, [&, next = std::size_t{0}](absl::Duration left) mutable {
      left_.push_back(left);
      surroundings_.now += takes_;
      const absl::Status answer = answers[next];
      if (next + 1 < answers.size()) ++next;
      return answer;
    });
  }

  RetryOptions options_;
  FakeSurroundings surroundings_;
  absl::Duration takes_ = absl::ZeroDuration();
  std::vector<absl::Duration> left_;  // what each attempt was given
};

TEST_F(RetryTest, AnAnswerIsNotAskedForTwice) {
  EXPECT_TRUE(Run({absl::OkStatus()}).ok());
  EXPECT_THAT(left_, ElementsAre(absl::Minutes(1)));
  EXPECT_THAT(surroundings_.slept, IsEmpty());
}

TEST_F(RetryTest, OnlyUnavailableIsAskedAgain) {
  for (const absl::StatusCode code :
       {absl::StatusCode::kDeadlineExceeded, absl::StatusCode::kInvalidArgument, absl::StatusCode::kNotFound,
        absl::StatusCode::kInternal, absl::StatusCode::kUnknown, absl::StatusCode::kCancelled}) {
    EXPECT_EQ(Run({absl::Status(code, "no"), absl::OkStatus()}).code(), code);
    EXPECT_THAT(left_, SizeIs(1)) << code;
  }
  EXPECT_TRUE(Run({kUnavailable, absl::OkStatus()}).ok());
  EXPECT_THAT(left_, SizeIs(2));
}

TEST_F(RetryTest, PausesAreRandomPartsOfATimeThatDoubles) {
  surroundings_.fixed = true;
  surroundings_.byte = 0xff;  // nearly all of it
  options_.attempts = 7;
  EXPECT_EQ(Run({kUnavailable}), kUnavailable);
  ASSERT_THAT(surroundings_.slept, SizeIs(6));
  const std::int64_t whole_ms[] = {50, 100, 200, 400, 800, 1000};
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(surroundings_.slept[i], absl::Milliseconds(whole_ms[i]) * 65'535 / 65'536) << i;
  }
  surroundings_.byte = 0;
  surroundings_.slept.clear();
  Run({kUnavailable}).IgnoreError();
  EXPECT_THAT(surroundings_.slept, Each(absl::ZeroDuration()));
}

TEST_F(RetryTest, AttemptsAreBounded) {
  options_.attempts = 3;
  EXPECT_EQ(Run({kUnavailable}), kUnavailable);
  EXPECT_THAT(left_, SizeIs(3));
  options_.attempts = 1;
  EXPECT_EQ(Run({kUnavailable}), kUnavailable);
  EXPECT_THAT(left_, SizeIs(1));
}

TEST_F(RetryTest, EachAttemptIsGivenWhatIsLeft) {
  surroundings_.fixed = true;  // no pauses
  takes_ = absl::Seconds(3);
  EXPECT_EQ(Run({kUnavailable}, absl::Seconds(10)), kUnavailable);
  EXPECT_THAT(left_, ElementsAre(absl::Seconds(10), absl::Seconds(7), absl::Seconds(4), absl::Seconds(1)));
}

TEST_F(RetryTest, NoPauseIsBegunThatEndsAfterTheDeadline) {
  surroundings_.fixed = true;
  surroundings_.byte = 0x80;
  EXPECT_EQ(Run({kUnavailable}, absl::Milliseconds(60)), kUnavailable);
  // Half of 50 ms, half of 100 ms would be beyond.
  EXPECT_THAT(left_, SizeIs(2));
  EXPECT_THAT(surroundings_.slept, ElementsAre(Lt(absl::Milliseconds(26))));
}

TEST_F(RetryTest, TheServersWaitIsKeptAndSpread) {
  surroundings_.fixed = true;
  surroundings_.byte = 0x80;
  EXPECT_TRUE(Run({UnavailableFor(absl::Seconds(1)), absl::OkStatus()}).ok());
  ASSERT_THAT(surroundings_.slept, SizeIs(1));
  EXPECT_GT(surroundings_.slept[0], absl::Seconds(1));
  EXPECT_LT(surroundings_.slept[0], absl::Seconds(1) + absl::Milliseconds(50));
  // It does not fit: the caller hears of it at once.
  surroundings_.slept.clear();
  EXPECT_EQ(Run({UnavailableFor(absl::Seconds(1)), absl::OkStatus()}, absl::Seconds(1)).code(),
            absl::StatusCode::kUnavailable);
  EXPECT_THAT(surroundings_.slept, IsEmpty());
}

TEST(SurroundingsTest, RequestIdsDiffer) {
  const auto machine = RealSurroundings();
  const std::string id = NewRequestId(*machine);
  EXPECT_THAT(id, testing::MatchesRegex("[0-9a-f]{32}"));
  EXPECT_NE(id, NewRequestId(*machine));
  FakeSurroundings without;
  without.has_randomness = false;
  EXPECT_EQ(NewRequestId(without), "");
}

TEST(SurroundingsTest, TheMachinesTimeGoesOn) {
  const auto machine = RealSurroundings();
  const absl::Duration before = machine->Now();
  machine->Sleep(absl::Milliseconds(1));
  EXPECT_GE(machine->Now() - before, absl::Milliseconds(1));
}

}  // namespace
}  // namespace ebbgate::client

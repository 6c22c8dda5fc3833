// The files in deploy/examples are the first that people copy: they must be right, and say nothing doubtful.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "server/config/limits_file.h"

namespace ebbgate {
namespace {

const std::string kExamples = EBBGATE_SOURCE_DIR "/deploy/examples/";

TEST(Examples, LimitsAreValidAndShowEveryAlgorithm) {
  const absl::StatusOr<std::vector<Limit>> limits = LoadLimits(kExamples + "limits.yaml");
  ASSERT_TRUE(limits.ok()) << limits.status();
  EXPECT_THAT(LintLimits(*limits), ::testing::IsEmpty());
  std::set<Algorithm> algorithms;
  for (const Limit& limit : *limits) algorithms.insert(limit.parameters.algorithm);
  EXPECT_EQ(algorithms.size(), 5u);
}

TEST(Examples, LimitsShowWhatReservationsMayDo) {
  const absl::StatusOr<std::vector<Limit>> limits = LoadLimits(kExamples + "limits.yaml");
  ASSERT_TRUE(limits.ok()) << limits.status();
  bool paced = false, bounded = false;
  for (const Limit& limit : *limits) {
    paced |= limit.parameters.pace;
    bounded |= limit.max_debt.has_value() && limit.max_holds != kDefaultMaxHoldsPerKey;
  }
  EXPECT_TRUE(paced && bounded);
}

TEST(Examples, LimitsHoldWhatTheReadmeTries) {
  const absl::StatusOr<std::vector<Limit>> limits = LoadLimits(kExamples + "limits.yaml");
  ASSERT_TRUE(limits.ok()) << limits.status();
  const Limit& user = limits->at(0);
  EXPECT_EQ(user.name, "api-user");
  EXPECT_EQ(Describe(user.parameters), "capacity 4, refill 2 per 1s");
  ASSERT_EQ(user.overrides.size(), 1u);
  EXPECT_EQ(user.overrides[0].key, "partner-*");
  EXPECT_EQ(Describe(user.overrides[0].parameters), "capacity 400, refill 200 per 1s");
  EXPECT_EQ(limits->at(1).name, "daily");
  EXPECT_EQ(Describe(limits->at(1).parameters), "1000 per day in America/New_York");
}

}  // namespace
}  // namespace ebbgate

#include "server/config/duration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace ebbgate {
namespace {

using ::testing::HasSubstr;

struct Good {
  const char* text;
  std::int64_t ns;
};

TEST(Duration, ReadsUnitsCombinationsAndDecimals) {
  const Good cases[] = {
      {"0s", 0},
      {"1ns", 1},
      {"333333334ns", 333'333'334},
      {"7us", 7'000},
      {"200ms", 200'000'000},
      {"1s", 1'000'000'000},
      {"1.5s", 1'500'000'000},
      {"1.50s", 1'500'000'000},
      {"0.000000001s", 1},
      {"0.5h", 1'800'000'000'000},
      {"2m", 120'000'000'000},
      {"1h30m", 5'400'000'000'000},
      {"1d", 86'400'000'000'000},
      {"1d2h3m4s5ms6us7ns", 93'784'005'006'007},
      {"1m0.5s", 60'500'000'000},
      {"007s", 7'000'000'000},
      {"9223372036854775807ns", INT64_MAX},
      {"9223372036.854775807s", INT64_MAX},
  };
  for (const Good& good : cases) {
    const absl::StatusOr<std::int64_t> ns = ParseDurationNs(good.text);
    ASSERT_TRUE(ns.ok()) << good.text << ": " << ns.status();
    EXPECT_EQ(*ns, good.ns) << good.text;
  }
}

struct Bad {
  const char* text;
  const char* reason;
};

TEST(Duration, SaysWhatIsWrong) {
  const Bad cases[] = {
      {"", "is empty"},
      {"60", "has no unit; write 60s"},
      {"1.5", "has no unit; write 1.5s"},
      {"1h30", "has no unit"},
      {"s", "is not a length of time"},
      {".5s", "is not a length of time"},
      {"1.s", "no digit after its point"},
      {"-1s", "is negative"},
      {"+1s", "is not a length of time"},
      {"1 s", "unknown unit \" s\""},
      {" 1s", "is not a length of time"},
      {"1s ", "unknown unit \"s \""},
      {"1sec", "unknown unit \"sec\""},
      {"1S", "unknown unit"},
      {"1w", "unknown unit"},
      {"1e3s", "unknown unit \"e\""},
      {"0x10s", "unknown unit"},
      {"1m1h", "the larger first"},
      {"1s1s", "each unit once"},
      {"0.5ns", "finer than a nanosecond"},
      {"0.0000000001s", "finer than a nanosecond"},
      {"0.00000000000000000001h", "finer than a nanosecond"},
      {"9223372036854775808ns", "too long"},
      {"106752d", "too long"},
      {"99999999999999999999999999s", "too long"},
      {"1\xFFs", "unknown unit"},
  };
  for (const Bad& bad : cases) {
    const absl::StatusOr<std::int64_t> ns = ParseDurationNs(bad.text);
    ASSERT_FALSE(ns.ok()) << bad.text;
    EXPECT_EQ(ns.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(ns.status().message()), HasSubstr(bad.reason)) << bad.text;
  }
}

}  // namespace
}  // namespace ebbgate

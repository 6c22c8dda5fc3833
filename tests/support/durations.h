// Lengths of time in nanoseconds, for tests.
#ifndef EBBGATE_TESTS_SUPPORT_DURATIONS_H_
#define EBBGATE_TESTS_SUPPORT_DURATIONS_H_

#include <cstdint>

namespace ebbgate::testing {

inline constexpr std::int64_t kSecond = 1'000'000'000;
inline constexpr std::int64_t kHour = 3600 * kSecond;

}  // namespace ebbgate::testing

#endif  // EBBGATE_TESTS_SUPPORT_DURATIONS_H_

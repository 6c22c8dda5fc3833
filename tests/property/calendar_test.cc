// **Calendar** windows against the C library's idea of local time, which reads the same tz database with other code,
// and against a definition that needs no thought: walk through every second around each change of the clocks.
#include "server/limiter/calendar.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/property/random.h"
#include "tests/support/durations.h"

namespace ebbgate::testing {
namespace {

constexpr std::int64_t kFirst = 0;                  // 1970
constexpr std::int64_t kEnd = 4'102'444'800;        // 2100
constexpr std::int64_t kListedEnd = 2'208'988'800;  // 2040: later changes follow rules, not the database's list
constexpr std::int64_t kStep = 3 * 3600;            // of two of these, at most one sees a change of the clocks
constexpr WindowUnit kDateUnits[] = {WindowUnit::kDay, WindowUnit::kWeek, WindowUnit::kMonth, WindowUnit::kYear};
constexpr WindowUnit kAllUnits[] = {WindowUnit::kLength, WindowUnit::kMinute, WindowUnit::kHour, WindowUnit::kDay,
                                    WindowUnit::kWeek,   WindowUnit::kMonth,  WindowUnit::kYear};

Window Of(WindowUnit unit, const std::string& name) {
  Window window;
  window.unit = unit;
  if (unit == WindowUnit::kLength) window.length_ns = 7 * kHour;
  EXPECT_TRUE(absl::LoadTimeZone(name, &window.calendar)) << name;
  return window;
}

// The zones of the tz database, one name each.
std::vector<std::string> AllZones() {
  std::ifstream table("/usr/share/zoneinfo/zone1970.tab");
  std::vector<std::string> names;
  for (std::string line; std::getline(table, line);) {
    std::istringstream fields(line);
    std::string countries, place, name;
    if (line.empty() || line[0] == '#' || !(fields >> countries >> place >> name)) continue;
    names.push_back(name);
  }
  return names;
}

// Local time by the C library. One zone at a time in the whole process.
class LocalTime {
 public:
  explicit LocalTime(const std::string& zone) {
    setenv("TZ", (":" + zone).c_str(), 1);
    tzset();
  }
  ~LocalTime() {
    unsetenv("TZ");
    tzset();
  }

  tm At(std::int64_t second) const {
    const time_t time = second;
    tm fields;
    localtime_r(&time, &fields);
    return fields;
  }

  // A number that names the local day, week, month or year and grows with it.
  std::int64_t Number(WindowUnit unit, std::int64_t second) const {
    const tm fields = At(second);
    if (unit == WindowUnit::kYear) return fields.tm_year;
    if (unit == WindowUnit::kMonth) return fields.tm_year * 12LL + fields.tm_mon;
    // The days' own calendar, in which no clock is ever changed.
    tm midnight = {};
    midnight.tm_year = fields.tm_year;
    midnight.tm_mon = fields.tm_mon;
    midnight.tm_mday = fields.tm_mday;
    const std::int64_t day = timegm(&midnight) / 86'400;
    return unit == WindowUnit::kDay ? day : (day + 3 - (fields.tm_wday == 0 ? 6 : fields.tm_wday - 1) + 7) / 7;
  }
};

// A window begins when a number is reached that was never reached before: a clock set back reopens nothing.
std::vector<std::int64_t> Beginnings(const LocalTime& local, WindowUnit unit, std::int64_t from, std::int64_t to) {
  std::vector<std::int64_t> beginnings;
  std::int64_t highest = local.Number(unit, from);
  const auto look = [&](std::int64_t second) {
    const std::int64_t number = local.Number(unit, second);
    if (number > highest) beginnings.push_back(second);
    highest = std::max(highest, number);
  };
  for (std::int64_t at = from + kStep; at < to; at += kStep) {
    if (local.At(at).tm_gmtoff != local.At(at - kStep).tm_gmtoff) {
      for (std::int64_t second = at - kStep + 1; second <= at; ++second) look(second);
    } else if (local.Number(unit, at) > highest) {
      // The clock runs evenly here, so the number only grows.
      std::int64_t before = at - kStep, after = at;
      while (after - before > 1) {
        const std::int64_t middle = before + (after - before) / 2;
        (local.Number(unit, middle) > highest ? after : before) = middle;
      }
      look(after);
      look(at);
    }
  }
  return beginnings;
}

// The seconds at which the clocks change.
std::vector<std::int64_t> Changes(const LocalTime& local, std::int64_t from, std::int64_t to) {
  std::vector<std::int64_t> changes;
  for (std::int64_t at = from + kStep; at < to; at += kStep) {
    std::int64_t before = at - kStep, after = at;
    if (local.At(before).tm_gmtoff == local.At(after).tm_gmtoff) continue;
    while (after - before > 1) {
      const std::int64_t middle = before + (after - before) / 2;
      (local.At(middle).tm_gmtoff != local.At(before).tm_gmtoff ? after : before) = middle;
    }
    changes.push_back(after);
  }
  return changes;
}

class CalendarOf : public ::testing::TestWithParam<const char*> {};

// Skipped and repeated midnights, clocks set back across midnight, a day that did not come, half hours and seconds.
INSTANTIATE_TEST_SUITE_P(Zones, CalendarOf,
                         ::testing::Values("America/New_York", "America/Santiago", "Asia/Beirut", "Africa/Cairo",
                                           "America/Asuncion", "America/Havana", "America/St_Johns", "Pacific/Apia",
                                           "Australia/Lord_Howe", "Africa/Monrovia", "America/Sao_Paulo", "Asia/Gaza",
                                           "Africa/Casablanca", "Antarctica/Troll", "Asia/Tehran", "Pacific/Kwajalein"),
                         [](const auto& zone) {
                           std::string name = zone.param;
                           for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

TEST_P(CalendarOf, WindowsBeginWhereANumberIsFirstReached) {
  const LocalTime local(GetParam());
  for (const WindowUnit unit : kDateUnits) {
    const Window window = Of(unit, GetParam());
    const std::vector<std::int64_t> beginnings = Beginnings(local, unit, kFirst, kListedEnd);
    ASSERT_GE(beginnings.size(), 69u);
    Random random(Seed(), static_cast<std::uint64_t>(unit));
    for (std::size_t i = 0; i + 1 < beginnings.size(); ++i) {
      const std::int64_t start_ns = beginnings[i] * kSecond, end_ns = beginnings[i + 1] * kSecond;
      for (const std::int64_t at : {start_ns, end_ns - 1, random.Between(start_ns, end_ns - 1)}) {
        const WindowBounds bounds = WindowAt(window, at);
        ASSERT_EQ(bounds.start_ns, start_ns) << Name(unit) << " at " << at;
        ASSERT_EQ(bounds.end_ns, end_ns) << Name(unit) << " at " << at;
      }
    }
  }
}

// Hours and minutes: from one full local hour (or change of the clocks) to the next, told second by second.
TEST_P(CalendarOf, HoursEndOnTheHourAndWhereTheClocksChange) {
  const LocalTime local(GetParam());
  for (const auto& [unit, length] : {std::pair{WindowUnit::kHour, 3600}, std::pair{WindowUnit::kMinute, 60}}) {
    const Window window = Of(unit, GetParam());
    std::vector<std::int64_t> around = Changes(local, kFirst, kListedEnd);
    Random random(Seed(), static_cast<std::uint64_t>(length));
    for (int i = 0; i < 20; ++i) around.push_back(random.Between(kFirst, kEnd));
    for (const std::int64_t middle : around) {
      const auto begins = [&](std::int64_t second) {
        const tm now = local.At(second), before = local.At(second - 1);
        const std::int64_t shown = second + now.tm_gmtoff;
        return shown % length == 0 || now.tm_gmtoff != before.tm_gmtoff;
      };
      std::int64_t start = middle - 2 * length;
      while (!begins(start)) --start;
      for (std::int64_t second = start + 1; second < middle + 3 * length; ++second) {
        if (!begins(second)) continue;
        const WindowBounds bounds = WindowAt(window, random.Between(start * kSecond, second * kSecond - 1));
        ASSERT_EQ(bounds.start_ns, start * kSecond) << Name(unit);
        ASSERT_EQ(bounds.end_ns, second * kSecond) << Name(unit);
        start = second;
      }
    }
  }
}

// start <= t < end, and the windows before and after begin and end there: no gap, no overlap.
TEST(Calendar, WindowsOfAllZonesTileTime) {
  const std::vector<std::string> zones = AllZones();
  ASSERT_GT(zones.size(), 300u);
  for (std::size_t i = 0; i < zones.size(); ++i) {
    SCOPED_TRACE(zones[i] + ": " + Again(Seed(), static_cast<std::int64_t>(i)));
    Random random(Seed(), i);
    for (const WindowUnit unit : kAllUnits) {
      const Window window = Of(unit, zones[i]);
      for (int n = 0; n < Times(40); ++n) {
        const std::int64_t at = random.Between(kFirst, kEnd * kSecond);
        const WindowBounds bounds = WindowAt(window, at);
        ASSERT_LE(bounds.start_ns, at);
        ASSERT_LT(at, bounds.end_ns);
        ASSERT_EQ(WindowAt(window, bounds.start_ns).end_ns, bounds.end_ns);
        ASSERT_EQ(WindowAt(window, bounds.end_ns - 1).start_ns, bounds.start_ns);
        ASSERT_EQ(WindowAt(window, bounds.end_ns).start_ns, bounds.end_ns) << Name(unit) << " after " << at;
        ASSERT_EQ(WindowAt(window, bounds.start_ns - 1).end_ns, bounds.start_ns) << Name(unit) << " before " << at;
      }
    }
  }
}

// Every change of the clocks of every zone in these 130 years: no window around it is lost or met twice.
TEST(Calendar, WindowsAroundEveryChangeOfTheClocksTileTime) {
  std::size_t changes = 0;
  for (const std::string& name : AllZones()) {
    SCOPED_TRACE(name);
    absl::TimeZone zone;
    ASSERT_TRUE(absl::LoadTimeZone(name, &zone));
    absl::Time at = absl::FromUnixSeconds(kFirst);
    for (absl::TimeZone::CivilTransition change; zone.NextTransition(at, &change);) {
      at = absl::FromCivil(change.to, zone);
      const std::int64_t change_ns = absl::ToUnixNanos(zone.At(change.to).trans);
      at = absl::FromUnixNanos(change_ns);
      if (absl::ToUnixSeconds(at) >= kEnd) break;
      ++changes;
      for (const WindowUnit unit : kAllUnits) {
        const Window window = Of(unit, name);
        // From a day before to a day after, from window to window (minutes: a few).
        std::int64_t now = change_ns - (unit == WindowUnit::kMinute ? 90 * kSecond : 25 * kHour);
        for (WindowBounds bounds = WindowAt(window, now); now < change_ns + 2 * 60 * kSecond; now = bounds.end_ns) {
          bounds = WindowAt(window, now);
          ASSERT_LE(bounds.start_ns, now);
          ASSERT_LT(now, bounds.end_ns);
          ASSERT_EQ(WindowAt(window, bounds.end_ns).start_ns, bounds.end_ns) << Name(unit) << " at " << now;
        }
      }
    }
  }
  EXPECT_GT(changes, 10'000u);
}

}  // namespace
}  // namespace ebbgate::testing

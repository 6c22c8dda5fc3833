#include "server/limiter/calendar.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tests/support/core_bucket.h"

namespace ebbgate::testing {
namespace {

constexpr std::int64_t kMinute = 60 * kSecond;
constexpr std::int64_t kDay = 24 * kHour;

absl::TimeZone Zone(const std::string& name) {
  absl::TimeZone zone;
  EXPECT_TRUE(absl::LoadTimeZone(name, &zone)) << name;
  return zone;
}

std::int64_t Utc(const std::string& text) {
  absl::Time time;
  std::string error;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, text, &time, &error)) << text << ": " << error;
  return absl::ToUnixNanos(time);
}

std::string Text(std::int64_t wall_ns) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E*SZ", absl::FromUnixNanos(wall_ns), absl::UTCTimeZone());
}

Window Of(WindowUnit unit, const std::string& zone) { return {.unit = unit, .length_ns = 0, .calendar = Zone(zone)}; }

// The window is [from, to) at its first, its last and a middle nanosecond, and its neighbours begin where it ends.
void ExpectWindow(const Window& window, const std::string& from, const std::string& to) {
  const std::int64_t start_ns = Utc(from);
  const std::int64_t end_ns = Utc(to);
  for (const std::int64_t at : {start_ns, start_ns + (end_ns - start_ns) / 3, end_ns - 1}) {
    const WindowBounds bounds = WindowAt(window, at);
    EXPECT_EQ(Text(bounds.start_ns), from) << "at " << Text(at);
    EXPECT_EQ(Text(bounds.end_ns), to) << "at " << Text(at);
  }
  EXPECT_EQ(Text(WindowAt(window, start_ns - 1).end_ns), from);
  EXPECT_EQ(Text(WindowAt(window, end_ns).start_ns), to);
}

void ExpectDay(const std::string& zone, const std::string& from, const std::string& to) {
  SCOPED_TRACE(zone);
  ExpectWindow(Of(WindowUnit::kDay, zone), from, to);
}

TEST(Calendar, LengthsAreAlignedToTheEpoch) {
  const Window minute = {.unit = WindowUnit::kLength, .length_ns = kMinute, .calendar = absl::UTCTimeZone()};
  ExpectWindow(minute, "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z");
  ExpectWindow(minute, "1969-12-31T23:59:00Z", "1970-01-01T00:00:00Z");
  const Window seven = {.unit = WindowUnit::kLength, .length_ns = 7, .calendar = absl::UTCTimeZone()};
  EXPECT_EQ(WindowAt(seven, 20).start_ns, 14);
  EXPECT_EQ(WindowAt(seven, 20).end_ns, 21);
  EXPECT_EQ(WindowAt(seven, -1).start_ns, -7);
  EXPECT_EQ(WindowAt(seven, -7).start_ns, -7);
  EXPECT_EQ(WindowAt(seven, -8).start_ns, -14);
}

TEST(Calendar, DaysOf23And24And25HoursInNewYork) {
  ExpectDay("America/New_York", "2026-03-07T05:00:00Z", "2026-03-08T05:00:00Z");
  ExpectDay("America/New_York", "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z");
  ExpectDay("America/New_York", "2026-07-01T04:00:00Z", "2026-07-02T04:00:00Z");
  ExpectDay("America/New_York", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z");
}

TEST(Calendar, ADayWhoseMidnightIsSkippedBeginsAtTheChange) {
  ExpectDay("America/Santiago", "2024-09-08T04:00:00Z", "2024-09-09T03:00:00Z");
  ExpectDay("Asia/Beirut", "2024-03-30T22:00:00Z", "2024-03-31T21:00:00Z");
  ExpectDay("Africa/Cairo", "2024-04-25T22:00:00Z", "2024-04-26T21:00:00Z");
  ExpectDay("America/Asuncion", "2023-10-01T04:00:00Z", "2023-10-02T03:00:00Z");
}

TEST(Calendar, MidnightThatComesTwiceTurnsTheDayOnce) {
  // Cuba: at 01:00 back to 00:00.
  ExpectDay("America/Havana", "2024-11-03T04:00:00Z", "2024-11-04T05:00:00Z");
}

TEST(Calendar, AClockSetBackToTheDayBeforeKeepsTheNewDay) {
  // Egypt and Chile: at 24:00 back to 23:00, so that midnight comes once, an hour later.
  ExpectDay("Africa/Cairo", "2024-10-30T21:00:00Z", "2024-10-31T22:00:00Z");
  ExpectDay("America/Santiago", "2024-04-06T03:00:00Z", "2024-04-07T04:00:00Z");
  // Newfoundland until 2011: at 00:01 back to 23:01. The day begins at its first midnight, once.
  ExpectDay("America/St_Johns", "2010-11-06T02:30:00Z", "2010-11-07T02:30:00Z");
  ExpectDay("America/St_Johns", "2010-11-07T02:30:00Z", "2010-11-08T03:30:00Z");
  // The same for the month that begins that night.
  ExpectWindow(Of(WindowUnit::kMonth, "America/Toronto"), "2026-11-01T04:00:00Z", "2026-12-01T05:00:00Z");
}

TEST(Calendar, TheDayThatSamoaSkipped) {
  ExpectDay("Pacific/Apia", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z");
  ExpectDay("Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z");
  ExpectWindow(Of(WindowUnit::kWeek, "Pacific/Apia"), "2011-12-26T10:00:00Z", "2012-01-01T10:00:00Z");
}

TEST(Calendar, TheDayThatKwajaleinSkipped) {
  // 1993-08-21 did not happen; the zone went from -12 to +12.
  ExpectDay("Pacific/Kwajalein", "1993-08-20T12:00:00Z", "1993-08-21T12:00:00Z");
  ExpectDay("Pacific/Kwajalein", "1993-08-21T12:00:00Z", "1993-08-22T12:00:00Z");
}

TEST(Calendar, WeeksBeginOnMonday) {
  ExpectWindow(Of(WindowUnit::kWeek, "UTC"), "2026-10-26T00:00:00Z", "2026-11-02T00:00:00Z");
  ExpectWindow(Of(WindowUnit::kWeek, "America/New_York"), "2026-10-26T04:00:00Z", "2026-11-02T05:00:00Z");
  ExpectWindow(Of(WindowUnit::kWeek, "UTC"), "1969-12-29T00:00:00Z", "1970-01-05T00:00:00Z");
}

TEST(Calendar, MonthsAndLeapYears) {
  ExpectWindow(Of(WindowUnit::kMonth, "UTC"), "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z");
  ExpectWindow(Of(WindowUnit::kMonth, "UTC"), "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z");
  ExpectWindow(Of(WindowUnit::kMonth, "UTC"), "2100-02-01T00:00:00Z", "2100-03-01T00:00:00Z");
  ExpectWindow(Of(WindowUnit::kMonth, "UTC"), "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z");
  ExpectWindow(Of(WindowUnit::kMonth, "America/New_York"), "2026-03-01T05:00:00Z", "2026-04-01T04:00:00Z");
}

TEST(Calendar, Years) {
  ExpectWindow(Of(WindowUnit::kYear, "UTC"), "2028-01-01T00:00:00Z", "2029-01-01T00:00:00Z");
  ExpectWindow(Of(WindowUnit::kYear, "Asia/Kathmandu"), "2025-12-31T18:15:00Z", "2026-12-31T18:15:00Z");
  // 1994-12-31 was skipped there: the year was a day shorter.
  ExpectWindow(Of(WindowUnit::kYear, "Pacific/Kiritimati"), "1994-01-01T10:00:00Z", "1994-12-31T10:00:00Z");
}

TEST(Calendar, TheHourThatComesTwiceIsTwoWindows) {
  const Window hour = Of(WindowUnit::kHour, "America/New_York");
  ExpectWindow(hour, "2026-11-01T05:00:00Z", "2026-11-01T06:00:00Z");  // 01:00 EDT
  ExpectWindow(hour, "2026-11-01T06:00:00Z", "2026-11-01T07:00:00Z");  // 01:00 EST
  const Window minute = Of(WindowUnit::kMinute, "America/New_York");
  ExpectWindow(minute, "2026-11-01T05:59:00Z", "2026-11-01T06:00:00Z");
  ExpectWindow(minute, "2026-11-01T06:00:00Z", "2026-11-01T06:01:00Z");
  // The hour that does not come: 02:00 EST is 03:00 EDT.
  ExpectWindow(hour, "2026-03-08T06:00:00Z", "2026-03-08T07:00:00Z");
  ExpectWindow(hour, "2026-03-08T07:00:00Z", "2026-03-08T08:00:00Z");
}

TEST(Calendar, LordHowesHalfHourCutsAnHour) {
  const Window hour = Of(WindowUnit::kHour, "Australia/Lord_Howe");
  // 2026-04-05: at 02:00 (+11) back to 01:30 (+10:30).
  ExpectWindow(hour, "2026-04-04T14:00:00Z", "2026-04-04T15:00:00Z");
  ExpectWindow(hour, "2026-04-04T15:00:00Z", "2026-04-04T15:30:00Z");
  ExpectWindow(hour, "2026-04-04T15:30:00Z", "2026-04-04T16:30:00Z");
  // 2026-10-04: at 02:00 (+10:30) forward to 02:30 (+11).
  ExpectWindow(hour, "2026-10-03T14:30:00Z", "2026-10-03T15:30:00Z");
  ExpectWindow(hour, "2026-10-03T15:30:00Z", "2026-10-03T16:00:00Z");
  ExpectDay("Australia/Lord_Howe", "2026-04-04T13:00:00Z", "2026-04-05T13:30:00Z");
}

TEST(Calendar, OffsetsThatAreNoWholeHoursOrMinutes) {
  ExpectWindow(Of(WindowUnit::kHour, "Asia/Kathmandu"), "2026-01-01T00:15:00Z", "2026-01-01T01:15:00Z");
  // Liberia until 1972: 44 minutes and 30 seconds behind.
  ExpectWindow(Of(WindowUnit::kMinute, "Africa/Monrovia"), "1971-05-01T12:00:30Z", "1971-05-01T12:01:30Z");
  ExpectDay("Africa/Monrovia", "1971-05-01T00:44:30Z", "1971-05-02T00:44:30Z");
  ExpectDay("Africa/Monrovia", "1972-01-07T00:44:30Z", "1972-01-08T00:00:00Z");
}

TEST(Calendar, TheEndsOf64BitsSaturate) {
  constexpr std::int64_t kFirst = std::numeric_limits<std::int64_t>::min();
  for (const WindowUnit unit : {WindowUnit::kLength, WindowUnit::kMinute, WindowUnit::kHour, WindowUnit::kDay,
                                WindowUnit::kWeek, WindowUnit::kMonth, WindowUnit::kYear}) {
    Window window = Of(unit, "Pacific/Apia");
    window.length_ns = unit == WindowUnit::kLength ? kDay : 0;
    for (const std::int64_t at : {kFirst, kFirst + 1, kInt64Max - 1, kInt64Max}) {
      const WindowBounds bounds = WindowAt(window, at);
      EXPECT_LE(bounds.start_ns, at);
      EXPECT_GE(bounds.end_ns, at);
    }
  }
}

TEST(LocalLabel, TellsTheTwoHoursApart) {
  const absl::TimeZone new_york = Zone("America/New_York");
  EXPECT_EQ(LocalLabel(Utc("2026-11-01T05:47:00Z"), new_york), "2026-11-01 01:47 EDT");
  EXPECT_EQ(LocalLabel(Utc("2026-11-01T06:47:59.999Z"), new_york), "2026-11-01 01:47 EST");
  EXPECT_EQ(LocalLabel(0, absl::UTCTimeZone()), "1970-01-01 00:00 UTC");
}

}  // namespace
}  // namespace ebbgate::testing

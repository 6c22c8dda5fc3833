#include "server/limiter/calendar.h"

#include <algorithm>

#include "absl/time/civil_time.h"
#include "server/limiter/amount.h"

namespace ebbgate {
namespace {

// Windows of one length by a clock that is `offset_ns` ahead of UTC; in UTC they are aligned to the epoch.
WindowBounds Aligned(std::int64_t length_ns, std::int64_t offset_ns, std::int64_t wall_ns) {
  const Int128 rest = (static_cast<Int128>(wall_ns) + offset_ns) % length_ns;
  const Int128 start = wall_ns - (rest < 0 ? rest + length_ns : rest);
  return {Saturate(start), Saturate(start + length_ns)};
}

std::int64_t OffsetNs(absl::TimeZone zone, std::int64_t wall_ns) {
  return zone.At(absl::FromUnixNanos(wall_ns)).offset * kNsPerSecond;
}

// The instant in (from, to] at which the zone's offset first is what it is at `to`. Pre: it differs at `from`.
std::int64_t ChangeBetween(absl::TimeZone zone, std::int64_t from, std::int64_t to) {
  const std::int64_t offset = OffsetNs(zone, to);
  while (to - from > 1) {
    const std::int64_t middle = from + (to - from) / 2;
    (OffsetNs(zone, middle) == offset ? to : from) = middle;
  }
  return to;
}

// Minutes and hours: by the offset in force, cut where it changes.
WindowBounds ByOffset(absl::TimeZone zone, std::int64_t length_ns, std::int64_t wall_ns) {
  const std::int64_t offset = OffsetNs(zone, wall_ns);
  WindowBounds bounds = Aligned(length_ns, offset, wall_ns);
  if (OffsetNs(zone, bounds.start_ns) != offset) bounds.start_ns = ChangeBetween(zone, bounds.start_ns, wall_ns);
  if (OffsetNs(zone, bounds.end_ns - 1) != offset) bounds.end_ns = ChangeBetween(zone, wall_ns, bounds.end_ns - 1);
  return bounds;
}

std::int64_t FirstInstantOf(absl::TimeZone zone, absl::CivilDay day) {
  const absl::TimeZone::TimeInfo info = zone.At(absl::CivilSecond(day));
  const absl::Time first = info.kind == absl::TimeZone::TimeInfo::SKIPPED ? info.trans : info.pre;
  return absl::ToUnixNanos(first);  // Saturates.
}

absl::CivilDay Begin(WindowUnit unit, absl::CivilDay day) {
  switch (unit) {
    case WindowUnit::kWeek:
      return absl::PrevWeekday(day + 1, absl::Weekday::monday);
    case WindowUnit::kMonth:
      return absl::CivilDay(absl::CivilMonth(day));
    case WindowUnit::kYear:
      return absl::CivilDay(absl::CivilYear(day));
    default:
      return day;
  }
}

absl::CivilDay Next(WindowUnit unit, absl::CivilDay begin) {
  switch (unit) {
    case WindowUnit::kWeek:
      return begin + 7;
    case WindowUnit::kMonth:
      return absl::CivilDay(absl::CivilMonth(begin) + 1);
    case WindowUnit::kYear:
      return absl::CivilDay(absl::CivilYear(begin) + 1);
    default:
      return begin + 1;
  }
}

WindowBounds ByCalendar(const Window& window, std::int64_t wall_ns) {
  const absl::CivilDay day(window.calendar.At(absl::FromUnixNanos(wall_ns)).cs);
  absl::CivilDay begin = Begin(window.unit, day);
  absl::CivilDay next = Next(window.unit, begin);
  // A clock set back across midnight shows the old day again after the new one has begun; the new window then stays.
  while (FirstInstantOf(window.calendar, next) <= wall_ns && FirstInstantOf(window.calendar, next) != kInt64Max) {
    begin = next;
    next = Next(window.unit, begin);
  }
  return {FirstInstantOf(window.calendar, begin), FirstInstantOf(window.calendar, next)};
}

}  // namespace

WindowBounds WindowAt(const Window& window, std::int64_t wall_ns) {
  switch (window.unit) {
    case WindowUnit::kLength:
      return Aligned(window.length_ns, 0, wall_ns);
    case WindowUnit::kMinute:
      return ByOffset(window.calendar, 60 * kNsPerSecond, wall_ns);
    case WindowUnit::kHour:
      return ByOffset(window.calendar, 3600 * kNsPerSecond, wall_ns);
    default:
      return ByCalendar(window, wall_ns);
  }
}

std::string LocalLabel(std::int64_t wall_ns, absl::TimeZone zone) {
  return absl::FormatTime("%Y-%m-%d %H:%M %Z", absl::FromUnixNanos(wall_ns), zone);
}

}  // namespace ebbgate

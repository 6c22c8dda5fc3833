// Where windows begin and end on the wall clock: lengths aligned to the epoch, and the calendar of a time zone.
#ifndef EBBGATE_SERVER_LIMITER_CALENDAR_H_
#define EBBGATE_SERVER_LIMITER_CALENDAR_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "server/limiter/parameters.h"

namespace ebbgate {

// Nanoseconds since the epoch; start is inside, end is not.
struct WindowBounds {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

// The window that holds `wall_ns`: start <= wall_ns < end (at the ends of 64 bits the bounds saturate).
//
// Days, weeks (from Monday), months and years begin when their first local midnight does: where a change of the clocks
// skips midnight, at the change; where midnight comes twice, at the first, once. A day so has 23, 24 or 25 hours.
// Hours and minutes are those of the clock on the wall, and a change of the clocks ends one: the hour that comes twice
// in autumn is two windows, not one of two hours, and is never mistaken for a window of the past.
//
// Costs some microseconds; callers keep the bounds until the window has turned.
WindowBounds WindowAt(const Window& window, std::int64_t wall_ns);

// For people: "2026-11-01 01:47 EST".
std::string LocalLabel(std::int64_t wall_ns, absl::TimeZone zone);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_LIMITER_CALENDAR_H_

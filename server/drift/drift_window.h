// Compares two counters, what was admitted of a limit and what was received behind it, over a sliding window.
//
// Points are taken when a report has come in, so that both counters are read at about the same time; between two
// reports nothing is known and nothing changes. The comparison begins with the first point: what was admitted before
// anybody reported counts neither way. It runs from the oldest point that is less than a window back to the newest one.
//
// Out of bounds: within the comparison's span at least `minimum` tokens were admitted or at least as many were
// received, and received > ratio * admitted, or admitted > ratio * received. Equal is within bounds; integers, no
// rounding.
//
//   ok        the newest point is within bounds, or the span is too short (a quarter of the window) to judge
//   suspect   the newest point is out of bounds, but not yet for a whole window
//   drifting  every point has been out of bounds for a whole window, counted from the last point that was not
//
// So a single burst, however large, leaves the window before it makes a limit drifting. A counter of what was admitted
// that has fallen (the limit was removed and came back) begins the comparison anew. So does silence: when no report has
// come for a whole window there is nothing to compare, and the state is ok.
//
// Tokens that were admitted and given back (a reservation that cost less) count as not admitted. They are counted
// apart, so that both counters only rise; a span in which more came back than was admitted has none.
//
// Pure: time is an argument; a reading behind the last one counts as the last (**One clock**). Thread-safety: none.
// Bounded: kDriftPoints. Cost: some 10 ns a point.
#ifndef EBBGATE_SERVER_DRIFT_DRIFT_WINDOW_H_
#define EBBGATE_SERVER_DRIFT_DRIFT_WINDOW_H_

#include <cstdint>
#include <deque>
#include <optional>

#include "absl/strings/string_view.h"
#include "server/limiter/amount.h"
#include "server/limiter/parameters.h"

namespace ebbgate {

enum class DriftState : std::uint8_t { kOk, kSuspect, kDrifting };
inline constexpr int kDriftStates = 3;

// "ok", "suspect", "drifting".
absl::string_view Name(DriftState state);

// Over the span that is compared now.
struct DriftReading {
  DriftState state = DriftState::kOk;
  std::uint64_t admitted = 0;  // tokens, less those given back
  std::uint64_t received = 0;  // tokens
  std::int64_t span_ns = 0;    // 0: nothing is compared yet
  // The last point within bounds, or the comparison's first; every point since was out of bounds. Absent while the
  // newest is within.
  std::optional<std::int64_t> out_since_ns;
};

// What the counters of a limit read. They rise, and fall only when they begin anew.
struct DriftCounters {
  std::uint64_t admitted = 0;
  std::uint64_t given_back = 0;
  Uint128 received = 0;
};

class DriftWindow {
 public:
  explicit DriftWindow(const DriftSettings& settings) : settings_(settings) {}

  // A report has come in: what the counters read now.
  void Add(std::int64_t now_ns, const DriftCounters& counters);
  // Time has passed, perhaps so much that there is nothing to compare any more.
  void Age(std::int64_t now_ns);

  const DriftReading& reading() const { return reading_; }
  const DriftSettings& settings() const { return settings_; }

 private:
  struct Point {
    std::int64_t at_ns = 0;
    DriftCounters counters;
  };

  bool OutOfBounds() const;
  void Judge(std::int64_t previous_ns);

  DriftSettings settings_;
  std::deque<Point> points_;  // at most one window old
  DriftReading reading_;
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_DRIFT_DRIFT_WINDOW_H_

#include "tests/property/concurrent_envelope.h"

#include <algorithm>

#include "server/limiter/amount.h"

namespace ebbgate::testing {
namespace {

// Numbers at positions: adds to all from one position on, tells the largest from one position on.
class SuffixMaximum {
 public:
  explicit SuffixMaximum(const std::vector<Int128>& values) {
    while (size_ < values.size()) size_ *= 2;
    largest_.assign(2 * size_, kNothing);
    added_.assign(2 * size_, 0);
    std::copy(values.begin(), values.end(), largest_.begin() + static_cast<std::ptrdiff_t>(size_));
    for (std::size_t node = size_ - 1; node > 0; --node) {
      largest_[node] = std::max(largest_[2 * node], largest_[2 * node + 1]);
    }
  }

  void AddFrom(std::size_t position, Int128 amount) { Add(1, 0, size_, position, amount); }
  Int128 LargestFrom(std::size_t position) const { return Largest(1, 0, size_, position); }

 private:
  static constexpr Int128 kNothing = -(static_cast<Int128>(1) << 125);

  void Add(std::size_t node, std::size_t begin, std::size_t end, std::size_t from, Int128 amount) {
    if (end <= from) return;
    if (begin >= from) {
      largest_[node] += amount;
      added_[node] += amount;
      return;
    }
    const std::size_t middle = begin + (end - begin) / 2;
    Add(2 * node, begin, middle, from, amount);
    Add(2 * node + 1, middle, end, from, amount);
    largest_[node] = std::max(largest_[2 * node], largest_[2 * node + 1]) + added_[node];
  }

  Int128 Largest(std::size_t node, std::size_t begin, std::size_t end, std::size_t from) const {
    if (end <= from) return kNothing;
    if (begin >= from) return largest_[node];
    const std::size_t middle = begin + (end - begin) / 2;
    const Int128 below = std::max(Largest(2 * node, begin, middle, from), Largest(2 * node + 1, middle, end, from));
    return below + added_[node];
  }

  std::size_t size_ = 1;
  std::vector<Int128> largest_;
  std::vector<Int128> added_;  // to the node's whole range, not yet to its children
};

}  // namespace

// With s going down over all beginnings, spells that begin at s or later are counted at every t from their end on:
// at t stands (sum * per - tokens * t), which must stay at or below (b * per - tokens * s).
bool KeepsEnvelope(std::vector<Spell> spells, std::int64_t capacity, const Rate& refill) {
  if (spells.empty()) return true;
  const std::int64_t origin_ns = std::min_element(spells.begin(), spells.end(), [](const Spell& a, const Spell& b) {
                                   return a.before_ns < b.before_ns;
                                 })->before_ns;
  std::vector<std::int64_t> ends;
  for (const Spell& spell : spells) ends.push_back(spell.after_ns);
  std::sort(ends.begin(), ends.end());
  std::vector<Int128> at_start;
  for (const std::int64_t end : ends) at_start.push_back(-static_cast<Int128>(refill.tokens) * (end - origin_ns));
  SuffixMaximum sums(at_start);
  const auto position = [&](std::int64_t at_ns) {
    return static_cast<std::size_t>(std::lower_bound(ends.begin(), ends.end(), at_ns) - ends.begin());
  };
  std::sort(spells.begin(), spells.end(), [](const Spell& a, const Spell& b) { return a.before_ns > b.before_ns; });
  for (std::size_t i = 0; i < spells.size(); ++i) {
    sums.AddFrom(position(spells[i].after_ns), static_cast<Int128>(spells[i].cost) * refill.per_ns);
    if (i + 1 < spells.size() && spells[i + 1].before_ns == spells[i].before_ns) continue;
    const std::int64_t start_ns = spells[i].before_ns;
    const Int128 allowed =
        static_cast<Int128>(capacity) * refill.per_ns - static_cast<Int128>(refill.tokens) * (start_ns - origin_ns);
    if (sums.LargestFrom(position(start_ns)) > allowed) return false;
  }
  return true;
}

bool KeepsEnvelopeByForce(const std::vector<Spell>& spells, std::int64_t capacity, const Rate& refill) {
  for (const Spell& first : spells) {
    for (const Spell& last : spells) {
      if (last.after_ns < first.before_ns) continue;
      Int128 sum = 0;
      for (const Spell& spell : spells) {
        if (spell.before_ns >= first.before_ns && spell.after_ns <= last.after_ns) sum += spell.cost;
      }
      const Int128 time_ns = static_cast<Int128>(last.after_ns) - first.before_ns;
      if (sum * refill.per_ns > static_cast<Int128>(capacity) * refill.per_ns + time_ns * refill.tokens) return false;
    }
  }
  return true;
}

}  // namespace ebbgate::testing

// Random histories that can be had again: every test draws from one seed, named in whatever it prints when it fails.
#ifndef EBBGATE_TESTS_PROPERTY_RANDOM_H_
#define EBBGATE_TESTS_PROPERTY_RANDOM_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace ebbgate::testing {

// EBBGATE_SEED of the environment, or a fixed number.
std::uint64_t Seed();

// How much more (or less, below 1) than usual to try: EBBGATE_EFFORT of the environment, or 1.
double Effort();
inline int Times(int usual) {
  const double times = usual * Effort();
  return times < 1 ? 1 : static_cast<int>(times);
}

// SplitMix64: small, fast, and the same everywhere. Not thread-safe.
class Random {
 public:
  // Independent streams for the histories of one test.
  Random(std::uint64_t seed, std::uint64_t stream) : state_(seed * 0x9e3779b97f4a7c15ULL + stream) { Next(); }

  std::uint64_t Next();
  // Both ends included.
  std::int64_t Between(std::int64_t least, std::int64_t most);
  // All orders of magnitude alike. Pre: 0 < least <= most.
  std::int64_t Magnitude(std::int64_t least, std::int64_t most);
  bool OneIn(std::int64_t n) { return Between(1, n) == 1; }
  template <typename T>
  T Pick(std::initializer_list<T> choices) {
    return choices.begin()[Between(0, static_cast<std::int64_t>(choices.size()) - 1)];
  }

 private:
  std::uint64_t state_;
};

// "EBBGATE_SEED=7, history 12": for SCOPED_TRACE.
std::string Again(std::uint64_t seed, std::int64_t history);

}  // namespace ebbgate::testing

#endif  // EBBGATE_TESTS_PROPERTY_RANDOM_H_

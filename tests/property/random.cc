#include "tests/property/random.h"

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace ebbgate::testing {

std::uint64_t Seed() {
  std::uint64_t seed = 0;
  const char* text = std::getenv("EBBGATE_SEED");
  return text != nullptr && absl::SimpleAtoi(text, &seed) ? seed : 20261101;
}

double Effort() {
  double effort = 1;
  const char* text = std::getenv("EBBGATE_EFFORT");
  return text != nullptr && absl::SimpleAtod(text, &effort) && effort > 0 ? effort : 1;
}

std::uint64_t Random::Next() {
  state_ += 0x9e3779b97f4a7c15ULL;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

std::int64_t Random::Between(std::int64_t least, std::int64_t most) {
  const std::uint64_t span = static_cast<std::uint64_t>(most) - static_cast<std::uint64_t>(least) + 1;
  const std::uint64_t drawn = span == 0 ? Next() : Next() % span;
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(least) + drawn);
}

std::int64_t Random::Magnitude(std::int64_t least, std::int64_t most) {
  int bits = 0;
  while ((most >> bits) > 1) ++bits;
  int least_bits = 0;
  while ((least >> least_bits) > 1) ++least_bits;
  const std::int64_t exponent = Between(least_bits, bits);
  const std::int64_t from = std::int64_t{1} << exponent;
  const std::int64_t to = exponent == 62 ? most : (from << 1) - 1;
  return Between(from < least ? least : from, to > most ? most : to);
}

std::string Again(std::uint64_t seed, std::int64_t history) {
  return absl::StrCat("again with EBBGATE_SEED=", seed, ", history ", history);
}

}  // namespace ebbgate::testing

#include "server/store/tag_index.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>
#include <vector>

namespace ebbgate {
namespace {

// The index against a map, over random inserts, erasures and look-ups. Tags are drawn from few values, so that runs are
// long, wrap around the end, and hold equal tags.
void Compare(std::uint32_t seed, std::uint32_t tags, int operations) {
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  TagIndex index;
  std::unordered_map<std::uint32_t, std::uint32_t> tag_of;  // entry to tag
  std::vector<std::uint32_t> entries;
  std::uint32_t next_entry = 0;
  for (int i = 0; i < operations; ++i) {
    const bool insert = entries.empty() || random() % 100 < (i < operations / 2 ? 70u : 35u);
    if (insert) {
      const std::uint32_t tag = random() % tags * (UINT32_MAX / tags);
      const std::size_t before_bytes = index.bytes();
      const std::size_t announced_bytes = index.GrowthBytes();
      index.Insert(tag, next_entry);
      EXPECT_LE(index.bytes(), before_bytes + announced_bytes);
      tag_of[next_entry] = tag;
      entries.push_back(next_entry++);
    } else {
      const std::size_t at = random() % entries.size();
      index.Erase(tag_of[entries[at]], entries[at]);
      tag_of.erase(entries[at]);
      entries[at] = entries.back();
      entries.pop_back();
    }
    ASSERT_EQ(index.size(), entries.size());
    for (int probe = 0; probe < 3; ++probe) {
      const std::uint32_t entry = random() % (next_entry + 1);
      const auto known = tag_of.find(entry);
      const std::uint32_t tag = known != tag_of.end() ? known->second : random() % tags * (UINT32_MAX / tags);
      const std::uint32_t found = index.Find(tag, [&](std::uint32_t candidate) { return candidate == entry; });
      ASSERT_EQ(found, known != tag_of.end() ? entry : TagIndex::kNone) << "after " << i;
    }
  }
  for (const auto& [entry, tag] : tag_of) {
    ASSERT_EQ(index.Find(tag, [e = entry](std::uint32_t candidate) { return candidate == e; }), entry);
  }
}

TEST(TagIndex, FindsWhatAMapFinds) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) Compare(seed, 1'000'000, 5'000);
}

TEST(TagIndex, FindsAmongManyEqualTags) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) Compare(seed, 40, 2'000);
}

TEST(TagIndex, AnInsertCarriesOverABoundedNumberOfCells) {
  // Seen from outside: both arrays stay for a while after a doubling, and the old one goes before the next.
  TagIndex index;
  std::size_t with_two_arrays = 0;
  std::size_t cells_before = index.bytes() / sizeof(std::uint64_t);
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    const bool doubles = index.GrowthBytes() > 0;
    index.Insert(i * 2654435761u, i);
    const std::size_t cells = index.bytes() / sizeof(std::uint64_t);
    if (doubles) {
      EXPECT_EQ(cells, 3 * cells_before) << "the array before the last was gone";
    }
    with_two_arrays += (cells & (cells - 1)) != 0;
    if ((cells & (cells - 1)) == 0) cells_before = cells;
  }
  EXPECT_GT(with_two_arrays, 100'000u / 40);
}

}  // namespace
}  // namespace ebbgate

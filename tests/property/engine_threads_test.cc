// The engine under many threads and the real clock: what it promises for every interleaving.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "server/engine/engine.h"
#include "tests/property/concurrent_envelope.h"
#include "tests/property/random.h"
#include "tests/support/limits.h"

namespace ebbgate::testing {
namespace {

constexpr int kThreads = 8;

// One token comes back in a year: a test sees nothing of it.
Limit Hoard(const std::string& name, std::int64_t capacity) { return Bucket(name, capacity, 1, 366 * 24 * kHour); }

// Runs `work(thread)` on `n` threads that start together.
void Together(int n, const std::function<void(int)>& work) {
  std::barrier start(n);
  std::vector<std::thread> threads;
  for (int i = 0; i < n; ++i) {
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      work(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

const LimitCounters& CountersOf(const EngineCounters& counters, const std::string& limit) {
  for (const LimitCounters& each : counters.limits) {
    if (each.limit == limit) return each;
  }
  ADD_FAILURE() << limit << " is not counted";
  static const LimitCounters none;
  return none;
}

// 64 threads ask for one key until they are refused; whatever the interleaving, the capacity is spent and no more.
TEST(Envelope, SixtyFourThreadsShareOneKeyExactly) {
  constexpr int kAskers = 64;
  constexpr int kCapacity = 1000;
  const int rounds = Times(1000);
  Engine engine({}, SystemTime());
  engine.InstallLimits({Hoard("hoard", kCapacity)});
  std::atomic<int> allowed = 0;
  int wrong_rounds = 0;
  const auto at_end_of_round = [&]() noexcept { wrong_rounds += allowed.exchange(0) != kCapacity; };
  std::barrier round_over(kAskers, at_end_of_round);
  Together(kAskers, [&](int thread) {
    CallAnswer answer;
    std::vector<CallAnswer> answers(5);
    for (int round = 0; round < rounds; ++round) {
      const std::string key = std::to_string(round);
      const ChargeRequest charge = {.limit = "hoard", .key = key};
      const CallRequest call = {.charges = {&charge, 1}};
      const std::vector<CallRequest> batch(answers.size(), call);
      int mine = 0;
      for (bool more = true; more;) {
        if (thread % 8 == 0) {
          engine.DecideBatch(batch, absl::MakeSpan(answers));
          for (const CallAnswer& each : answers) mine += each.allowed;
          more = answers.back().allowed;
        } else {
          engine.Decide(call, answer);
          mine += answer.allowed;
          more = answer.allowed;
        }
      }
      allowed.fetch_add(mine);
      round_over.arrive_and_wait();
    }
  });
  EXPECT_EQ(wrong_rounds, 0) << "of " << rounds;
  const EngineCounters counters = engine.Counters();
  EXPECT_EQ(CountersOf(counters, "hoard").allowed, static_cast<std::uint64_t>(rounds) * kCapacity);
  EXPECT_EQ(CountersOf(counters, "hoard").admitted_cost, static_cast<std::uint64_t>(rounds) * kCapacity);
}

// What one thread saw of one limit and key.
struct Seen {
  std::vector<Spell> spells;
  std::uint64_t allowed = 0, denied = 0;
};

TEST(Envelope, EightThreadsOnTheRealClock) {
  for (const Algorithm algorithm : {Algorithm::kTokenBucket, Algorithm::kGcra}) {
    const Limit limit = Bucket("limit", 20, 3000, kSecond, algorithm);
    Engine engine({}, SystemTime());
    engine.InstallLimits({limit});
    constexpr int kKeys = 3;
    std::vector<std::vector<Seen>> seen(kThreads, std::vector<Seen>(kKeys));
    Together(kThreads, [&](int thread) {
      Random random(Seed(), static_cast<std::uint64_t>(thread));
      CallAnswer answer;
      for (int i = 0; i < Times(30'000); ++i) {
        const std::int64_t number = random.Between(0, kKeys - 1);
        const std::string key = std::to_string(number);
        const ChargeRequest charge = {.limit = "limit", .key = key, .cost = random.Between(1, 4)};
        Seen& mine = seen[static_cast<std::size_t>(thread)][static_cast<std::size_t>(number)];
        const std::int64_t before_ns = SystemTime().MonotonicNs();
        engine.Decide({.charges = {&charge, 1}}, answer);
        const std::int64_t after_ns = SystemTime().MonotonicNs();
        ++(answer.allowed ? mine.allowed : mine.denied);
        if (answer.allowed) mine.spells.push_back({before_ns, after_ns, FromTokens(*charge.cost)});
        if (random.OneIn(200)) std::this_thread::sleep_for(std::chrono::microseconds(random.Between(1, 2000)));
        if (thread == 0 && random.OneIn(50)) engine.Maintain();
      }
    });
    Seen all;
    std::uint64_t cost = 0;
    for (std::size_t key = 0; key < kKeys; ++key) {
      std::vector<Spell> spells;
      for (const std::vector<Seen>& of_thread : seen) {
        spells.insert(spells.end(), of_thread[key].spells.begin(), of_thread[key].spells.end());
        all.allowed += of_thread[key].allowed;
        all.denied += of_thread[key].denied;
      }
      EXPECT_GT(spells.size(), 20u);
      for (const Spell& spell : spells) cost += static_cast<std::uint64_t>(WholeTokens(spell.cost));
      EXPECT_TRUE(KeepsEnvelope(spells, limit.parameters.capacity, limit.parameters.refill))
          << Name(algorithm) << ", key " << key;
    }
    // **Counted**.
    const EngineCounters counters = engine.Counters();
    EXPECT_EQ(CountersOf(counters, "limit").allowed, all.allowed);
    EXPECT_EQ(CountersOf(counters, "limit").denied, all.denied);
    EXPECT_EQ(CountersOf(counters, "limit").admitted_cost, cost);
  }
}

// What was charged by the answers, of one thread.
struct Charged {
  std::map<std::string, std::int64_t> tokens;  // by key
  std::uint64_t allowed = 0, denied = 0, peeked = 0, errors = 0;
};

constexpr std::int64_t kUsers = 40, kTenants = 7;

// Calls that charge a user, its tenant and the whole, in any order.
void ChargeThreeLimits(Engine& engine, int thread, Charged& mine) {
  Random random(Seed(), static_cast<std::uint64_t>(thread));
  CallAnswer answer;
  for (int i = 0; i < Times(20'000); ++i) {
    const std::int64_t number = random.Between(0, kUsers - 1);
    const std::string user = "user-" + std::to_string(number);
    const std::string tenant = "tenant-" + std::to_string(number % kTenants);
    const std::int64_t cost = random.Between(1, 3);
    ChargeRequest charges[] = {{.limit = "whole", .key = "all", .cost = cost},
                               {.limit = "user", .key = user, .cost = cost},
                               {.limit = "tenant", .key = tenant, .cost = cost}};
    std::swap(charges[0], charges[random.Between(0, 2)]);
    const bool peek = random.OneIn(10);
    engine.Decide({.charges = charges, .peek = peek}, answer);
    if (answer.error != nullptr) {
      ++mine.errors;
    } else if (peek) {
      ++mine.peeked;
    } else {
      ++(answer.allowed ? mine.allowed : mine.denied);
      for (const ChargeRequest& charge : charges) {
        mine.tokens[std::string(charge.key.data(), charge.key.size())] += answer.allowed ? cost : 0;
      }
    }
  }
}

std::vector<Limit> ThreeLimits(int version) {
  std::vector<Limit> limits = {Hoard("user", 2000), Hoard("tenant", 9000), Hoard("whole", 40'000)};
  limits[0].metadata = {{"version", std::to_string(version)}};
  // Comes and goes, and moves the numbers of the others about.
  if (version % 3 == 0) limits.insert(limits.begin(), Hoard("passing", 1));
  if (version % 5 == 0) std::swap(limits.front(), limits.back());
  return limits;
}

// What the buckets lack at the end is what the answers said was charged, to all three or to none; meanwhile others
// install limits, count and maintain.
TEST(AllOrNothing, EightThreadsChargeThreeLimitsWhileLimitsChange) {
  Engine engine({}, SystemTime());
  engine.InstallLimits(ThreeLimits(1));
  std::atomic<bool> done = false;
  std::vector<std::thread> others;
  others.emplace_back([&] {
    for (int version = 2; !done.load(); ++version) engine.InstallLimits(ThreeLimits(version));
  });
  for (int i = 0; i < 2; ++i) {
    others.emplace_back([&] {
      while (!done.load()) {
        EXPECT_GE(engine.Counters().limits.size(), 3u);
        engine.Maintain();
      }
    });
  }
  std::vector<Charged> charged(kThreads);
  Together(kThreads, [&](int thread) { ChargeThreeLimits(engine, thread, charged[static_cast<std::size_t>(thread)]); });
  done.store(true);
  for (std::thread& other : others) other.join();

  Charged all;
  for (const Charged& each : charged) {
    for (const auto& [key, tokens] : each.tokens) all.tokens[key] += tokens;
    all.allowed += each.allowed;
    all.denied += each.denied;
    all.peeked += each.peeked;
    all.errors += each.errors;
  }
  EXPECT_EQ(all.errors, 0u);
  EXPECT_GT(all.allowed, 1000u);
  EXPECT_GT(all.denied, 1000u);
  for (const auto& [key, tokens] : all.tokens) {
    const std::string limit = key == "all" ? "whole" : key.substr(0, key.find('-'));
    const absl::StatusOr<Inspection> inspection = engine.Inspect(limit, key);
    ASSERT_TRUE(inspection.ok());
    EXPECT_EQ(inspection->level, FromTokens(inspection->capacity - tokens)) << key;
  }
  const EngineCounters counters = engine.Counters();
  for (const char* limit : {"user", "tenant", "whole"}) {
    const LimitCounters& each = CountersOf(counters, limit);
    EXPECT_EQ(each.allowed, all.allowed) << limit;
    EXPECT_EQ(each.denied, all.denied) << limit;
    EXPECT_EQ(each.peeked, all.peeked) << limit;
    EXPECT_EQ(each.failed, 0u) << limit;
    EXPECT_EQ(each.admitted_cost, static_cast<std::uint64_t>(all.tokens["all"])) << limit;
  }
}

// Threads repeat each other's calls by request id: each id is decided once, whoever comes first.
TEST(Once, EightThreadsRepeatEachOthersCalls) {
  Engine engine({}, SystemTime());
  engine.InstallLimits({Hoard("hoard", 5000)});
  const int ids = Times(10'000);
  std::vector<std::atomic<int>> verdicts(static_cast<std::size_t>(ids));
  std::atomic<std::uint64_t> first_answers = 0, replays = 0, contradictions = 0;
  Together(kThreads, [&](int) {
    CallAnswer answer;
    for (int id = 0; id < ids; ++id) {
      const std::string request_id = "call-" + std::to_string(id);
      const ChargeRequest charge = {.limit = "hoard", .key = "k"};
      engine.Decide({.charges = {&charge, 1}, .request_id = request_id}, answer);
      ASSERT_EQ(answer.error, nullptr);
      (answer.replayed ? replays : first_answers).fetch_add(1);
      const int verdict = answer.allowed ? 1 : 2;
      int before = 0;
      std::atomic<int>& seen = verdicts[static_cast<std::size_t>(id)];
      if (!seen.compare_exchange_strong(before, verdict) && before != verdict) contradictions.fetch_add(1);
    }
  });
  EXPECT_EQ(contradictions.load(), 0u);
  EXPECT_EQ(first_answers.load(), static_cast<std::uint64_t>(ids));
  EXPECT_EQ(replays.load(), static_cast<std::uint64_t>(ids) * (kThreads - 1));
  const EngineCounters counters = engine.Counters();
  EXPECT_EQ(counters.replayed_calls, replays.load());
  EXPECT_EQ(CountersOf(counters, "hoard").allowed, std::min<std::uint64_t>(5000, static_cast<std::uint64_t>(ids)));
  EXPECT_EQ(CountersOf(counters, "hoard").allowed + CountersOf(counters, "hoard").denied, first_answers.load());
}

// Threads reserve one token and settle it as spent or not; whoever looks, what was used and what is held never come to
// more than there is.
TEST(Envelope, HeldAndUsedNeverExceedTheCapacity) {
  constexpr std::int64_t kCapacity = 100;
  const int rounds = Times(20'000);
  Engine engine({}, SystemTime());
  engine.InstallLimits({Hoard("hoard", kCapacity)});
  std::atomic<std::int64_t> used = 0;
  std::atomic<int> at_work = kThreads;
  std::atomic<std::uint64_t> excesses = 0, looks = 0, granted = 0, refused = 0;
  const auto work = [&](int thread) {
    Random random(Seed(), static_cast<std::uint64_t>(thread));
    const ChargeRequest charge = {.limit = "hoard", .key = "k", .cost = 1};
    ReserveAnswer held;
    SettleAnswer end;
    for (int i = 0; i < rounds; ++i) {
      engine.Reserve({.call = {.charges = {&charge, 1}}}, held);
      ASSERT_EQ(held.call.error, nullptr);
      (held.call.allowed ? granted : refused).fetch_add(1);
      if (!held.call.allowed) continue;
      const std::int64_t spent = random.OneIn(std::max(1, rounds / 20)) ? 1 : 0;
      engine.Settle(held.reservation_id, {&spent, 1}, end);
      ASSERT_EQ(end.error, nullptr);
      ASSERT_FALSE(end.repeated);
      used.fetch_add(spent);
    }
    at_work.fetch_sub(1);
  };
  const auto look = [&] {
    while (at_work.load() > 0) {
      const std::int64_t used_before = used.load();
      const Inspection seen = *engine.Inspect("hoard", "k");
      std::int64_t holds = 0;
      for (const Inspection::Hold& hold : seen.holds) holds += hold.cost;
      // Used was counted after it was settled, so there may be more by now, and never less.
      if (seen.level < 0 || seen.level + FromTokens(holds + used_before) > FromTokens(kCapacity)) excesses.fetch_add(1);
      looks.fetch_add(1);
    }
  };
  std::thread looker(look);
  Together(kThreads, work);
  looker.join();
  EXPECT_EQ(excesses.load(), 0u);
  EXPECT_GT(looks.load(), 0u);
  EXPECT_GT(refused.load(), 0u);  // All of it was used in the end.
  EXPECT_EQ(engine.Inspect("hoard", "k")->level, FromTokens(kCapacity - used.load()));
  EXPECT_EQ(engine.Inspect("hoard", "k")->open_holds, 0u);
  const EngineCounters counters = engine.Counters();
  EXPECT_EQ(CountersOf(counters, "hoard").holds_settled, granted.load());
  EXPECT_EQ(CountersOf(counters, "hoard").allowed, granted.load());
  EXPECT_EQ(CountersOf(counters, "hoard").denied, refused.load());
  EXPECT_EQ(counters.holds, 0u);
}

// Many ways to end the same hold at once: one ends it, the others are told how.
TEST(Once, ThreadsEndEachOthersHolds) {
  constexpr std::int64_t kCapacity = 1'000'000;
  const int holds = std::min(2000, Times(2000));
  Limit limit = Hoard("hoard", kCapacity);
  limit.max_holds = holds;
  Engine engine({}, SystemTime());
  engine.InstallLimits({limit});
  std::vector<std::string> ids;
  for (int i = 0; i < holds; ++i) {
    const ChargeRequest charges[] = {{"hoard", "a", 3}, {"hoard", "b", 5}};
    ReserveAnswer held;
    engine.Reserve({.call = {.charges = charges}}, held);
    ids.push_back(held.reservation_id);
  }
  std::atomic<std::int64_t> first = 0, settled = 0;
  Together(kThreads, [&](int thread) {
    const std::int64_t spent[] = {1, 2};
    SettleAnswer end;
    for (const std::string& id : ids) {
      if (thread % 2 == 0) {
        engine.Settle(id, spent, end);
      } else {
        engine.Cancel(id, end);
      }
      ASSERT_EQ(end.error, nullptr);
      if (end.repeated) continue;
      first.fetch_add(1);
      settled.fetch_add(end.state == HoldState::kSettled);
    }
  });
  EXPECT_EQ(first.load(), holds);
  EXPECT_EQ(engine.Inspect("hoard", "a")->level, FromTokens(kCapacity - 1 * settled.load()));
  EXPECT_EQ(engine.Inspect("hoard", "b")->level, FromTokens(kCapacity - 2 * settled.load()));
  EXPECT_EQ(engine.Counters().holds, 0u);
}

}  // namespace
}  // namespace ebbgate::testing

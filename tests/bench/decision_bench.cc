// What a decision costs in the core, without network: time by Google Benchmark, and memory.
//
//   decision_bench                              everything, some 20 s
//   decision_bench --benchmark_filter=Million   as with any Google Benchmark program
//
// Times mean little on a machine that is slow or busy, so the cost of a cache-missing load is measured in turn with
// everything else, and the claims at the end are ratios of medians of CPU time.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "server/config/limits_file.h"
#include "server/engine/engine.h"

namespace ebbgate {
namespace {

constexpr std::size_t kFewKeys = 2'000;
constexpr std::size_t kManyKeys = 1'000'000;
constexpr std::size_t kBatch = 32;

// `wide` admits everything and forgets nothing while this runs; a bucket of `brief` is full again a nanosecond later.
constexpr char kLimits[] = R"(limits:
  - {name: wide, capacity: 800000, refill: {tokens: 1, per: 1h}}
  - {name: brief, capacity: 1, refill: {tokens: 1000000000, per: 1s}}
)";

std::unique_ptr<Engine> MakeEngine(const EngineOptions& options = {}) {
  auto engine = std::make_unique<Engine>(options, SystemTime());
  engine->InstallLimits(*ParseLimits(kLimits, "limits"));
  return engine;
}

// Keys in random order, each `rounds` times, one behind the other in memory as messages that were just received are: to
// read them costs no misses of its own.
class Keys {
 public:
  static constexpr std::size_t kBytes = 13;

  Keys(std::size_t keys, std::size_t rounds) {
    std::vector<std::size_t> order(keys * rounds);
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i % keys;
    std::shuffle(order.begin(), order.end(), std::mt19937_64(1));
    text_.reserve(order.size() * kBytes);
    for (const std::size_t key : order) absl::StrAppendFormat(&text_, "user-%08d", key);
  }

  std::size_t size() const { return text_.size() / kBytes; }
  absl::string_view operator[](std::size_t i) const { return {text_.data() + i * kBytes, kBytes}; }

 private:
  std::string text_;
};

void DecideAll(Engine& engine, const Keys& keys) {
  CallAnswer answer;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const ChargeRequest charge{"wide", keys[i], 1};
    engine.Decide({.charges = {&charge, 1}}, answer);
  }
}

// An engine that knows the keys it is asked for.
struct Bed {
  Bed(std::size_t count, std::size_t rounds) : keys(count, rounds), engine(MakeEngine()) { DecideAll(*engine, keys); }
  const Keys keys;
  const std::unique_ptr<Engine> engine;
};

Bed& FewKeys() {
  static Bed bed(kFewKeys, 16);
  return bed;
}
Bed& ManyKeys() {
  static Bed bed(kManyKeys, 1);
  return bed;
}

void OneByOne(benchmark::State& state, Bed& bed) {
  CallAnswer answer;
  std::size_t i = 0;
  for (auto _ : state) {
    const ChargeRequest charge{"wide", bed.keys[i], 1};
    bed.engine->Decide({.charges = {&charge, 1}}, answer);
    benchmark::DoNotOptimize(answer.allowed);
    if (++i == bed.keys.size()) i = 0;
  }
}

// One iteration is one decision here too, so that the times compare.
void InBatches(benchmark::State& state, Bed& bed) {
  std::vector<ChargeRequest> charges(kBatch);
  std::vector<CallRequest> calls(kBatch);
  std::vector<CallAnswer> answers(kBatch);
  std::size_t i = 0;
  while (state.KeepRunningBatch(kBatch)) {
    for (std::size_t k = 0; k < kBatch; ++k) {
      charges[k] = {"wide", bed.keys[i + k], 1};
      calls[k] = {.charges = {&charges[k], 1}};
    }
    bed.engine->DecideBatch(calls, absl::MakeSpan(answers));
    benchmark::DoNotOptimize(answers[0].allowed);
    i += kBatch;
    if (i + kBatch > bed.keys.size()) i = 0;
  }
}

void DecideFewKeys(benchmark::State& state) { OneByOne(state, FewKeys()); }
void DecideMillionKeysOneByOne(benchmark::State& state) { OneByOne(state, ManyKeys()); }
void DecideMillionKeysInBatches(benchmark::State& state) { InBatches(state, ManyKeys()); }

// Each load's address is the value of the one before, somewhere in a quarter of a gigabyte.
void CacheMissingLoad(benchmark::State& state) {
  static const std::vector<std::size_t> next = [] {
    constexpr std::size_t kLines = (256u << 20) / 64;
    std::vector<std::size_t> order(kLines);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(2));
    std::vector<std::size_t> ring(kLines * 8);
    for (std::size_t i = 0; i < kLines; ++i) ring[order[i] * 8] = order[(i + 1) % kLines] * 8;
    return ring;
  }();
  std::size_t at = 0;
  for (auto _ : state) {
    at = next[at];
    benchmark::DoNotOptimize(at);
  }
}

void ReadMonotonicClock(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(SystemTime().MonotonicNs());
}

// A hold from beginning to end.
void ReserveAndSettle(benchmark::State& state) {
  const std::unique_ptr<Engine> engine = MakeEngine();
  const ChargeRequest charge{"wide", "user", 2};
  const std::int64_t actual = 1;
  ReserveAnswer held;
  SettleAnswer end;
  for (auto _ : state) {
    engine->Reserve({.call = {.charges = {&charge, 1}}}, held);
    engine->Settle(held.reservation_id, {&actual, 1}, end);
    benchmark::DoNotOptimize(end.state);
    if (end.error != nullptr) state.SkipWithError("a hold was not settled");
  }
}

// A refusal on a key in whose queue 1,000 wait.
void DecideBehindAThousandPromises(benchmark::State& state) {
  const std::unique_ptr<Engine> engine = MakeEngine();
  engine->InstallLimits(*ParseLimits("limits: [{name: queue, capacity: 1, refill: {tokens: 1, per: 60s}}]", "limits"));
  const ChargeRequest charge{"queue", "user", 1};
  ReserveAnswer held;
  for (int i = 0; i < 1000; ++i) {
    engine->Reserve({.call = {.charges = {&charge, 1}}, .max_wait_ns = kMaxHoldNs}, held);
    if (!held.call.allowed) state.SkipWithError("the queue is too short");
  }
  CallAnswer answer;
  for (auto _ : state) {
    engine->Decide({.charges = {&charge, 1}}, answer);
    benchmark::DoNotOptimize(answer.allowed);
  }
}

BENCHMARK(DecideFewKeys);
BENCHMARK(CacheMissingLoad);
BENCHMARK(ReadMonotonicClock);
BENCHMARK(DecideMillionKeysOneByOne);
BENCHMARK(DecideMillionKeysInBatches);
BENCHMARK(ReserveAndSettle);
BENCHMARK(DecideBehindAThousandPromises);

// Prints as usual, and keeps the median CPU time of each benchmark (or the time, if it ran once).
class Recorder final : public benchmark::ConsoleReporter {
 public:
  Recorder() : ConsoleReporter(isatty(STDOUT_FILENO) != 0 ? OO_Color : OO_None) {}

  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      const bool once = run.run_type == Run::RT_Iteration && run.repetitions == 1;
      if (once || run.aggregate_name == "median") times_[run.run_name.function_name] = run.GetAdjustedCPUTime();
    }
    ConsoleReporter::ReportRuns(runs);
  }

  // 0 if it was not run.
  double MedianNs(const std::string& name) const {
    const auto found = times_.find(name);
    return found == times_.end() ? 0 : found->second;
  }

 private:
  std::map<std::string, double> times_;
};

void PrintClaims(const Recorder& recorder) {
  const double few = recorder.MedianNs("DecideFewKeys");
  const double miss = recorder.MedianNs("CacheMissingLoad");
  if (few > 0 && miss > 0) {
    absl::PrintF("\na decision at 2,000 keys: %.1f ns, %.2f cache-missing loads of %.1f ns (goal <= 0.60)\n", few,
                 few / miss, miss);
  }
  const double single = recorder.MedianNs("DecideMillionKeysOneByOne");
  const double batch = recorder.MedianNs("DecideMillionKeysInBatches");
  if (single > 0 && batch > 0) {
    absl::PrintF("at a million keys, batches of 32: %.1f ns a decision, %.2f times as fast as one by one (goal >= 3)\n",
                 batch, single / batch);
  }
}

std::int64_t ResidentBytes() {
  std::int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// Asks `brief` for `count` new keys, with the upkeep that a server does.
void Churn(Engine& engine, std::int64_t from, std::int64_t count) {
  CallAnswer answer;
  for (std::int64_t i = from; i < from + count; ++i) {
    const std::string key = absl::StrFormat("once-%08d", i);
    const ChargeRequest charge{"brief", key, 1};
    engine.Decide({.charges = {&charge, 1}}, answer);
    if (i % 100'000 == 0) engine.Maintain();
  }
}

void PrintMemory() {
  const Keys keys(kManyKeys, 1);
  const std::unique_ptr<Engine> engine = MakeEngine();
  const std::int64_t before = ResidentBytes();
  DecideAll(*engine, keys);
  const std::int64_t after = ResidentBytes();
  const double count = kManyKeys;
  absl::PrintF(
      "memory at a million keys of %d bytes: %.1f bytes a key by the store's account, %.1f resident "
      "(goal <= 96 + key = %d)\n",
      Keys::kBytes, static_cast<double>(engine->Counters().store_bytes) / count,
      static_cast<double>(after - before) / count, 96 + Keys::kBytes);

  // What came just now is kept until room is needed: the first two million fill a store of half a million keys, and
  // from then on each new key takes the place of one that was forgotten.
  EngineOptions small;
  small.max_keys = 500'000;
  const std::unique_ptr<Engine> busy = MakeEngine(small);
  constexpr std::int64_t kChurn = 2'000'000;
  Churn(*busy, 0, kChurn);
  const std::int64_t settled = ResidentBytes();
  Churn(*busy, kChurn, 3 * kChurn);
  const EngineCounters counters = busy->Counters();
  absl::PrintF(
      "after 6 million more keys that came and went: %d keys held, %d forgotten, %d refused, %+.1f MB resident since "
      "the first two million\n",
      counters.keys, counters.keys_expired, counters.store_full_denied,
      static_cast<double>(ResidentBytes() - settled) / 1e6);
}

}  // namespace
}  // namespace ebbgate

int main(int argc, char** argv) {
  // Before the arguments, which may say otherwise.
  std::string repetitions = "--benchmark_repetitions=5", interleaving = "--benchmark_enable_random_interleaving=true";
  std::string report = "--benchmark_display_aggregates_only=true";
  std::vector<char*> arguments = {argv[0], repetitions.data(), interleaving.data(), report.data()};
  arguments.insert(arguments.end(), argv + 1, argv + argc);
  int count = static_cast<int>(arguments.size());
  const bool all = argc == 1;
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  if (all) ebbgate::PrintMemory();  // first, while nothing else has grown the process
  ebbgate::Recorder recorder;
  benchmark::RunSpecifiedBenchmarks(&recorder);
  ebbgate::PrintClaims(recorder);
  return 0;
}

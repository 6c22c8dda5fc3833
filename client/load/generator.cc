#include "client/load/generator.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/channel.h"
#include "client/load/lane.h"
#include "client/load/process_cpu.h"

namespace ebbgate::client {
namespace {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;
// Key numbers are written with eight digits.
constexpr std::int64_t kMaxKeys = 100'000'000;

absl::Duration OwnCpuTime() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return absl::DurationFromTimeval(usage.ru_utime) + absl::DurationFromTimeval(usage.ru_stime);
}

// A completion queue and the thread that drains it.
struct Worker {
  grpc::CompletionQueue queue;
  Tally tally;
  std::thread thread;

  void Drain() {
    void* tag = nullptr;
    bool ok = false;
    while (queue.Next(&tag, &ok)) static_cast<Completion*>(tag)->Done(ok);
  }
};

class Run {
 public:
  explicit Run(const LoadOptions& options) : options_(options), budget_(options.calls) {}

  absl::Status Connect();
  LoadResult Go(const std::function<void(const LoadProgress&)>& progress);

 private:
  int connections() const { return std::max(options_.connections, options_.threads); }
  void OpenLanes();
  void Pace();
  void Watch(const std::function<void(const LoadProgress&)>& progress);
  void WindDown();
  bool WaitUntilIdle(absl::Duration timeout) const;
  bool AllIdle() const;
  LoadCounts Count() const;
  LoadResult Collect() const;

  const LoadOptions& options_;
  Budget budget_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::int64_t start_ns_ = 0;
  bool gave_up_ = false;
};

absl::Status Run::Connect() {
  for (int i = 0; i < connections(); ++i) {
    absl::StatusOr<std::shared_ptr<grpc::Channel>> channel =
        OpenChannel(options_.address, options_.tls, /*own_connection=*/true);
    if (!channel.ok()) return channel.status();
    channels_.push_back(*std::move(channel));
  }
  const auto deadline = std::chrono::system_clock::now() + absl::ToChronoNanoseconds(options_.timeout);
  for (const auto& channel : channels_) {
    if (channel->WaitForConnected(deadline)) continue;
    return absl::UnavailableError(
        absl::StrCat("no connection to ", options_.address, " within ", absl::FormatDuration(options_.timeout)));
  }
  return absl::OkStatus();
}

void Run::OpenLanes() {
  for (int i = 0; i < options_.threads; ++i) workers_.push_back(std::make_unique<Worker>());
  const int n = connections();
  for (int i = 0; i < n; ++i) {
    Worker& worker = *workers_[static_cast<std::size_t>(i % options_.threads)];
    const int share = std::max(1, options_.outstanding / n + (i < options_.outstanding % n ? 1 : 0));
    auto& channel = channels_[static_cast<std::size_t>(i)];
    const auto make = options_.mode == LoadMode::kStream ? MakeStreamLane : MakeUnaryLane;
    lanes_.push_back(make(options_, channel, worker.queue, share, budget_, worker.tally));
  }
}

LoadResult Run::Go(const std::function<void(const LoadProgress&)>& progress) {
  OpenLanes();
  const absl::Duration client_cpu = OwnCpuTime();
  absl::StatusOr<absl::Duration> server_cpu = ProcessCpuTime(options_.server_pid);
  start_ns_ = SteadyNowNs();
  if (options_.rate > 0) {
    const double interval_ns = 1e9 / options_.rate;
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      lanes_[i]->Schedule(start_ns_ + static_cast<std::int64_t>(static_cast<double>(i) * interval_ns),
                          interval_ns * static_cast<double>(lanes_.size()));
    }
  }
  for (const auto& worker : workers_) worker->thread = std::thread([&worker] { worker->Drain(); });
  for (const auto& lane : lanes_) lane->Start();
  std::thread pacer;
  if (options_.rate > 0) pacer = std::thread([this] { Pace(); });
  Watch(progress);
  WindDown();
  if (pacer.joinable()) pacer.join();

  LoadResult result = Collect();
  result.client_cpu = OwnCpuTime() - client_cpu;
  const absl::StatusOr<absl::Duration> server_cpu_now = ProcessCpuTime(options_.server_pid);
  if (server_cpu.ok() && server_cpu_now.ok()) result.server_cpu = *server_cpu_now - *server_cpu;
  return result;
}

// Tells the lanes in turn when calls are due. A late wake-up costs no honesty: latencies count from the due time.
void Run::Pace() {
  prctl(PR_SET_TIMERSLACK, 1);  // The default of 50 us would be seen in the latencies.
  std::int64_t told = 0;
  while (!budget_.ended()) {
    const double elapsed_s = static_cast<double>(SteadyNowNs() - start_ns_) / 1e9;
    const auto due = static_cast<std::int64_t>(elapsed_s * options_.rate) + 1;
    for (; told < due; ++told) lanes_[static_cast<std::size_t>(told) % lanes_.size()]->Due(1);
    const double next_s =
        static_cast<double>(due) / options_.rate - static_cast<double>(SteadyNowNs() - start_ns_) / 1e9;
    std::this_thread::sleep_for(std::chrono::duration<double>(std::clamp(next_s, 0.0, 0.1)));
  }
}

// Until the time is over, the calls are made, or nothing works any more.
void Run::Watch(const std::function<void(const LoadProgress&)>& progress) {
  const std::int64_t end_ns = options_.calls > 0 ? INT64_MAX : start_ns_ + absl::ToInt64Nanoseconds(options_.duration);
  std::int64_t next_report_ns = start_ns_ + kNsPerSecond;
  LoadCounts before;
  while (SteadyNowNs() < end_ns && !budget_.spent()) {
    const std::int64_t now_ns = SteadyNowNs();
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::clamp<std::int64_t>(
        std::min(end_ns, next_report_ns) - now_ns, 0, options_.calls > 0 ? 5'000'000 : kNsPerSecond)));
    if (SteadyNowNs() < next_report_ns) continue;
    next_report_ns += kNsPerSecond;
    const LoadCounts now = Count();
    const LoadCounts since{now.calls - before.calls, now.failed_calls - before.failed_calls,
                           now.allowed - before.allowed, now.denied - before.denied, now.errors - before.errors};
    before = now;
    progress({absl::Nanoseconds(SteadyNowNs() - start_ns_), now, since});
    if (since.calls == 0 && since.failed_calls > 0) {
      gave_up_ = true;
      return;
    }
  }
}

void Run::WindDown() {
  budget_.End();
  for (const auto& lane : lanes_) lane->Finish();
  if (!WaitUntilIdle(options_.timeout)) {
    for (const auto& lane : lanes_) lane->Cancel();
    WaitUntilIdle(absl::InfiniteDuration());
  }
  for (const auto& worker : workers_) worker->queue.Shutdown();
  for (const auto& worker : workers_) worker->thread.join();
}

bool Run::AllIdle() const {
  return std::all_of(lanes_.begin(), lanes_.end(), [](const auto& lane) { return lane->idle(); });
}

bool Run::WaitUntilIdle(absl::Duration timeout) const {
  const absl::Time until = absl::Now() + timeout;
  while (!AllIdle()) {
    if (absl::Now() > until) return false;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return true;
}

LoadCounts Run::Count() const {
  LoadCounts sum;
  for (const auto& worker : workers_) {
    sum.calls += worker->tally.calls.load(std::memory_order_relaxed);
    sum.failed_calls += worker->tally.failed_calls.load(std::memory_order_relaxed);
    sum.allowed += worker->tally.allowed.load(std::memory_order_relaxed);
    sum.denied += worker->tally.denied.load(std::memory_order_relaxed);
    sum.errors += worker->tally.errors.load(std::memory_order_relaxed);
  }
  return sum;
}

LoadResult Run::Collect() const {
  LoadResult result;
  result.counts = Count();
  result.gave_up = gave_up_;
  std::int64_t last_ns = start_ns_;
  for (const auto& worker : workers_) {
    result.latency.Merge(worker->tally.latency);
    last_ns = std::max(last_ns, worker->tally.last_answer_ns);
    if (result.first_error.empty()) result.first_error = worker->tally.first_error;
  }
  result.elapsed = absl::Nanoseconds(last_ns - start_ns_);
  return result;
}

}  // namespace

absl::Status CheckLoadOptions(const LoadOptions& options) {
  const auto bad = [](absl::string_view what) { return absl::InvalidArgumentError(what); };
  if (options.target == LoadTarget::kYardstick && options.mode != LoadMode::kUnary) {
    return bad("--target yardstick knows --mode unary only");
  }
  if (options.batch < 1 || options.batch > 1000) return bad("--batch must lie between 1 and 1000");
  if (options.keys < 1 || options.keys > kMaxKeys) return bad("--keys must lie between 1 and 100000000");
  if (options.rate < 0 || options.rate > 1e7) return bad("--rate must lie between 0 and 10000000 calls a second");
  if (options.outstanding < 1 || options.outstanding > 100'000)
    return bad("--outstanding must lie between 1 and 100000");
  if (options.threads < 1 || options.threads > 256) return bad("--threads must lie between 1 and 256");
  if (options.connections < 1 || options.connections > 10'000) return bad("--connections must lie between 1 and 10000");
  if (options.deny_share < 0 || options.deny_share > 1) return bad("--deny-share must lie between 0 and 1");
  if (options.deny_share > 0 && options.deny_limit.empty()) return bad("--deny-share needs a --deny-limit");
  if (options.calls < 0) return bad("--calls must not be negative");
  if (options.duration <= absl::ZeroDuration()) return bad("--duration must be longer than 0s");
  if (options.server_pid != 0) return ProcessCpuTime(options.server_pid).status();
  return absl::OkStatus();
}

absl::StatusOr<LoadResult> RunLoad(const LoadOptions& options,
                                   const std::function<void(const LoadProgress&)>& progress) {
  Run run(options);
  if (const absl::Status connected = run.Connect(); !connected.ok()) return connected;
  return run.Go(progress);
}

}  // namespace ebbgate::client

#include "client/replay/replayer.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/replay/account.h"
#include "client/replay/compare.h"
#include "server/engine/engine.h"
#include "server/limiter/manual_time.h"

namespace ebbgate::replay {
namespace {

// A case that goes wrong would otherwise print a line for each of its repetitions.
constexpr std::size_t kMaxDifferences = 20;

class Replayer {
 public:
  explicit Replayer(const Case& history)
      : history_(history), time_(history.start_wall_ns), engine_(EngineOptions{}, time_), account_(history.limits) {
    engine_.InstallLimits(history.limits);
    result_.name = history.name;
  }

  CaseResult Run() && {
    for (const Step& step : history_.steps) {
      ++step_number_;
      if (const auto* call = std::get_if<ShouldAllowStep>(&step.action)) {
        Ask(step, *call);
      } else {
        Reload(step, std::get<ReloadStep>(step.action));
      }
      // As the server does now and then; nothing may be seen of it.
      engine_.Maintain();
    }
    return std::move(result_);
  }

 private:
  void Ask(const Step& step, const ShouldAllowStep& asked) {
    std::vector<ChargeRequest> charges;
    for (const CaseCharge& charge : asked.charges) charges.push_back({charge.limit, charge.key, charge.cost});
    const CallRequest request{.charges = charges, .request_id = asked.request_id, .peek = asked.peek};
    std::int64_t allowed = 0;
    CallAnswer answer;
    for (std::int64_t i = 0; i < step.times; ++i) {
      at_ns_ = step.at_ns + i * step.every_ns;
      time_.MoveTo(at_ns_);
      engine_.Decide(request, answer);
      ++result_.decisions;
      if (answer.error == nullptr && answer.allowed) ++allowed;
      CompareAnswer(step.expect, answer, [this](auto... what) { Differ(std::move(what)...); });
      for (std::string& breach : account_.Take(request, answer, at_ns_)) Differ("Envelope", "kept", std::move(breach));
    }
    if (step.expect.allowed_count.has_value() && allowed != *step.expect.allowed_count) {
      Differ("allowed_count", absl::StrCat(*step.expect.allowed_count), absl::StrCat(allowed));
    }
  }

  void Reload(const Step& step, const ReloadStep& reload) {
    at_ns_ = step.at_ns;
    time_.MoveTo(at_ns_);
    const std::string got = reload.limits.ok() ? "none" : absl::StatusCodeToString(reload.limits.status().code());
    const std::string want = step.expect.error.value_or("none");
    if (want != got) {
      Differ("error", want, reload.limits.ok() ? got : absl::StrCat(got, ": ", reload.limits.status().message()));
    }
    if (!reload.limits.ok()) return;  // As a server keeps its last good file.
    for (std::int64_t i = 0; i < step.times; ++i) {
      at_ns_ = step.at_ns + i * step.every_ns;
      time_.MoveTo(at_ns_);
      engine_.InstallLimits(*reload.limits);
      account_.Reload(*reload.limits, at_ns_);
    }
  }

  void Differ(std::string field, std::string want, std::string got) {
    if (result_.differences.size() >= kMaxDifferences) return;
    result_.differences.push_back({step_number_, at_ns_, std::move(field), std::move(want), std::move(got)});
  }

  const Case& history_;
  ManualTime time_;
  Engine engine_;
  Account account_;
  CaseResult result_;
  int step_number_ = 0;
  std::int64_t at_ns_ = 0;
};

// The kinds of steps that a case has and that cannot be replayed, each once.
std::string Unsupported(const Case& history) {
  std::string kinds;
  for (const Step& step : history.steps) {
    const auto* unsupported = std::get_if<UnsupportedStep>(&step.action);
    if (unsupported == nullptr || absl::StrContains(kinds, unsupported->kind)) continue;
    absl::StrAppend(&kinds, kinds.empty() ? "" : ", ", unsupported->kind);
  }
  return kinds;
}

}  // namespace

CaseResult Replay(const Case& history) {
  if (std::string needs = Unsupported(history); !needs.empty()) {
    return {.name = history.name, .needs = std::move(needs), .differences = {}};
  }
  return Replayer(history).Run();
}

}  // namespace ebbgate::replay

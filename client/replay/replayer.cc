#include "client/replay/replayer.h"

#include <algorithm>
#include <map>
#include <utility>

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
      } else if (const auto* reserve = std::get_if<ReserveStep>(&step.action)) {
        Reserve(step, *reserve);
      } else if (const auto* end = std::get_if<EndStep>(&step.action)) {
        End(step, *end);
      } else {
        Reload(step, std::get<ReloadStep>(step.action));
      }
      // As the server does now and then; nothing may be seen of it.
      engine_.Maintain();
    }
    for (Breach& breach : account_.Judge(latest_ns_)) {
      Differ(breach.step, breach.at_ns, "Envelope", "kept", std::move(breach.what));
    }
    return std::move(result_);
  }

 private:
  static std::vector<ChargeRequest> Charges(const std::vector<CaseCharge>& asked) {
    std::vector<ChargeRequest> charges;
    charges.reserve(asked.size());
    for (const CaseCharge& charge : asked) charges.push_back({charge.limit, charge.key, charge.cost});
    return charges;
  }

  // Runs `once`, which returns whether it was allowed, as often as the step says, each at its time.
  template <typename Once>
  void Repeat(const Step& step, Once once) {
    std::int64_t allowed = 0;
    for (std::int64_t i = 0; i < step.times; ++i) {
      at_ns_ = step.at_ns + i * step.every_ns;
      latest_ns_ = std::max(latest_ns_, at_ns_);
      time_.MoveTo(at_ns_);
      if (once()) ++allowed;
      ++result_.decisions;
    }
    if (step.expect.allowed_count.has_value() && allowed != *step.expect.allowed_count) {
      Differ("allowed_count", absl::StrCat(*step.expect.allowed_count), absl::StrCat(allowed));
    }
  }

  void Ask(const Step& step, const ShouldAllowStep& asked) {
    const std::vector<ChargeRequest> charges = Charges(asked.charges);
    const CallRequest request{.charges = charges, .request_id = asked.request_id, .peek = asked.peek};
    CallAnswer answer;
    Repeat(step, [&] {
      engine_.Decide(request, answer);
      CompareAnswer(step.expect, answer, Reporter());
      account_.Take(request, answer, at_ns_, step_number_);
      return answer.error == nullptr && answer.allowed;
    });
  }

  void Reserve(const Step& step, const ReserveStep& asked) {
    const std::vector<ChargeRequest> charges = Charges(asked.charges);
    const ReserveRequest request{.call = {.charges = charges, .request_id = asked.request_id},
                                 .max_wait_ns = asked.max_wait_ns,
                                 .hold_ns = asked.hold_ns};
    Repeat(step, [&] {
      ReserveAnswer answer;
      engine_.Reserve(request, answer);
      CompareReservation(step.expect, answer, Reporter());
      account_.Reserve(request.call, answer, at_ns_, step_number_);
      const bool granted = answer.call.error == nullptr && answer.call.allowed;
      if (granted && !asked.as.empty()) ids_[asked.as] = answer.reservation_id;
      return granted;
    });
  }

  void End(const Step& step, const EndStep& asked) {
    const auto named = ids_.find(asked.reservation);
    const std::string& id = named == ids_.end() ? asked.reservation : named->second;
    Repeat(step, [&] {
      SettleAnswer answer;
      if (asked.actual.has_value()) {
        engine_.Settle(id, *asked.actual, answer);
      } else {
        engine_.Cancel(id, answer);
      }
      CompareEnding(step.expect, answer, Reporter());
      account_.End(id, answer);
      return answer.error == nullptr;
    });
  }

  void Reload(const Step& step, const ReloadStep& reload) {
    at_ns_ = step.at_ns;
    const std::string got = reload.limits.ok() ? "none" : absl::StatusCodeToString(reload.limits.status().code());
    const std::string want = step.expect.error.value_or("none");
    if (want != got) {
      Differ("error", want, reload.limits.ok() ? got : absl::StrCat(got, ": ", reload.limits.status().message()));
    }
    if (!reload.limits.ok()) return;  // As a server keeps its last good file.
    for (std::int64_t i = 0; i < step.times; ++i) {
      at_ns_ = step.at_ns + i * step.every_ns;
      latest_ns_ = std::max(latest_ns_, at_ns_);
      time_.MoveTo(at_ns_);
      engine_.InstallLimits(*reload.limits);
      account_.Reload(*reload.limits, at_ns_);
    }
  }

  ReportDifference Reporter() {
    return [this](std::string field, std::string want, std::string got) {
      Differ(std::move(field), std::move(want), std::move(got));
    };
  }

  void Differ(std::string field, std::string want, std::string got) {
    Differ(step_number_, at_ns_, std::move(field), std::move(want), std::move(got));
  }
  void Differ(int step, std::int64_t at_ns, std::string field, std::string want, std::string got) {
    if (result_.differences.size() >= kMaxDifferences) return;
    result_.differences.push_back({step, at_ns, std::move(field), std::move(want), std::move(got)});
  }

  const Case& history_;
  ManualTime time_;
  Engine engine_;
  Account account_;
  CaseResult result_;
  std::map<std::string, std::string> ids_;  // of reservations, by what the case calls them
  int step_number_ = 0;
  std::int64_t at_ns_ = 0;
  std::int64_t latest_ns_ = 0;
};

}  // namespace

CaseResult Replay(const Case& history) { return Replayer(history).Run(); }

}  // namespace ebbgate::replay

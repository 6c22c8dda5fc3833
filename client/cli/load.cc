// ebbgate load: a load generator.
#include <cmath>
#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/command.h"
#include "client/cli/text.h"
#include "client/json.h"
#include "client/load/generator.h"

namespace ebbgate::client {
namespace {

constexpr char kMore[] =
    "Examples:\n"
    "  ebbgate load --limit api-user                               64 calls in flight for 10 s\n"
    "  ebbgate load --limit api-user --rate 5000                   5,000 calls a second, come what may\n"
    "  ebbgate load --limit api-user --mode batch --batch 1000     a thousand decisions a call\n"
    "  ebbgate load --limit api-user --distribution hot            everyone asks for one key\n"
    "  ebbgate load --limit big --deny-share 0.5 --deny-limit tiny   half of the calls are denied\n"
    "\n"
    "With --rate (an open loop) a latency counts from the moment a call was due, so that a stall\n"
    "of the server is charged to all the calls that it delayed.\n"
    "Exit code: 0 all calls were answered, 1 some failed, 2 an error.\n";

const std::map<std::string, LoadMode> kModes = {
    {"unary", LoadMode::kUnary}, {"batch", LoadMode::kBatch}, {"stream", LoadMode::kStream}};
const std::map<std::string, KeyDistribution> kDistributions = {
    {"uniform", KeyDistribution::kUniform}, {"zipf", KeyDistribution::kZipf}, {"hot", KeyDistribution::kHot}};
const std::map<std::string, LoadTarget> kTargets = {{"ebbgate", LoadTarget::kEbbgate},
                                                    {"yardstick", LoadTarget::kYardstick}};

template <typename Value>
std::string NameOf(const std::map<std::string, Value>& names, Value value) {
  for (const auto& [name, named] : names) {
    if (named == value) return name;
  }
  return "";
}

// An option that takes one of some words, shown as {a,b,c}.
template <typename Value>
void AddChoice(CLI::App& app, const std::string& flag, Value& value, const std::map<std::string, Value>& names,
               const std::string& help) {
  std::vector<std::string> words;
  words.reserve(names.size());
  for (const auto& [word, unused] : names) words.push_back(word);
  app.add_option_function<std::string>(
         flag, [&value, &names](const std::string& word) { value = names.at(word); }, help)
      ->check(CLI::IsMember(words))
      ->type_name("WORD")
      ->default_str(NameOf(names, value));
}

struct Rates {
  double calls_per_s = 0;
  double decisions_per_s = 0;
};

Rates RatesOf(const LoadResult& result) {
  const double seconds = absl::ToDoubleSeconds(result.elapsed);
  if (seconds <= 0) return {};
  return {static_cast<double>(result.counts.calls) / seconds, static_cast<double>(result.counts.decisions()) / seconds};
}

absl::Duration PerCall(absl::Duration total, const LoadResult& result) {
  return result.counts.calls == 0 ? absl::ZeroDuration() : total / result.counts.calls;
}

absl::Duration Quantile(const LoadResult& result, double fraction) {
  return absl::Nanoseconds(result.latency.QuantileNs(fraction));
}

std::string WhatRan(const LoadOptions& options) {
  std::string text = NameOf(kModes, options.mode);
  if (options.mode != LoadMode::kUnary) absl::StrAppend(&text, " of ", options.batch);
  if (options.rate > 0) {
    absl::StrAppendFormat(&text, ", %g calls/s due", options.rate);
  } else {
    absl::StrAppend(&text, ", ", options.outstanding, " in flight");
  }
  absl::StrAppend(&text, ", ", NameOf(kDistributions, options.distribution), " over ", Grouped(options.keys), " keys, ",
                  options.connections, options.connections == 1 ? " connection" : " connections");
  return text;
}

void PrintTable(Session& session, const LoadOptions& options, const LoadResult& result) {
  const LoadCounts& counts = result.counts;
  const Rates rates = RatesOf(result);
  const std::int64_t all = counts.decisions() + counts.errors;
  session.out << WhatRan(options) << ", " << Rough(result.elapsed) << "\n";
  Table table;
  table.Row({"calls/s", Grouped(std::llround(rates.calls_per_s)), Grouped(counts.calls) + " answered"});
  table.Row({"decisions/s", Grouped(std::llround(rates.decisions_per_s)), Grouped(counts.decisions()) + " made"});
  table.Row(
      {"latency", absl::StrCat("p50 ", Rough(Quantile(result, 0.5))),
       absl::StrCat("p90 ", Rough(Quantile(result, 0.9)), "   p99 ", Rough(Quantile(result, 0.99)), "   p99.9 ",
                    Rough(Quantile(result, 0.999)), "   max ", Rough(absl::Nanoseconds(result.latency.max_ns())))});
  table.Row({"allowed", Grouped(counts.allowed), Percent(counts.allowed, all)});
  table.Row({"denied", Grouped(counts.denied), Percent(counts.denied, all)});
  table.Row({"errors", Grouped(counts.errors), Percent(counts.errors, all)});
  table.Row({"client CPU", Rough(PerCall(result.client_cpu, result)), "a call"});
  if (result.server_cpu.has_value()) {
    table.Row({"server CPU", Rough(PerCall(*result.server_cpu, result)), "a call"});
  }
  table.Print(session.out, "  ");
  if (!result.first_error.empty()) session.out << "first error: " << Printable(result.first_error) << "\n";
  if (result.gave_up) session.out << "given up: nothing but failures for a second\n";
}

void PrintJson(Session& session, const LoadOptions& options, const LoadResult& result) {
  const Rates rates = RatesOf(result);
  JsonWriter json(session.out);
  json.BeginObject();
  json.Key("mode").Value(NameOf(kModes, options.mode));
  json.Key("batch").Value(options.mode == LoadMode::kUnary ? 1 : options.batch);
  json.Key("elapsed_s").Value(absl::ToDoubleSeconds(result.elapsed));
  json.Key("calls").Value(result.counts.calls);
  json.Key("failed_calls").Value(result.counts.failed_calls);
  json.Key("calls_per_s").Value(rates.calls_per_s);
  json.Key("decisions_per_s").Value(rates.decisions_per_s);
  json.Key("allowed").Value(result.counts.allowed);
  json.Key("denied").Value(result.counts.denied);
  json.Key("errors").Value(result.counts.errors);
  json.Key("latency_ns").BeginObject();
  json.Key("p50").Value(result.latency.QuantileNs(0.5)).Key("p90").Value(result.latency.QuantileNs(0.9));
  json.Key("p99").Value(result.latency.QuantileNs(0.99)).Key("p99_9").Value(result.latency.QuantileNs(0.999));
  json.Key("max").Value(result.latency.max_ns()).EndObject();
  json.Key("client_cpu_ns_per_call").Value(absl::ToInt64Nanoseconds(PerCall(result.client_cpu, result)));
  if (result.server_cpu.has_value()) {
    json.Key("server_cpu_ns_per_call").Value(absl::ToInt64Nanoseconds(PerCall(*result.server_cpu, result)));
  }
  if (!result.first_error.empty()) json.Key("first_error").Value(result.first_error);
  json.EndObject();
  session.out << "\n";
}

void PrintProgress(Session& session, const LoadProgress& progress) {
  const LoadCounts& last = progress.since_last;
  session.err << absl::StrFormat("%4.0f s  %11s calls/s  %s denied", absl::ToDoubleSeconds(progress.elapsed),
                                 Grouped(last.calls), Percent(last.denied, last.decisions()));
  if (last.errors > 0) session.err << "  " << Grouped(last.errors) << " errors";
  session.err << std::endl;
}

int Load(Session& session, LoadOptions options) {
  options.address = session.flags.server;
  options.tls = session.flags.Tls();
  options.timeout = session.flags.timeout;
  if (const absl::Status checked = CheckLoadOptions(options); !checked.ok()) return Fail(session, checked);
  const absl::StatusOr<LoadResult> result =
      RunLoad(options, [&](const LoadProgress& progress) { PrintProgress(session, progress); });
  if (!result.ok()) return Fail(session, result.status(), options.address);
  session.flags.json ? PrintJson(session, options, *result) : PrintTable(session, options, *result);
  return result->counts.failed_calls + result->counts.errors > 0 ? kExitNo : kExitOk;
}

}  // namespace

void AddLoad(CLI::App& app, Session& session) {
  CLI::App* command = AddCommand(app, "load", "Drive a server hard and measure it", kMore);
  const auto options = std::make_shared<LoadOptions>();
  AddChoice(*command, "--mode", options->mode, kModes, "One decision a call, a batch a call, or batches on a stream");
  command->add_option("--batch", options->batch, "Decisions in a batch")->capture_default_str();
  command->add_option("--rate", options->rate, "Open loop: calls started each second")->type_name("N");
  command->add_option("--outstanding", options->outstanding, "Calls in flight; in the open loop, at most")
      ->capture_default_str();
  command->add_option("--limit", options->limit, "The limit to charge")->type_name("NAME");
  command->add_option("--cost", options->cost, "Tokens a decision; without it the limit's default")->type_name("N");
  command->add_option("--keys", options->keys, "Different keys")->capture_default_str();
  AddChoice(*command, "--distribution", options->distribution, kDistributions, "How often each key comes");
  command->add_option("--deny-share", options->deny_share, "Charge this share of the decisions to --deny-limit")
      ->type_name("0..1");
  command->add_option("--deny-limit", options->deny_limit, "A limit that is soon exhausted")->type_name("NAME");
  AddDuration(*command, "--duration", options->duration, "How long to run");
  command->add_option("--calls", options->calls, "Stop after this many calls instead")->type_name("N");
  command->add_option("--threads", options->threads, "Threads of the generator")->capture_default_str();
  command->add_option("--connections", options->connections, "Connections, at least one a thread")
      ->capture_default_str();
  AddChoice(*command, "--target", options->target, kTargets, "What listens at --server");
  command->add_option("--server-pid", options->server_pid, "Measure the CPU time of this process")->type_name("PID");
  command->callback([&session, options] {
    if (options->limit.empty() && options->target == LoadTarget::kEbbgate) {
      throw CLI::RequiredError("--limit");
    }
    session.exit_code = Load(session, *options);
  });
}

}  // namespace ebbgate::client

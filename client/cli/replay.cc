// ebbgate replay: case files on the decision core.
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/text.h"
#include "client/json.h"
#include "client/replay/case_file.h"
#include "client/replay/replayer.h"

namespace ebbgate::client {
namespace {

constexpr char kMore[] =
    "Example:\n"
    "  ebbgate replay tests/conformance/*.json\n"
    "\n"
    "Needs no server: each case gets a decision core of its own and a clock moved by hand. Beside what its steps\n"
    "expect, the admissions of every token_bucket and gcra key are held against b + r*t over all intervals.\n"
    "Exit code: 0 everything is as expected, 1 something differs, 2 a file or case cannot be read.\n";

struct Summary {
  std::int64_t files = 0;
  std::int64_t passed = 0;
  std::int64_t differing = 0;
  std::int64_t unreadable = 0;
  std::int64_t decisions = 0;
};

// Prints what happens, as text while it goes on or as JSON.
class Reporter {
 public:
  explicit Reporter(Session& session) : session_(session), json_(session.out) {
    if (session.flags.json) json_.BeginObject().Key("cases").BeginArray();
  }

  void Unreadable(const absl::Status& why) {
    ++summary_.unreadable;
    if (session_.flags.json) {
      json_.BeginObject().Key("outcome").Value("unreadable").Key("message").Value(why.message()).EndObject();
    } else {
      session_.out << "unreadable: " << Printable(why.message()) << "\n";
    }
  }

  void Replayed(const std::string& file, const replay::CaseResult& result) {
    ++(result.differences.empty() ? summary_.passed : summary_.differing);
    summary_.decisions += result.decisions;
    session_.flags.json ? WriteJson(file, result) : WriteText(file, result);
  }

  int Finish(std::int64_t files) {
    summary_.files = files;
    session_.flags.json ? FinishJson() : FinishText();
    if (summary_.unreadable > 0) return kExitError;
    return summary_.differing > 0 ? kExitNo : kExitOk;
  }

 private:
  void WriteText(const std::string& file, const replay::CaseResult& result) {
    if (result.differences.empty()) return;
    session_.out << Printable(file) << ": " << Printable(result.name) << ": differs\n";
    for (const replay::Difference& difference : result.differences) {
      session_.out << "  step " << difference.step << " at " << DescribeNs(difference.at_ns) << ": "
                   << Printable(difference.field) << ": want " << Printable(difference.want) << ", got "
                   << Printable(difference.got) << "\n";
    }
  }

  void WriteJson(const std::string& file, const replay::CaseResult& result) {
    const absl::string_view outcome = result.differences.empty() ? "passed" : "differs";
    json_.BeginObject().Key("file").Value(file).Key("case").Value(result.name).Key("outcome").Value(outcome);
    json_.Key("differences").BeginArray();
    for (const replay::Difference& difference : result.differences) {
      json_.BeginObject().Key("step").Value(difference.step).Key("at_ns").Value(difference.at_ns);
      json_.Key("field").Value(difference.field).Key("want").Value(difference.want);
      json_.Key("got").Value(difference.got).EndObject();
    }
    json_.EndArray().EndObject();
  }

  void FinishText() {
    session_.out << summary_.files << (summary_.files == 1 ? " file, " : " files, ") << summary_.passed
                 << " cases as expected, " << summary_.differing << " differ";
    if (summary_.unreadable > 0) session_.out << ", " << summary_.unreadable << " unreadable";
    session_.out << "; " << Grouped(summary_.decisions) << " decisions\n";
  }

  void FinishJson() {
    json_.EndArray().Key("files").Value(summary_.files).Key("passed").Value(summary_.passed);
    json_.Key("differing").Value(summary_.differing);
    json_.Key("unreadable").Value(summary_.unreadable).Key("decisions").Value(summary_.decisions).EndObject();
    session_.out << "\n";
  }

  Session& session_;
  JsonWriter json_;
  Summary summary_;
};

int ReplayFiles(Session& session, const std::vector<std::string>& files) {
  Reporter reporter(session);
  for (const std::string& file : files) {
    const auto cases = replay::LoadCases(file);
    if (!cases.ok()) {
      reporter.Unreadable(cases.status());
      continue;
    }
    for (const absl::StatusOr<replay::Case>& one : *cases) {
      one.ok() ? reporter.Replayed(file, replay::Replay(*one)) : reporter.Unreadable(one.status());
    }
  }
  return reporter.Finish(static_cast<std::int64_t>(files.size()));
}

}  // namespace

void AddReplay(CLI::App& app, Session& session) {
  CLI::App* command = AddCommand(app, "replay", "Run case files on the decision core with a fake clock", kMore);
  const auto files = std::make_shared<std::vector<std::string>>();
  command->add_option("files", *files, "Case files")->required()->type_name("FILE");
  command->callback([&session, files] { session.exit_code = ReplayFiles(session, *files); });
}

}  // namespace ebbgate::client

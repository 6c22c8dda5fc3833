#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/command.h"
#include "client/cli/text.h"
#include "client/json.h"

namespace ebbgate::client {
namespace {

void PrintJsonError(std::ostream& out, const absl::Status& error, const ErrorDetails& details) {
  JsonWriter json(out);
  json.BeginObject().Key("error").Value(absl::StatusCodeToString(error.code()));
  if (!details.reason.empty()) json.Key("reason").Value(details.reason);
  if (!details.field.empty()) json.Key("field").Value(details.field);
  if (details.retry_after.has_value()) json.Key("retry_after").Value(*details.retry_after);
  json.Key("message").Value(error.message()).EndObject();
  out << "\n";
}

// What the user may do about it; empty where nothing is known.
std::string NextStep(const absl::Status& error, const ErrorDetails& details, absl::string_view address) {
  if (details.reason == "UNKNOWN_LIMIT") return "'ebbgate limits' lists the limits that are configured.";
  if (details.reason == "UNKNOWN_RESERVATION") {
    return "An id is 32 characters, as 'ebbgate reserve' prints it, and is forgotten some time after the hold has "
           "ended.";
  }
  if (address.empty() || !details.reason.empty()) return "";
  if (error.code() == absl::StatusCode::kUnavailable) {
    return absl::StrCat("Is a server running at ", address,
                        "? 'ebbgated --limits FILE' starts one; --server and --admin (or\n  EBBGATE_SERVER and "
                        "EBBGATE_ADMIN) name another. A server that wants TLS needs --tls-ca.");
  }
  if (error.code() == absl::StatusCode::kDeadlineExceeded) {
    return absl::StrCat("No answer from ", address, " in time; --timeout allows more.");
  }
  if (error.code() == absl::StatusCode::kUnimplemented) {
    return absl::StrCat("What listens at ", address, " does not know this call: is it the right port?");
  }
  return "";
}

}  // namespace

int Fail(Session& session, const absl::Status& error, absl::string_view address) {
  const ErrorDetails details = DetailsOf(error);
  if (session.flags.json) {
    PrintJsonError(session.out, error, details);
    return kExitError;
  }
  const std::string code = absl::StatusCodeToString(error.code());
  session.err << "error: " << code;
  if (!details.reason.empty()) session.err << " " << Printable(details.reason);
  if (!details.field.empty() && !absl::StrContains(error.message(), details.field)) {
    session.err << " in " << Printable(details.field);
  }
  for (const absl::string_view line : absl::StrSplit(error.message(), '\n', absl::SkipEmpty())) {
    session.err << "\n  " << Printable(line);
  }
  session.err << "\n";
  const std::string next = NextStep(error, details, address);
  if (!next.empty()) session.err << "  " << next << "\n";
  return kExitError;
}

}  // namespace ebbgate::client

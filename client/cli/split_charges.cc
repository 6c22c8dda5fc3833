#include "client/cli/split_charges.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace ebbgate::client {
namespace {

constexpr char kAnd[] = "--and";
constexpr char kCost[] = "--cost";

using Position = std::vector<std::string>::const_iterator;

absl::Status ReadCost(absl::string_view text, Charge& charge) {
  std::int64_t cost = 0;
  if (charge.cost.has_value()) return absl::InvalidArgumentError("--cost stands twice after one --and");
  if (!absl::SimpleAtoi(text, &cost)) {
    return absl::InvalidArgumentError(absl::StrCat("--cost takes a whole number, not '", text, "'"));
  }
  charge.cost = cost;
  return absl::OkStatus();
}

// What stands between one --and and the next. `at` is behind the --and.
absl::Status ReadGroup(Position at, Position end, SplitArguments& split) {
  const bool verbatim = at != end && *at == "--";
  if (verbatim) ++at;
  const auto usable = [&](Position i) { return verbatim || !absl::StartsWith(*i, "-"); };
  if (end - at < 2 || !usable(at) || !usable(at + 1)) {
    return absl::InvalidArgumentError("--and needs a limit and a key: --and LIMIT KEY [--cost N]");
  }
  Charge charge{.limit = *at, .key = *(at + 1)};
  for (at += 2; at != end; ++at) {
    absl::string_view argument = *at;
    absl::Status read;
    if (argument == kCost) {
      if (++at == end) return absl::InvalidArgumentError("--cost takes a whole number");
      read = ReadCost(*at, charge);
    } else if (absl::ConsumePrefix(&argument, absl::StrCat(kCost, "="))) {
      read = ReadCost(argument, charge);
    } else {
      split.rest.push_back(*at);
    }
    if (!read.ok()) return read;
  }
  split.charges.push_back(std::move(charge));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SplitArguments> SplitCharges(const std::vector<std::string>& args) {
  SplitArguments split;
  Position at = std::find(args.begin(), args.end(), kAnd);
  const auto takes_charges = [](absl::string_view word) { return word == "check" || word == "reserve"; };
  if (std::none_of(args.begin(), at, takes_charges)) at = args.end();
  split.rest.assign(args.begin(), at);
  while (at != args.end()) {
    const Position next = std::find(at + 1, args.end(), kAnd);
    if (const absl::Status read = ReadGroup(at + 1, next, split); !read.ok()) return read;
    at = next;
  }
  return split;
}

}  // namespace ebbgate::client

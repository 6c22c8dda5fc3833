#include "server/config/drift_settings.h"

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/config/text.h"
#include "server/limiter/amount.h"
#include "server/limiter/bounds.h"

namespace ebbgate {
namespace {

constexpr absl::string_view kDriftKeys[] = {"ratio", "window", "minimum"};
constexpr std::int64_t kMicros = 1'000'000;
constexpr std::size_t kRatioDecimals = 6;

// "1.15" in millionths, exactly: digits, perhaps a point and up to six more.
std::optional<std::int64_t> ParseMicros(absl::string_view text) {
  const std::size_t point = text.find('.');
  const absl::string_view decimals = point == absl::string_view::npos ? "" : text.substr(point + 1);
  if (point != absl::string_view::npos && (decimals.empty() || decimals.size() > kRatioDecimals)) return std::nullopt;
  const absl::StatusOr<std::int64_t> whole = ParseWholeNumber(text.substr(0, point));
  if (!whole.ok() || *whole > kInt64Max / kMicros - 1) return std::nullopt;
  std::int64_t micros = 0;
  for (std::size_t i = 0; i < kRatioDecimals; ++i) {
    const char digit = i < decimals.size() ? decimals[i] : '0';
    if (!absl::ascii_isdigit(static_cast<unsigned char>(digit))) return std::nullopt;
    micros = micros * 10 + (digit - '0');
  }
  return *whole * kMicros + micros;
}

void ReadRatio(const YamlFields& fields, DriftSettings& drift) {
  const std::optional<std::string> text = fields.Text("ratio");
  if (!text) return;
  const std::optional<std::int64_t> micros = ParseMicros(*text);
  if (!micros) {
    fields.Fault("ratio", absl::StrCat("must be a number such as 1.15, with up to ", kRatioDecimals,
                                       " decimals, but is ", Quote(*text)));
  } else if (*micros < kMinDriftRatioMicros || *micros > kMaxDriftRatioMicros) {
    fields.Fault("ratio", "must be from 1.01 to 1000",
                 "1.15: received is 15 % above admitted; its inverse bounds the other side");
  } else {
    drift.ratio_micros = *micros;
  }
}

void ReadWindow(const YamlFields& fields, DriftSettings& drift) {
  const std::optional<std::int64_t> window_ns = fields.DurationNs("window");
  if (!window_ns) return;
  if (*window_ns < kMinDriftWindowNs || *window_ns > kMaxDriftWindowNs) {
    fields.Fault("window", "must be from 1s to 24h", "several reports must fall into it; 10m is the default");
  } else {
    drift.window_ns = *window_ns;
  }
}

}  // namespace

void ReadDriftSettings(const YamlFields& limit, DriftSettings& drift) {
  const YamlNode* const node = limit.Find("drift");
  if (node == nullptr) return;
  const YamlFields fields(*node, limit.Path("drift"), limit.faults());
  if (node->kind != YamlNode::Kind::kMap) return;
  fields.RefuseUnknown(kDriftKeys);
  ReadRatio(fields, drift);
  ReadWindow(fields, drift);
  if (const auto minimum = fields.WholeNumber("minimum", 1, kMaxCostTokens)) drift.minimum = *minimum;
}

}  // namespace ebbgate

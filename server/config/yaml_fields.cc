#include "server/config/yaml_fields.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/config/duration.h"
#include "server/config/text.h"

namespace ebbgate {

YamlFields::YamlFields(const YamlNode& node, std::string path, Faults& faults)
    : node_(node), path_(std::move(path)), faults_(faults) {
  if (node.kind == YamlNode::Kind::kMap) return;
  faults.Add(node.line, path_, absl::StrCat("must be a map (key: value), but is ", Name(node.kind)));
}

std::string YamlFields::Path(absl::string_view key) const {
  return path_.empty() ? std::string(key) : absl::StrCat(path_, ".", key);
}

const YamlNode* YamlFields::Find(absl::string_view key) const {
  for (std::size_t i = 0; i < node_.keys.size(); ++i) {
    if (node_.keys[i].text == key) return &node_.items[i];
  }
  return nullptr;
}

void YamlFields::RefuseUnknown(absl::Span<const absl::string_view> known) const {
  for (const YamlKey& key : node_.keys) {
    if (faults_.full()) return;
    if (std::find(known.begin(), known.end(), key.text) != known.end()) continue;
    const absl::string_view nearest = Nearest(key.text, known);
    faults_.Add(key.line, path_, absl::StrCat("does not know the key ", Quote(key.text)),
                nearest.empty() ? absl::StrCat("known are ", absl::StrJoin(known, ", "))
                                : absl::StrCat("did you mean ", nearest, "?"));
  }
}

void YamlFields::Fault(absl::string_view key, absl::string_view reason, absl::string_view hint) const {
  const YamlNode* value = Find(key);
  faults_.Add(value != nullptr ? value->line : node_.line, Path(key), reason, hint);
}

const YamlNode* YamlFields::Scalar(absl::string_view key, absl::string_view what) const {
  const YamlNode* value = Find(key);
  if (value == nullptr || value->kind == YamlNode::Kind::kScalar) return value;
  Fault(key, absl::StrCat("must be ", what, ", but is ", Name(value->kind)));
  return nullptr;
}

std::optional<std::string> YamlFields::Text(absl::string_view key) const {
  const YamlNode* value = Scalar(key, "a text");
  if (value == nullptr) return std::nullopt;
  if (!value->text.empty()) return value->text;
  Fault(key, "must not be empty");
  return std::nullopt;
}

std::optional<std::int64_t> YamlFields::WholeNumber(absl::string_view key, std::int64_t least,
                                                    std::int64_t most) const {
  const YamlNode* value = Scalar(key, "a whole number");
  if (value == nullptr) return std::nullopt;
  if (value->quoted) {
    Fault(key, absl::StrCat("must be a whole number, but ", Quote(value->text), " in quotes is a text"),
          "remove the quotes");
    return std::nullopt;
  }
  const absl::StatusOr<std::int64_t> number = ParseWholeNumber(value->text);
  if (!number.ok()) {
    Fault(key, absl::StrCat(number.status().message(), ", but is ", Quote(value->text)));
  } else if (*number < least) {
    Fault(key, absl::StrCat("must be at least ", least));
  } else if (*number > most) {
    Fault(key, absl::StrCat("must be at most ", most));
  } else {
    return *number;
  }
  return std::nullopt;
}

std::optional<std::int64_t> YamlFields::DurationNs(absl::string_view key) const {
  const YamlNode* value = Scalar(key, "a length of time such as 1s");
  if (value == nullptr) return std::nullopt;
  const absl::StatusOr<std::int64_t> ns = ParseDurationNs(value->text);
  if (ns.ok()) return *ns;
  Fault(key, ns.status().message());
  return std::nullopt;
}

std::optional<bool> YamlFields::Switch(absl::string_view key) const {
  const YamlNode* value = Scalar(key, "true or false");
  if (value == nullptr) return std::nullopt;
  if (!value->quoted && (value->text == "true" || value->text == "false")) return value->text == "true";
  Fault(key, absl::StrCat("must be true or false, but is ", Quote(value->text)),
        value->quoted ? "remove the quotes" : "");
  return std::nullopt;
}

}  // namespace ebbgate

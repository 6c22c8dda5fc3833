// Reads values out of a map of a YAML tree, and says what is wrong with them.
#ifndef EBBGATE_SERVER_CONFIG_YAML_FIELDS_H_
#define EBBGATE_SERVER_CONFIG_YAML_FIELDS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/config/faults.h"
#include "server/config/yaml_tree.h"

namespace ebbgate {

// Reads the values of one map of the tree. Each fault is added with its line and its path ("limits[0].refill.per").
// What is absent, and what is faulty, is returned as nothing; Find tells them apart. Holds references: short-lived.
class YamlFields {
 public:
  // A node that is not a map is a fault, and reads as an empty map.
  YamlFields(const YamlNode& node, std::string path, Faults& faults);

  const YamlNode& node() const { return node_; }
  Faults& faults() const { return faults_; }
  // The path of a key of this map.
  std::string Path(absl::string_view key) const;

  const YamlNode* Find(absl::string_view key) const;
  bool Has(absl::string_view key) const { return Find(key) != nullptr; }

  // Adds a fault for each key that is not among `known`, with the nearest known one as hint.
  void RefuseUnknown(absl::Span<const absl::string_view> known) const;
  // Adds a fault at the key's line, or at the map's where the key is absent.
  void Fault(absl::string_view key, absl::string_view reason, absl::string_view hint = {}) const;

  // Text that is not empty, quoted or not.
  std::optional<std::string> Text(absl::string_view key) const;
  std::optional<std::int64_t> WholeNumber(absl::string_view key, std::int64_t least, std::int64_t most) const;
  std::optional<std::int64_t> DurationNs(absl::string_view key) const;
  // true or false.
  std::optional<bool> Switch(absl::string_view key) const;

 private:
  // The key's scalar, if there is one; anything else is a fault that says `what` is expected.
  const YamlNode* Scalar(absl::string_view key, absl::string_view what) const;

  const YamlNode& node_;
  const std::string path_;
  Faults& faults_;
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_CONFIG_YAML_FIELDS_H_

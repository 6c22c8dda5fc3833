// YAML as a small tree of plain values, each with its line; only the part of YAML that a configuration needs.
//
// Refused while reading, before anything is built from it: anchors and aliases (a few of which can stand for billions
// of nodes), tags, merge keys, keys that are not text, the same key twice in a map, several documents, nesting beyond
// kMaxYamlDepth, more than kMaxYamlNodes values, text that is not UTF-8, control characters, tabs as indentation.
#ifndef EBBGATE_SERVER_CONFIG_YAML_TREE_H_
#define EBBGATE_SERVER_CONFIG_YAML_TREE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/config/faults.h"

namespace ebbgate {

struct YamlKey {
  std::string text;
  int line = 0;
};

struct YamlNode {
  enum class Kind : std::uint8_t { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  bool quoted = false;  // of a scalar: "4" is text, 4 is a number
  int line = 0;
  std::string text{};             // of a scalar
  std::vector<YamlNode> items{};  // of a list; of a map, the values
  std::vector<YamlKey> keys{};    // of a map, one for each value
};

// How a key is written in a path such as limits[0].metadata."a b".
std::string PathPart(absl::string_view key);

// The one document in `text`. Absent where it cannot be read, with the reason added to `faults`; a key that stands
// twice is a fault too, but the tree is returned, so that other faults can be found. Never throws. Time and memory are
// linear in the text.
std::optional<YamlNode> ReadYaml(absl::string_view text, Faults& faults);

// "a list", ... for messages.
absl::string_view Name(YamlNode::Kind kind);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_CONFIG_YAML_TREE_H_

// Two small bridges between JSON and a YAML parser.
#ifndef EBBGATE_CLIENT_REPLAY_JSON_TEXT_H_
#define EBBGATE_CLIENT_REPLAY_JSON_TEXT_H_

#include <yaml-cpp/yaml.h>

#include <string>

#include "absl/strings/string_view.h"

namespace ebbgate::replay {

// The same text with pairs of escapes such as "\ud83d\ude00" replaced by the character they stand for. JSON writes what
// lies beyond 16 bits so; YAML does not know it.
std::string JoinSurrogates(absl::string_view text);

// A node as JSON. Scalars that stood in quotes stay texts.
std::string ToJson(const YAML::Node& node);

}  // namespace ebbgate::replay

#endif  // EBBGATE_CLIENT_REPLAY_JSON_TEXT_H_

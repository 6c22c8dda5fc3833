// Another parser of JSON than ours to judge by: Protobuf's, through a google.protobuf.Value.
//
// Only virtual and library functions touch the message: its inline accessors lay maps out differently when compiled for
// the thread sanitizer than the library does.
#ifndef EBBGATE_TESTS_UNIT_TELEMETRY_JSON_READER_H_
#define EBBGATE_TESTS_UNIT_TELEMETRY_JSON_READER_H_

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace ebbgate {

// Null if `json` is not JSON.
inline std::unique_ptr<google::protobuf::Message> ReadJson(absl::string_view json) {
  std::unique_ptr<google::protobuf::Message> value(google::protobuf::Value::default_instance().New());
  const google::protobuf::StringPiece text(json.data(), json.size());
  if (!google::protobuf::util::JsonStringToMessage(text, value.get()).ok()) return nullptr;
  return value;
}

// Of a value that is a string.
inline std::string StringOf(const google::protobuf::Message& value) {
  return value.GetReflection()->GetString(value, value.GetDescriptor()->FindFieldByName("string_value"));
}

}  // namespace ebbgate

#endif  // EBBGATE_TESTS_UNIT_TELEMETRY_JSON_READER_H_

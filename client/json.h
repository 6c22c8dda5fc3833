// JSON for programs, written member by member in a fixed order.
//
//   JsonWriter json(out);
//   json.BeginObject().Key("allowed").Value(true).EndObject();
//
// Not thread-safe. Invalid UTF-8 in a string is replaced, so that the output is always JSON.
#ifndef EBBGATE_CLIENT_JSON_H_
#define EBBGATE_CLIENT_JSON_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace ebbgate::client {

class JsonWriter {
 public:
  explicit JsonWriter(std::ostream& out) : out_(out) {}

  JsonWriter& BeginObject() { return Open('{'); }
  JsonWriter& EndObject() { return Close('}'); }
  JsonWriter& BeginArray() { return Open('['); }
  JsonWriter& EndArray() { return Close(']'); }
  JsonWriter& Key(absl::string_view name);
  JsonWriter& Value(absl::string_view text);
  JsonWriter& Value(const char* text) { return Value(absl::string_view(text)); }
  JsonWriter& Value(bool truth);
  JsonWriter& Value(double number);
  template <typename Integer, std::enable_if_t<std::is_integral_v<Integer> && !std::is_same_v<Integer, bool>, int> = 0>
  JsonWriter& Value(Integer number) {
    Separate();
    out_ << number;
    return *this;
  }
  // As protobuf writes it: seconds, exact, "0.500s".
  JsonWriter& Value(absl::Duration length);

 private:
  JsonWriter& Open(char bracket);
  JsonWriter& Close(char bracket);
  void Separate();

  std::ostream& out_;
  bool first_ = true;
};

// "0.500s": whole seconds, and 0, 3, 6 or 9 digits of a fraction.
std::string ProtoDuration(absl::Duration length);

// With quotation marks.
std::string JsonString(absl::string_view text);

}  // namespace ebbgate::client

#endif  // EBBGATE_CLIENT_JSON_H_

// Text that came from outside, made safe to stand in a line of a log, whatever its bytes.
//
// Both forms keep printable UTF-8 and replace: control characters (C0, DEL, C1: newlines, terminal escapes), line and
// paragraph separators, characters that reorder text (bidirectional controls), and bytes that are not UTF-8.
//
// Pure. The result is at most six bytes for each byte of the input, plus quotes.
#ifndef EBBGATE_SERVER_TELEMETRY_ESCAPE_H_
#define EBBGATE_SERVER_TELEMETRY_ESCAPE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace ebbgate {

// Appends `value` for key=value text: bare where it cannot be mistaken for anything else, else in double quotes with
// \" \\ \n \r \t, \u{85} for other characters that are replaced, and \xFF for bytes that are not UTF-8.
void AppendTextValue(absl::string_view value, std::string& out);

// Appends `value` as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD, one for each.
void AppendJsonString(absl::string_view value, std::string& out);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_TELEMETRY_ESCAPE_H_

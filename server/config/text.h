// Small judgements about text that config makes in several places. Pure.
#ifndef EBBGATE_SERVER_CONFIG_TEXT_H_
#define EBBGATE_SERVER_CONFIG_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace ebbgate {

// For a message: control characters and bad bytes escaped.
std::string Escape(absl::string_view text);

// The same in double quotes, and long texts cut.
std::string Quote(absl::string_view text);

// How many bytes of `text` are valid UTF-8; all of them if it is text.size(). Surrogates, overlong forms and code
// points beyond U+10FFFF are not valid.
std::size_t ValidUtf8Prefix(absl::string_view text);

// Whether `text` (valid UTF-8) holds a control character: C0, DEL or C1.
bool HasControlCharacter(absl::string_view text);

// A number in plain decimal digits. INVALID_ARGUMENT (without the text) for signs, fractions, exponents, other bases,
// separators and what is beyond signed 64 bits.
absl::StatusOr<std::int64_t> ParseWholeNumber(absl::string_view text);

// The candidate that `word` is most likely a misspelling of, or empty.
absl::string_view Nearest(absl::string_view word, absl::Span<const absl::string_view> candidates);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_CONFIG_TEXT_H_

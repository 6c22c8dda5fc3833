// Whether bytes are UTF-8 as protobuf's strings must be: no surrogates, nothing beyond U+10FFFF, no longer forms than
// needed. Pure; eight bytes of ASCII at a time.
#ifndef EBBGATE_SERVER_SERVICE_UTF8_H_
#define EBBGATE_SERVER_SERVICE_UTF8_H_

#include "absl/strings/string_view.h"

namespace ebbgate {

bool IsUtf8(absl::string_view text);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_SERVICE_UTF8_H_

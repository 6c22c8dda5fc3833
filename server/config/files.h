// Reading a whole file that somebody named in a setting.
#ifndef EBBGATE_SERVER_CONFIG_FILES_H_
#define EBBGATE_SERVER_CONFIG_FILES_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace ebbgate {

// The content of a regular file (symlinks are followed). Errors begin with the path and say what to do; their code is
// the system's: NOT_FOUND, PERMISSION_DENIED, ...; INVALID_ARGUMENT for what is no regular file or larger than
// `max_bytes`. Never waits for a writer, as a named pipe would make it.
absl::StatusOr<std::string> ReadRegularFile(const std::string& path, std::size_t max_bytes);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_CONFIG_FILES_H_

#include "server/config/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace ebbgate {
namespace {

absl::string_view HintFor(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return " (hint: check the path; a relative one counts from the working directory)";
    case EACCES:
      return " (hint: the user that runs the program needs read permission)";
    default:
      return "";
  }
}

absl::Status CannotRead(const std::string& path, int error) {
  const absl::Status status = absl::ErrnoToStatus(error, "cannot be read");
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message(), HintFor(error)));
}

}  // namespace

absl::StatusOr<std::string> ReadRegularFile(const std::string& path, std::size_t max_bytes) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return CannotRead(path, errno);
  const absl::Cleanup close_file = [fd] { ::close(fd); };
  struct stat info = {};
  if (::fstat(fd, &info) != 0) return CannotRead(path, errno);
  if (S_ISDIR(info.st_mode)) return absl::InvalidArgumentError(absl::StrCat(path, ": is a directory, not a file"));
  if (!S_ISREG(info.st_mode)) return absl::InvalidArgumentError(absl::StrCat(path, ": is not a regular file"));

  // Read to the end rather than to the size seen: the file may be growing.
  std::string content;
  constexpr std::size_t kStep = 64 * 1024;
  for (std::size_t length = 0;;) {
    content.resize(length + kStep);
    const ssize_t got = ::read(fd, content.data() + length, kStep);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return CannotRead(path, errno);
    length += static_cast<std::size_t>(got);
    content.resize(length);
    if (got == 0) return content;
    if (length > max_bytes) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": is larger than ", max_bytes, " bytes"));
    }
  }
}

}  // namespace ebbgate

// A folder of its own for a test, removed with all it holds at the end. Not thread-safe.
#ifndef EBBGATE_TESTS_SUPPORT_TEMP_DIR_H_
#define EBBGATE_TESTS_SUPPORT_TEMP_DIR_H_

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "absl/strings/string_view.h"

namespace ebbgate {

class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ebbgate-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) abort();
    path_ = pattern;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string File(absl::string_view name) const { return path_ + "/" + std::string(name); }

  // Writes a file in place, truncating what was there. Returns its path.
  std::string Write(absl::string_view name, absl::string_view content) const {
    std::ofstream file(File(name), std::ios::binary | std::ios::trunc);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
    return File(name);
  }

 private:
  std::string path_;
};

}  // namespace ebbgate

#endif  // EBBGATE_TESTS_SUPPORT_TEMP_DIR_H_

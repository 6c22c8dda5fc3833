// Collects what is wrong with a file, so that all of it can be told at once: "limits.yaml:12: limits[0].capacity: must
// be at least 1 (hint: ...)". Not thread-safe. Keeps the first kMaxFaults and the number of the others.
#ifndef EBBGATE_SERVER_CONFIG_FAULTS_H_
#define EBBGATE_SERVER_CONFIG_FAULTS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ebbgate {

class Faults {
 public:
  explicit Faults(absl::string_view file) : file_(file) {}

  // Line 0: the file as a whole. An empty path or hint is left out.
  void Add(int line, absl::string_view path, absl::string_view reason, absl::string_view hint = {});

  std::size_t count() const { return count_; }
  // Whether more would only be counted, so that looking for more is in vain.
  bool full() const { return count_ > faults_.size(); }
  const std::string& file() const { return file_; }

  // INVALID_ARGUMENT with a line for each fault, in the order of the file; OK if there is none.
  absl::Status ToStatus() const;

 private:
  struct Fault {
    int line;
    std::string text;
  };

  const std::string file_;
  std::vector<Fault> faults_;
  std::size_t count_ = 0;
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_CONFIG_FAULTS_H_

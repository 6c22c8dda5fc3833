#include "server/service/wire_writer.h"

#include <algorithm>

namespace ebbgate {

void WireWriter::Grow(std::size_t bytes) {
  const std::size_t written = size();
  const std::size_t capacity = std::max(capacity_ * 2, written + bytes);
  std::unique_ptr<char[]> buffer(new char[capacity]);
  if (written > 0) std::memcpy(buffer.get() + capacity - written, buffer_.get() + at_, written);
  buffer_ = std::move(buffer);
  capacity_ = capacity;
  at_ = capacity - written;
}

}  // namespace ebbgate

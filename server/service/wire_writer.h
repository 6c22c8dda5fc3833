// Writes one protobuf message from its last byte to its first, so that the length of a part is known when it is needed
// and nothing is measured twice.
//
//   WireWriter writer;
//   const std::size_t end = writer.size();
//   writer.Reserve(64);
//   writer.Varint(2, nanos);          // the last field first
//   writer.Varint(1, seconds);
//   writer.Message(4, end);           // what was written since `end` becomes field 4
//   Send(writer.bytes());
//
// Thread-safety: one user at a time. Cost: a few stores a field; the memory is kept and reused. Bounded by what is
// written: Reserve must have been called for at least as many bytes.
#ifndef EBBGATE_SERVER_SERVICE_WIRE_WRITER_H_
#define EBBGATE_SERVER_SERVICE_WIRE_WRITER_H_

#include <google/protobuf/io/coded_stream.h>

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "absl/strings/string_view.h"
#include "server/service/wire_reader.h"

namespace ebbgate {

class WireWriter {
 public:
  void Clear() { at_ = capacity_; }

  // Makes room for `bytes` more.
  void Reserve(std::size_t bytes) {
    if (bytes > at_) Grow(bytes);
  }

  std::size_t size() const { return capacity_ - at_; }
  // What was written. Good until the next call that is not const.
  absl::string_view bytes() const { return absl::string_view(buffer_.get() + at_, size()); }

  // A number that is not negative, or a bool; 0 is the default and takes no room. Pre, here and below: field < 16.
  void Varint(std::uint32_t field, std::uint64_t value) {
    if (value == 0) return;
    PutVarint(value);
    PutTag(field, WireType::kVarint);
  }
  void Bytes(std::uint32_t field, absl::string_view value) {
    if (value.empty()) return;
    PutBytes(value);
    PutVarint(value.size());
    PutTag(field, WireType::kBytes);
  }
  // Encloses everything written since size() was `end`.
  void Message(std::uint32_t field, std::size_t end) {
    PutVarint(size() - end);
    PutTag(field, WireType::kBytes);
  }
  // Bytes that are fields already.
  void PutBytes(absl::string_view bytes) {
    assert(bytes.size() <= at_);
    at_ -= bytes.size();
    std::memcpy(buffer_.get() + at_, bytes.data(), bytes.size());
  }

 private:
  void PutTag(std::uint32_t field, WireType type) {
    assert(field < 16 && at_ > 0);
    buffer_[--at_] = static_cast<char>(WireTag(field, type));
  }
  void PutVarint(std::uint64_t value) {
    const std::size_t bytes = google::protobuf::io::CodedOutputStream::VarintSize64(value);
    assert(bytes <= at_);
    at_ -= bytes;
    google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(value, Target());
  }
  std::uint8_t* Target() { return reinterpret_cast<std::uint8_t*>(buffer_.get() + at_); }
  void Grow(std::size_t bytes);

  std::unique_ptr<char[]> buffer_;
  std::size_t capacity_ = 0;
  std::size_t at_ = 0;  // the first byte written
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_SERVICE_WIRE_WRITER_H_

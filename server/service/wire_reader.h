// Reads the fields of one protobuf message straight from its bytes.
//
//   WireReader reader(bytes);
//   for (std::uint32_t tag; reader.Next(tag);) {
//     switch (tag) {
//       case WireTag(1, WireType::kBytes): name = reader.Bytes(); break;
//       default: reader.Skip(tag);
//     }
//   }
//   if (!reader.ok()) ...
//
// Why not the generated classes: a decision takes about 100 ns, and parsing its request into messages takes longer than
// that, mostly to copy strings which are only looked at. Reading them in place is free. What is accepted is what the
// generated parsers accept; a test compares the two on random bytes.
//
// Thread-safety: plain value. Ownership: what Bytes returns points into the bytes given. Bounded: never reads beyond
// them; groups nest at most kMaxGroupDepth deep.
#ifndef EBBGATE_SERVER_SERVICE_WIRE_READER_H_
#define EBBGATE_SERVER_SERVICE_WIRE_READER_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace ebbgate {

enum class WireType : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kGroup = 3, kEndGroup = 4, kFixed32 = 5 };

constexpr std::uint32_t WireTag(std::uint32_t field, WireType type) {
  return field << 3 | static_cast<std::uint32_t>(type);
}

class WireReader {
 public:
  explicit WireReader(absl::string_view bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  // False once a fault was met; everything read from then on is empty or 0.
  bool ok() const { return ok_; }

  // The tag of the next field. False at the end of the message, and after a fault.
  bool Next(std::uint32_t& tag) {
    if (at_ == end_ || !ok_) return false;
    tag = ReadTag();
    return ok_;
  }

  // The value of the field whose tag was read.
  std::uint64_t Varint() {
    if (at_ != end_ && static_cast<unsigned char>(*at_) < 0x80) [[likely]]
      return static_cast<unsigned char>(*at_++);
    return LongVarint(10);
  }
  absl::string_view Bytes();

  // Passes over the value of a field that is not known, or not of the type that was expected.
  void Skip(std::uint32_t tag) { Skip(tag, 0); }

 private:
  // What the generated parsers allow too.
  static constexpr int kMaxGroupDepth = 100;

  std::uint32_t ReadTag();
  std::uint64_t LongVarint(int max_bytes);
  void Skip(std::uint32_t tag, int depth);
  void SkipBytes(std::uint64_t count);

  std::uint64_t Fail() {
    ok_ = false;
    at_ = end_;
    return 0;
  }

  const char* at_;
  const char* end_;
  bool ok_ = true;
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_SERVICE_WIRE_READER_H_

// Reads the fields of one protobuf message where they are.
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
// The reading is protobuf's own (CodedInputStream, WireFormatLite); only the messages that the generated classes would
// make are left out: a decision takes about 100 ns, and making messages of its request takes longer than that, mostly
// to copy strings which are only looked at. What is accepted is what the generated parsers accept; a test compares the
// two on random bytes.
//
// Thread-safety: plain value. Ownership: what Bytes returns points into the bytes given. Bounded: never reads beyond
// them; groups nest as deep as protobuf lets them.
#ifndef EBBGATE_SERVER_SERVICE_WIRE_READER_H_
#define EBBGATE_SERVER_SERVICE_WIRE_READER_H_

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <cstdint>

#include "absl/strings/string_view.h"

namespace ebbgate {

enum class WireType : std::uint8_t { kVarint = 0, kBytes = 2 };

constexpr std::uint32_t WireTag(std::uint32_t field, WireType type) {
  return field << 3 | static_cast<std::uint32_t>(type);
}

class WireReader {
 public:
  // Pre: fewer than 2^31 bytes; a message has kMaxMessageBytes at most.
  explicit WireReader(absl::string_view bytes)
      : size_(static_cast<int>(bytes.size())),
        input_(reinterpret_cast<const std::uint8_t*>(bytes.data()), static_cast<int>(bytes.size())) {}

  // False once a fault was met; everything read from then on is empty or 0.
  bool ok() const { return ok_; }

  // The tag of the next field. False at the end of the message, and after a fault.
  bool Next(std::uint32_t& tag) {
    const int start = input_.CurrentPosition();
    if (!ok_ || start == size_) return false;
    tag = input_.ReadTagNoLastTag();
    // The generated parsers refuse tags of more than five bytes, CodedInputStream does not.
    return Check(tag >> 3 != 0 && input_.CurrentPosition() - start <= 5);
  }

  // The value of the field whose tag was read.
  std::uint64_t Varint() {
    std::uint64_t value;
    return Check(input_.ReadVarint64(&value)) ? value : 0;
  }
  absl::string_view Bytes();

  // Passes over the value of a field that is not known, or not of the type that was expected.
  void Skip(std::uint32_t tag) { Check(google::protobuf::internal::WireFormatLite::SkipField(&input_, tag)); }

 private:
  bool Check(bool well_formed) {
    ok_ = ok_ && well_formed;
    return ok_;
  }

  const int size_;
  google::protobuf::io::CodedInputStream input_;
  bool ok_ = true;
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_SERVICE_WIRE_READER_H_

#include "server/service/wire_reader.h"

namespace ebbgate {

std::uint64_t WireReader::LongVarint(int max_bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < max_bytes && at_ != end_; ++i) {
    const auto byte = static_cast<unsigned char>(*at_++);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) return value;
  }
  return Fail();
}

std::uint32_t WireReader::ReadTag() {
  // 32 bits take five bytes; bits beyond are dropped, as the generated parsers do.
  const auto tag = static_cast<std::uint32_t>(LongVarint(5));
  if (tag >> 3 == 0) Fail();
  return tag;
}

absl::string_view WireReader::Bytes() {
  const std::uint64_t size = Varint();
  const char* const start = at_;
  SkipBytes(size);
  return ok_ ? absl::string_view(start, size) : absl::string_view();
}

void WireReader::SkipBytes(std::uint64_t count) {
  if (count > static_cast<std::uint64_t>(end_ - at_)) {
    Fail();
  } else {
    at_ += count;
  }
}

void WireReader::Skip(std::uint32_t tag, int depth) {
  switch (static_cast<WireType>(tag & 7)) {
    case WireType::kVarint:
      Varint();
      return;
    case WireType::kFixed64:
      return SkipBytes(8);
    case WireType::kBytes:
      Bytes();
      return;
    case WireType::kFixed32:
      return SkipBytes(4);
    case WireType::kGroup: {
      if (depth >= kMaxGroupDepth) break;
      const std::uint32_t end = WireTag(tag >> 3, WireType::kEndGroup);
      std::uint32_t inner;
      while (Next(inner)) {
        if (inner == end) return;
        Skip(inner, depth + 1);
      }
      break;
    }
    case WireType::kEndGroup:
      break;
  }
  Fail();
}

}  // namespace ebbgate

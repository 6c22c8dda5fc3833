#include "server/service/wire_reader.h"

namespace ebbgate {

absl::string_view WireReader::Bytes() {
  std::uint64_t count;
  const void* start;
  int rest;
  if (!Check(input_.ReadVarint64(&count)) || count == 0) return {};
  const bool there = input_.GetDirectBufferPointer(&start, &rest) && count <= static_cast<std::uint64_t>(rest);
  if (!Check(there && input_.Skip(static_cast<int>(count)))) return {};
  return {static_cast<const char*>(start), count};
}

}  // namespace ebbgate

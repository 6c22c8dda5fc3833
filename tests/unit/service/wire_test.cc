// The bytes of messages: fields read and written by hand must be those that the generated classes read and write.
#include <google/protobuf/empty.pb.h>

#include <string>

#include "google/protobuf/duration.pb.h"
#include "google/protobuf/struct.pb.h"
#include "gtest/gtest.h"
#include "server/service/utf8.h"
#include "server/service/wire_reader.h"
#include "server/service/wire_writer.h"

namespace ebbgate {
namespace {

// Reads all fields, expecting nothing of them.
bool IsWellFormed(absl::string_view bytes) {
  WireReader reader(bytes);
  for (std::uint32_t tag; reader.Next(tag);) reader.Skip(tag);
  return reader.ok();
}

bool ProtobufReads(const std::string& bytes) { return google::protobuf::Empty().ParseFromString(bytes); }

TEST(WireReader, ReadsWhatTheGeneratedClassesWrite) {
  google::protobuf::Duration duration;
  duration.set_seconds(-1);
  duration.set_nanos(300);
  const std::string bytes = duration.SerializeAsString();
  WireReader reader(bytes);
  std::uint32_t tag = 0;
  ASSERT_TRUE(reader.Next(tag));
  EXPECT_EQ(tag, WireTag(1, WireType::kVarint));
  EXPECT_EQ(static_cast<std::int64_t>(reader.Varint()), -1);
  ASSERT_TRUE(reader.Next(tag));
  EXPECT_EQ(tag, WireTag(2, WireType::kVarint));
  EXPECT_EQ(reader.Varint(), 300u);
  EXPECT_FALSE(reader.Next(tag));
  EXPECT_TRUE(reader.ok());
}

TEST(WireReader, PassesOverEveryKindOfUnknownField) {
  const std::string all = std::string("\x08\x96\x01", 3) +            // a number
                          std::string("\x11\1\2\3\4\5\6\7\x08", 9) +  // 64 bits
                          std::string(
                              "\x1a\x03"
                              "abc",
                              5) +                                     // bytes
                          std::string("\x25\1\2\3\4", 5) +             // 32 bits
                          std::string("\x2b\x08\x01\x33\x34\x2c", 6);  // a group, and a group in it
  EXPECT_TRUE(ProtobufReads(all));
  EXPECT_TRUE(IsWellFormed(all));
  for (std::size_t length = 0; length < all.size(); ++length) {
    const std::string cut = all.substr(0, length);
    EXPECT_EQ(IsWellFormed(cut), ProtobufReads(cut)) << length;
  }
}

TEST(WireReader, RefusesWhatIsNoMessage) {
  const std::string faults[] = {
      std::string("\x00", 1),      // field 0
      std::string("\x02\x00", 2),  // field 0, of another type
      std::string("\x0e", 1),      // type 6
      std::string("\x0f", 1),      // type 7
      std::string("\x0c", 1),      // the end of a group that never began
      std::string("\x0b\x14", 2),  // the end of another group
      std::string("\x0a\x05"
                  "abc",
                  5),                                                       // longer than there is
      std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10),          // longer than anything
      std::string("\x08", 1),                                               // a number that is missing
      std::string("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12),  // a number of eleven bytes
      std::string("\xff\xff\xff\xff\xff\x01", 6),                           // a tag of six bytes
  };
  for (const std::string& bytes : faults) {
    EXPECT_FALSE(IsWellFormed(bytes)) << testing::PrintToString(bytes);
    EXPECT_FALSE(ProtobufReads(bytes)) << testing::PrintToString(bytes);
  }
}

TEST(WireReader, GroupsNestOnlySoDeep) {
  const std::string hundred = std::string(100, '\x0b') + std::string(100, '\x0c');
  EXPECT_TRUE(IsWellFormed(hundred));
  const std::string many = std::string(100'000, '\x0b');
  EXPECT_FALSE(IsWellFormed(many + std::string(100'000, '\x0c')));
}

TEST(WireReader, AfterAFaultNothingIsRead) {
  const std::string bytes(
      "\x0a\x09"
      "abc",
      5);
  WireReader reader(bytes);
  std::uint32_t tag = 0;
  ASSERT_TRUE(reader.Next(tag));
  EXPECT_EQ(reader.Bytes(), "");
  EXPECT_FALSE(reader.ok());
  EXPECT_FALSE(reader.Next(tag));
  EXPECT_EQ(reader.Varint(), 0u);
}

TEST(WireWriter, WritesWhatTheGeneratedClassesRead) {
  WireWriter writer;
  writer.Reserve(200);
  // google.protobuf.Value {struct_value {fields {key: "name" value {string_value: <150 bytes>}}}}
  const std::string text(150, 'x');
  std::size_t value = writer.size();
  writer.Bytes(3, text);
  writer.Message(2, value);
  writer.Bytes(1, "name");
  writer.Message(1, value);
  writer.Message(5, value);
  google::protobuf::Value read;
  ASSERT_TRUE(read.ParseFromString(std::string(writer.bytes())));
  EXPECT_EQ(read.struct_value().fields().at("name").string_value(), text);
}

TEST(WireWriter, NumbersOfEveryLength) {
  for (int bit = 0; bit < 63; ++bit) {
    for (const std::int64_t seconds : {std::int64_t{1} << bit, (std::int64_t{1} << bit) - 1}) {
      google::protobuf::Duration duration;
      duration.set_seconds(seconds);
      WireWriter writer;
      writer.Reserve(16);
      writer.Varint(1, static_cast<std::uint64_t>(seconds));
      EXPECT_EQ(std::string(writer.bytes()), duration.SerializeAsString()) << seconds;
    }
  }
}

TEST(WireWriter, GrowsAndKeepsWhatWasWritten) {
  WireWriter writer;
  std::string expected;
  for (int i = 0; i < 1000; ++i) {
    writer.Reserve(3);
    writer.PutBytes("abc");
    expected += "abc";
  }
  EXPECT_EQ(std::string(writer.bytes()), expected);
  writer.Clear();
  EXPECT_EQ(writer.size(), 0u);
}

TEST(Utf8, AcceptsEveryCharacterAndNothingElse) {
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("plain text that is longer than eight bytes"));
  EXPECT_TRUE(IsUtf8(absl::string_view("\0", 1)));
  EXPECT_TRUE(
      IsUtf8("\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"));
  const char* const faults[] = {
      "\x80",      // goes on without a beginning
      "\xc0\x80",  // two bytes for what takes one
      "\xc1\xbf",
      "\xe0\x9f\xbf",      // three for two
      "\xf0\x8f\xbf\xbf",  // four for three
      "\xed\xa0\x80",      // a surrogate
      "\xf4\x90\x80\x80",  // beyond the last character
      "\xf5\x80\x80\x80",
      "\xff",
      "\xc2",  // cut short
      "\xe2\x82",
      "\xf0\x9f\x98",
      "\xc3\x28",  // broken off
      "\xe2\x28\xa1",
      "\xe2\x82\x28",
  };
  for (const char* fault : faults) {
    EXPECT_FALSE(IsUtf8(fault)) << testing::PrintToString(fault);
    EXPECT_FALSE(IsUtf8(std::string("eight bytes or more ") + fault));
    EXPECT_FALSE(IsUtf8(std::string(fault) + "eight bytes or more"));
  }
}

}  // namespace
}  // namespace ebbgate

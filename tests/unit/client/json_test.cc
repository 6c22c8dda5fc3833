#include "client/json.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <limits>
#include <sstream>
#include <string>
#include <vector>

namespace ebbgate::client {
namespace {

TEST(JsonTest, WritesMembersInOrder) {
  std::ostringstream out;
  JsonWriter json(out);
  json.BeginObject()
      .Key("a")
      .Value(true)
      .Key("b")
      .BeginArray()
      .Value(1)
      .Value("x")
      .BeginObject()
      .EndObject()
      .EndArray();
  json.Key("c").Value(absl::Milliseconds(1500)).Key("d").Value(0.25).EndObject();
  EXPECT_EQ(out.str(), R"({"a": true, "b": [1, "x", {}], "c": "1.500s", "d": 0.25})");
}

TEST(JsonTest, NumbersThatAreNoneAreNull) {
  std::ostringstream out;
  JsonWriter(out).BeginArray().Value(std::numeric_limits<double>::infinity()).EndArray();
  EXPECT_EQ(out.str(), "[null]");
}

TEST(JsonTest, DurationsAreThoseOfProtobuf) {
  EXPECT_EQ(ProtoDuration(absl::ZeroDuration()), "0s");
  EXPECT_EQ(ProtoDuration(absl::Seconds(3)), "3s");
  EXPECT_EQ(ProtoDuration(absl::Milliseconds(20)), "0.020s");
  EXPECT_EQ(ProtoDuration(absl::Microseconds(1)), "0.000001s");
  EXPECT_EQ(ProtoDuration(absl::Nanoseconds(333'333'334)), "0.333333334s");
  EXPECT_EQ(ProtoDuration(-absl::Milliseconds(1)), "-0.001s");
}

TEST(JsonTest, EveryStringIsReadBackByAnotherParser) {
  for (const std::string& text :
       std::vector<std::string>{std::string("plain"), std::string("\"\\/\b\n\x01\x7f"), std::string("a\0b", 3),
                                std::string("\xc3\xa9\xe2\x80\x8b\xf0\x9f\x98\x80")}) {
    google::protobuf::Value value;
    const std::string json = JsonString(text);
    ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(json, &value).ok()) << json;
    EXPECT_EQ(value.string_value(), text);
  }
}

TEST(JsonTest, WhatIsNoUtf8IsReplacedByteByByte) {
  EXPECT_EQ(JsonString("a\xff"
                       "b"),
            "\"a\\ufffdb\"");
  EXPECT_EQ(JsonString("\xc0\xaf"), "\"\\ufffd\\ufffd\"");             // overlong
  EXPECT_EQ(JsonString("\xed\xa0\x80"), "\"\\ufffd\\ufffd\\ufffd\"");  // a surrogate
  EXPECT_EQ(JsonString("\xe2\x82"), "\"\\ufffd\\ufffd\"");             // cut off
  EXPECT_EQ(JsonString("\xf4\x90\x80\x80"), "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
}

}  // namespace
}  // namespace ebbgate::client

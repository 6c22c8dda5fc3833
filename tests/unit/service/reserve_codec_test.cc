// The messages of reservations as bytes.
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/util/time_util.h>

#include <limits>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "ebbgate/v1/rate_limiter.pb.h"
#include "gtest/gtest.h"
#include "server/limiter/amount.h"
#include "server/limiter/bounds.h"
#include "server/service/call_codec.h"

namespace ebbgate {
namespace {

using google::protobuf::util::TimeUtil;

v1::ReserveRequest OneCharge() {
  v1::ReserveRequest request;
  v1::Charge& charge = *request.add_charges();
  charge.set_limit("reports");
  charge.set_key("team-7");
  charge.set_cost(50);
  return request;
}

TEST(ReserveCodec, CarriesEveryFieldOfARequest) {
  v1::ReserveRequest request = OneCharge();
  request.add_charges()->set_limit("all");
  *request.mutable_max_wait() = TimeUtil::NanosecondsToDuration(1'500'000'001);
  *request.mutable_hold_for() = TimeUtil::SecondsToDuration(30);
  request.set_request_id("id-1");
  const std::string bytes = request.SerializeAsString();
  ReserveCodec codec;
  ASSERT_EQ(codec.Decode(bytes), nullptr);
  const ReserveRequest& read = codec.request();
  ASSERT_EQ(read.call.charges.size(), 2u);
  EXPECT_EQ(read.call.charges[0].limit, "reports");
  EXPECT_EQ(read.call.charges[0].key, "team-7");
  EXPECT_EQ(read.call.charges[0].cost, 50);
  EXPECT_EQ(read.call.charges[1].cost, std::nullopt);
  EXPECT_EQ(read.call.request_id, "id-1");
  EXPECT_EQ(read.max_wait_ns, 1'500'000'001);
  EXPECT_EQ(read.hold_ns, 30 * kNsPerSecond);
  // Nothing stays from one call to the next.
  ASSERT_EQ(codec.Decode(""), nullptr);
  EXPECT_TRUE(codec.request().call.charges.empty());
  EXPECT_EQ(codec.request().call.request_id, "");
  EXPECT_EQ(codec.request().max_wait_ns, 0);
  EXPECT_EQ(codec.request().hold_ns, kDefaultHoldNs);
}

struct Length {
  std::int64_t seconds;
  std::int32_t nanos;
  std::int64_t ns;
};

TEST(ReserveCodec, TimesBeyond64BitsStayBeyondAllBounds) {
  ReserveCodec codec;
  for (const Length& length :
       {Length{0, 0, 0},
        {0, -1, -1},
        {-1, -999'999'999, -1'999'999'999},
        {kInt64Max, 999'999'999, kInt64Max},
        {std::numeric_limits<std::int64_t>::min(), -1, std::numeric_limits<std::int64_t>::min()}}) {
    v1::ReserveRequest request = OneCharge();
    for (google::protobuf::Duration* field : {request.mutable_max_wait(), request.mutable_hold_for()}) {
      field->set_seconds(length.seconds);
      field->set_nanos(length.nanos);
    }
    ASSERT_EQ(codec.Decode(request.SerializeAsString()), nullptr) << request.ShortDebugString();
    EXPECT_EQ(codec.request().max_wait_ns, length.ns);
    EXPECT_EQ(codec.request().hold_ns, length.ns);
  }
}

TEST(ReserveCodec, WhatIsNoDurationIsRefused) {
  ReserveCodec codec;
  for (const Length& length :
       {Length{1, -1, 0}, {-1, 1, 0}, {0, 1'000'000'000, 0}, {0, -1'000'000'000, 0}, {0, 2'147'483'647, 0}}) {
    for (const bool wait : {true, false}) {
      v1::ReserveRequest request = OneCharge();
      google::protobuf::Duration& field = wait ? *request.mutable_max_wait() : *request.mutable_hold_for();
      field.set_seconds(length.seconds);
      field.set_nanos(length.nanos);
      const CallFault fault = codec.Decode(request.SerializeAsString());
      ASSERT_NE(fault, nullptr) << request.ShortDebugString();
      EXPECT_EQ(fault->reason, ErrorReason::kInvalidField);
      EXPECT_EQ(fault->field, wait ? "max_wait" : "hold_for");
    }
  }
}

TEST(ReserveCodec, CarriesEveryFieldOfAGrant) {
  const std::string bytes = OneCharge().SerializeAsString();
  ReserveCodec codec;
  ASSERT_EQ(codec.Decode(bytes), nullptr);
  ReserveAnswer& answer = codec.answer();
  answer.call.allowed = true;
  answer.call.replayed = true;
  answer.call.charges = {ChargeAnswer{.remaining = 10, .capacity = 60}};
  answer.reservation_id = std::string(kReservationIdBytes, 'a');
  answer.act_after_ns = 0;
  answer.expires_after_ns = 600 * kNsPerSecond;
  v1::ReserveResponse response;
  ASSERT_TRUE(response.ParseFromString(std::string(codec.Encode())));
  EXPECT_TRUE(response.granted());
  EXPECT_EQ(response.reason(), v1::ALLOWED);
  EXPECT_TRUE(response.replayed());
  EXPECT_EQ(response.reservation_id(), std::string(32, 'a'));
  EXPECT_TRUE(response.has_act_after()) << "0 is now, absent is never";
  EXPECT_EQ(TimeUtil::DurationToNanoseconds(response.act_after()), 0);
  EXPECT_EQ(TimeUtil::DurationToSeconds(response.expires_after()), 600);
  EXPECT_FALSE(response.has_retry_after());
  ASSERT_EQ(response.charges_size(), 1);
  EXPECT_EQ(response.charges(0).limit(), "reports");
  EXPECT_EQ(response.charges(0).remaining(), 10);
}

TEST(ReserveCodec, ARefusalHasItsReasonAndNoHold) {
  ReserveCodec codec;
  ASSERT_EQ(codec.Decode(""), nullptr);
  const std::pair<Reason, v1::Reason> reasons[] = {{Reason::kQuotaExceeded, v1::QUOTA_EXCEEDED},
                                                   {Reason::kCostExceedsCapacity, v1::COST_EXCEEDS_CAPACITY},
                                                   {Reason::kTooMuchDebt, v1::TOO_MUCH_DEBT},
                                                   {Reason::kTooManyHolds, v1::TOO_MANY_HOLDS}};
  for (const auto& [reason, expected] : reasons) {
    codec.answer().call.reason = reason;
    codec.answer().call.retry_after_ns = 5;
    v1::ReserveResponse response;
    ASSERT_TRUE(response.ParseFromString(std::string(codec.Encode())));
    EXPECT_FALSE(response.granted());
    EXPECT_EQ(response.reason(), expected);
    EXPECT_EQ(TimeUtil::DurationToNanoseconds(response.retry_after()), 5);
    EXPECT_FALSE(response.has_act_after());
    EXPECT_FALSE(response.has_expires_after());
    EXPECT_EQ(response.reservation_id(), "");
  }
}

TEST(SettleCodec, CarriesAmountsHoweverTheyArePacked) {
  v1::SettleRequest request;
  request.set_reservation_id("abc");
  for (const std::int64_t amount : {std::int64_t{37}, std::int64_t{0}, std::int64_t{-1}, kInt64Max}) {
    request.add_actual(amount);
  }
  SettleCodec codec;
  const std::string packed = request.SerializeAsString();
  ASSERT_EQ(codec.Decode(packed), nullptr);
  EXPECT_EQ(codec.reservation_id(), "abc");
  EXPECT_EQ(codec.actual(), absl::Span<const std::int64_t>({37, 0, -1, kInt64Max}));
  const std::string apart("\x10\x25\x12\x02\x01\x02\x10\x00", 8);
  ASSERT_EQ(codec.Decode(apart), nullptr);
  EXPECT_EQ(codec.actual(), absl::Span<const std::int64_t>({37, 1, 2, 0}));
  EXPECT_EQ(codec.reservation_id(), "");
}

TEST(SettleCodec, CarriesEveryFieldOfAnEnd) {
  SettleCodec codec;
  ASSERT_EQ(codec.Decode(""), nullptr);
  codec.answer().state = HoldState::kExpired;
  codec.answer().repeated = true;
  codec.answer().charges = {SettledCharge{.limit = "reports",
                                          .key = "team-7",
                                          .reserved = 50,
                                          .actual = 61,
                                          .given_back = 0,
                                          .overrun = 11,
                                          .uncovered = 4},
                            SettledCharge{.limit = std::string(kMaxLimitNameBytes, 'l'),
                                          .key = std::string(kMaxKeyBytes, 'k'),
                                          .reserved = kMaxCostTokens,
                                          .given_back = kMaxCostTokens}};
  v1::SettleResponse response;
  ASSERT_TRUE(response.ParseFromString(std::string(codec.Encode())));
  EXPECT_EQ(response.state(), v1::EXPIRED);
  EXPECT_TRUE(response.repeated());
  ASSERT_EQ(response.charges_size(), 2);
  EXPECT_EQ(response.charges(0).limit() + response.charges(0).key(), "reportsteam-7");
  EXPECT_EQ(response.charges(0).reserved(), 50);
  EXPECT_EQ(response.charges(0).actual(), 61);
  EXPECT_EQ(response.charges(0).given_back(), 0);
  EXPECT_EQ(response.charges(0).overrun(), 11);
  EXPECT_EQ(response.charges(0).uncovered(), 4);
  EXPECT_EQ(response.charges(1).key().size(), kMaxKeyBytes);
  EXPECT_EQ(response.charges(1).given_back(), kMaxCostTokens);
  const std::pair<HoldState, v1::HoldState> states[] = {{HoldState::kOpen, v1::HOLD_STATE_UNSPECIFIED},
                                                        {HoldState::kSettled, v1::SETTLED},
                                                        {HoldState::kCancelled, v1::CANCELLED}};
  for (const auto& [state, expected] : states) {
    codec.answer().state = state;
    ASSERT_TRUE(response.ParseFromString(std::string(codec.Encode())));
    EXPECT_EQ(response.state(), expected);
  }
}

std::string Damaged(std::string bytes, std::mt19937_64& random) {
  for (std::uint64_t damage = random() % 4; damage > 0 && !bytes.empty(); --damage) {
    const std::size_t at = random() % bytes.size();
    switch (random() % 3) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes.erase(at, 1);
        break;
      default:
        bytes.insert(at, 1, static_cast<char>(random()));
    }
  }
  return bytes;
}

v1::ReserveRequest RandomReserve(std::mt19937_64& random) {
  v1::ReserveRequest request;
  const auto number = [&random] { return static_cast<std::int64_t>(random()) >> random() % 64; };
  for (std::uint64_t charges = random() % 4; charges > 0; --charges) {
    v1::Charge& charge = *request.add_charges();
    charge.set_limit("limit");
    charge.set_key("\xc3\xa9");
    if (random() % 2 == 0) charge.set_cost(number());
  }
  if (random() % 2 == 0) request.mutable_max_wait()->set_seconds(number());
  if (random() % 2 == 0) request.mutable_hold_for()->set_nanos(static_cast<std::int32_t>(random() % 1'000'000'000));
  if (random() % 2 == 0) request.set_request_id("some id");
  return request;
}

// As of CallCodec: what is read by hand must be what the generated classes read, of damaged bytes too.
TEST(ReserveCodec, ReadsRandomBytesAsTheGeneratedClassesDo) {
  google::protobuf::LogHandler* const former = google::protobuf::SetLogHandler(nullptr);
  std::mt19937_64 random(20261201);
  ReserveCodec codec;
  int accepted = 0, refused = 0;
  for (int round = 0; round < 50'000; ++round) {
    const std::string bytes = Damaged(RandomReserve(random).SerializeAsString(), random);
    v1::ReserveRequest expected;
    const bool readable = expected.ParseFromString(bytes);
    const CallFault fault = codec.Decode(bytes);
    ASSERT_EQ(fault == nullptr || fault->reason == ErrorReason::kInvalidField, readable)
        << testing::PrintToString(bytes);
    (readable ? accepted : refused)++;
    if (fault != nullptr) continue;
    const ReserveRequest& read = codec.request();
    ASSERT_EQ(read.call.charges.size(), static_cast<std::size_t>(expected.charges_size()));
    for (int i = 0; i < expected.charges_size(); ++i) {
      ASSERT_EQ(read.call.charges[static_cast<std::size_t>(i)].key, expected.charges(i).key());
    }
    ASSERT_EQ(read.call.request_id, expected.request_id());
    const auto ns = [](const google::protobuf::Duration& length) {
      return Saturate(static_cast<Int128>(length.seconds()) * kNsPerSecond + length.nanos());
    };
    ASSERT_EQ(read.max_wait_ns, ns(expected.max_wait()));
    ASSERT_EQ(read.hold_ns, expected.has_hold_for() ? ns(expected.hold_for()) : kDefaultHoldNs);
  }
  EXPECT_GT(accepted, 5'000);
  EXPECT_GT(refused, 5'000);
  google::protobuf::SetLogHandler(former);
}

TEST(SettleCodec, ReadsRandomBytesAsTheGeneratedClassesDo) {
  google::protobuf::LogHandler* const former = google::protobuf::SetLogHandler(nullptr);
  std::mt19937_64 random(20261202);
  SettleCodec codec;
  int accepted = 0, refused = 0;
  for (int round = 0; round < 50'000; ++round) {
    v1::SettleRequest request;
    if (random() % 4 != 0) request.set_reservation_id("0123456789abcdef");
    for (std::uint64_t amounts = random() % 4; amounts > 0; --amounts) {
      request.add_actual(static_cast<std::int64_t>(random()) >> random() % 64);
    }
    const std::string bytes = Damaged(request.SerializeAsString(), random);
    v1::SettleRequest expected;
    const bool readable = expected.ParseFromString(bytes);
    ASSERT_EQ(codec.Decode(bytes) == nullptr, readable) << testing::PrintToString(bytes);
    (readable ? accepted : refused)++;
    if (!readable) continue;
    ASSERT_EQ(codec.reservation_id(), expected.reservation_id());
    ASSERT_EQ(codec.actual(), absl::MakeConstSpan(expected.actual().data(), expected.actual().size()));
  }
  EXPECT_GT(accepted, 5'000);
  EXPECT_GT(refused, 1'000);
  google::protobuf::SetLogHandler(former);
}

}  // namespace
}  // namespace ebbgate

#include "server/service/call_codec.h"

#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/util/message_differencer.h>
#include <google/protobuf/util/time_util.h>

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "ebbgate/v1/rate_limiter.pb.h"
#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"
#include "server/limiter/amount.h"
#include "server/limiter/bounds.h"

namespace ebbgate {
namespace {

using google::protobuf::util::TimeUtil;

void AddCharge(v1::ShouldAllowRequest& call, const std::string& limit, const std::string& key) {
  v1::Charge& charge = *call.add_charges();
  charge.set_limit(limit);
  charge.set_key(key);
}

TEST(CallCodec, CarriesEveryFieldOfARequest) {
  v1::ShouldAllowRequest request;
  AddCharge(request, "api", "alice");
  AddCharge(request, "tenant", "\xc3\xa9");
  request.mutable_charges(1)->set_cost(0);
  AddCharge(request, "tenant", "x");
  request.mutable_charges(2)->set_cost(-1);
  request.set_request_id("id-1");
  request.set_peek(true);
  const std::string bytes = request.SerializeAsString();
  CallCodec codec;
  ASSERT_EQ(codec.Decode(bytes), nullptr);
  const CallRequest& call = codec.call();
  ASSERT_EQ(call.charges.size(), 3u);
  EXPECT_EQ(call.charges[0].limit, "api");
  EXPECT_EQ(call.charges[0].key, "alice");
  EXPECT_EQ(call.charges[0].cost, std::nullopt);
  EXPECT_EQ(call.charges[1].key, "\xc3\xa9");
  EXPECT_EQ(call.charges[1].cost, 0);
  EXPECT_EQ(call.charges[2].cost, -1);
  EXPECT_EQ(call.request_id, "id-1");
  EXPECT_TRUE(call.peek);
  // Nothing stays from one call to the next.
  ASSERT_EQ(codec.Decode(""), nullptr);
  EXPECT_TRUE(codec.call().charges.empty());
  EXPECT_EQ(codec.call().request_id, "");
  EXPECT_FALSE(codec.call().peek);
}

// What the answer says, once it went over the wire.
v1::ShouldAllowResponse Encoded(CallCodec& codec) {
  v1::ShouldAllowResponse response;
  EXPECT_TRUE(response.ParseFromString(std::string(codec.Encode())));
  return response;
}

TEST(CallCodec, CarriesEveryFieldOfAnAnswer) {
  v1::ShouldAllowRequest request;
  AddCharge(request, "api", "alice");
  AddCharge(request, std::string(kMaxLimitNameBytes, 'n'), "bob");
  const std::string bytes = request.SerializeAsString();
  CallCodec codec;
  ASSERT_EQ(codec.Decode(bytes), nullptr);
  CallAnswer& answer = codec.answer();
  answer.allowed = false;
  answer.reason = Reason::kQuotaExceeded;
  answer.replayed = true;
  answer.retry_after_ns = 1'500'000'001;
  answer.charges = {ChargeAnswer{.reason = Reason::kQuotaExceeded,
                                 .tightest = true,
                                 .on_unavailable = OnUnavailable::kAllow,
                                 .remaining = 3,
                                 .capacity = kMaxCapacityTokens,
                                 .retry_after_ns = 1'500'000'001,
                                 .reset_after_ns = kMaxTimeToFullNs},
                    ChargeAnswer{.reason = Reason::kAllowed, .remaining = kMaxCapacityTokens, .capacity = 0}};
  const v1::ShouldAllowResponse response = Encoded(codec);
  EXPECT_FALSE(response.allowed());
  EXPECT_EQ(response.reason(), v1::QUOTA_EXCEEDED);
  EXPECT_TRUE(response.replayed());
  EXPECT_EQ(TimeUtil::DurationToNanoseconds(response.retry_after()), 1'500'000'001);
  ASSERT_EQ(response.charges_size(), 2);
  const v1::ChargeResult& first = response.charges(0);
  EXPECT_EQ(first.limit(), "api");
  EXPECT_EQ(first.remaining(), 3);
  EXPECT_EQ(first.capacity(), kMaxCapacityTokens);
  EXPECT_EQ(TimeUtil::DurationToNanoseconds(first.retry_after()), 1'500'000'001);
  EXPECT_EQ(TimeUtil::DurationToNanoseconds(first.reset_after()), kMaxTimeToFullNs);
  EXPECT_EQ(first.reason(), v1::QUOTA_EXCEEDED);
  EXPECT_TRUE(first.tightest());
  EXPECT_EQ(first.on_unavailable(), v1::ON_UNAVAILABLE_ALLOW);
  const v1::ChargeResult& second = response.charges(1);
  EXPECT_EQ(second.limit(), std::string(kMaxLimitNameBytes, 'n'));
  EXPECT_EQ(second.remaining(), kMaxCapacityTokens);
  EXPECT_EQ(second.capacity(), 0);
  EXPECT_FALSE(second.has_retry_after());
  EXPECT_TRUE(second.has_reset_after());
  EXPECT_EQ(second.reason(), v1::ALLOWED);
  EXPECT_FALSE(second.tightest());
  EXPECT_EQ(second.on_unavailable(), v1::ON_UNAVAILABLE_DENY);
}

TEST(CallCodec, NamesReasonsAndLeavesOutWaits) {
  const std::string bytes = "";
  CallCodec codec;
  ASSERT_EQ(codec.Decode(bytes), nullptr);
  const std::pair<Reason, v1::Reason> reasons[] = {{Reason::kAllowed, v1::ALLOWED},
                                                   {Reason::kShadowed, v1::SHADOWED},
                                                   {Reason::kQuotaExceeded, v1::QUOTA_EXCEEDED},
                                                   {Reason::kCostExceedsCapacity, v1::COST_EXCEEDS_CAPACITY}};
  for (const auto& [reason, expected] : reasons) {
    codec.answer().reason = reason;
    codec.answer().allowed = reason == Reason::kAllowed || reason == Reason::kShadowed;
    const v1::ShouldAllowResponse response = Encoded(codec);
    EXPECT_EQ(response.reason(), expected);
    EXPECT_EQ(response.allowed(), codec.answer().allowed);
    EXPECT_FALSE(response.has_retry_after());
  }
}

TEST(CallCodec, GarbageIsMalformed) {
  CallCodec codec;
  for (const char* bytes : {"\x0a\x05"
                            "abc",
                            "\xff", "\x0a\x02\x0a\x09", "garbage"}) {
    const CallFault fault = codec.Decode(bytes);
    ASSERT_NE(fault, nullptr) << bytes;
    EXPECT_EQ(fault->reason, ErrorReason::kMalformed);
  }
}

// `request` with the one byte 0xff that stands in it for text that is no UTF-8. The generated classes would refuse to
// write it, so a placeholder of the same length is written and then replaced.
template <typename Request>
std::string WithBadText(const Request& request) {
  std::string bytes = request.SerializeAsString();
  bytes[bytes.find('!')] = '\xff';
  return bytes;
}

TEST(CallCodec, InvalidUtf8NamesTheField) {
  CallCodec codec;
  v1::ShouldAllowRequest request;
  AddCharge(request, "api", "alice");
  AddCharge(request, "api", "b!b");
  CallFault fault = codec.Decode(WithBadText(request));
  ASSERT_NE(fault, nullptr);
  EXPECT_EQ(fault->reason, ErrorReason::kMalformed);
  EXPECT_EQ(fault->field, "charges[1].key");
  request.mutable_charges(1)->set_key("bob");
  request.mutable_charges(0)->set_limit("!");
  EXPECT_EQ(codec.Decode(WithBadText(request))->field, "charges[0].limit");
  request.mutable_charges(0)->set_limit("api");
  request.set_request_id("!");
  EXPECT_EQ(codec.Decode(WithBadText(request))->field, "request_id");
  v1::ShouldAllowBatchRequest batch;
  AddCharge(*batch.add_calls(), "api", "alice");
  AddCharge(*batch.add_calls(), "api", "!");
  BatchCodec batch_codec;
  EXPECT_EQ(batch_codec.Decode(WithBadText(batch))->field, "calls[1].charges[0].key");
}

TEST(CallCodec, OfTooManyChargesOnlySoManyAreCarriedThatTheyAreTooMany) {
  v1::ShouldAllowRequest request;
  for (int i = 0; i < 1000; ++i) AddCharge(request, "api", absl::StrCat(i));
  const std::string bytes = request.SerializeAsString();
  CallCodec codec;
  ASSERT_EQ(codec.Decode(bytes), nullptr);
  EXPECT_EQ(codec.call().charges.size(), kMaxChargesPerCall + 1);
}

TEST(BatchCodec, KeepsTheCallsApart) {
  v1::ShouldAllowBatchRequest request;
  for (int i = 0; i < 100; ++i) {
    v1::ShouldAllowRequest& call = *request.add_calls();
    for (int j = 0; j < i % 4; ++j) AddCharge(call, absl::StrCat("limit", i), absl::StrCat("key", j));
    call.set_peek(i % 2 == 1);
  }
  const std::string bytes = request.SerializeAsString();
  BatchCodec codec;
  ASSERT_EQ(codec.Decode(bytes), nullptr);
  ASSERT_EQ(codec.calls().size(), 100u);
  ASSERT_EQ(codec.answers().size(), 100u);
  for (std::size_t i = 0; i < 100; ++i) {
    const CallRequest& call = codec.calls()[i];
    ASSERT_EQ(call.charges.size(), i % 4);
    for (std::size_t j = 0; j < call.charges.size(); ++j) {
      EXPECT_EQ(call.charges[j].limit, absl::StrCat("limit", i));
      EXPECT_EQ(call.charges[j].key, absl::StrCat("key", j));
    }
    EXPECT_EQ(call.peek, i % 2 == 1);
  }
}

TEST(BatchCodec, AnswersAndErrorsStandInOrder) {
  v1::ShouldAllowBatchRequest request;
  for (int i = 0; i < 3; ++i) AddCharge(*request.add_calls(), absl::StrCat("limit", i), "key");
  const std::string bytes = request.SerializeAsString();
  BatchCodec codec;
  ASSERT_EQ(codec.Decode(bytes), nullptr);
  codec.answers()[0].allowed = true;
  codec.answers()[0].charges = {ChargeAnswer{.remaining = 7}};
  codec.answers()[1].error =
      std::make_shared<const CallError>(CallError{ErrorReason::kCostOutOfRange, "charges[0].cost", "must be from 0"});
  codec.answers()[2].charges = {ChargeAnswer{.remaining = 9}};
  v1::ShouldAllowBatchResponse response;
  ASSERT_TRUE(response.ParseFromString(std::string(codec.Encode())));
  ASSERT_EQ(response.outcomes_size(), 3);
  EXPECT_TRUE(response.outcomes(0).response().allowed());
  EXPECT_EQ(response.outcomes(0).response().charges(0).remaining(), 7);
  const google::rpc::Status& error = response.outcomes(1).error();
  EXPECT_EQ(error.code(), 3);
  google::rpc::BadRequest bad;
  ASSERT_TRUE(error.details(1).UnpackTo(&bad));
  EXPECT_EQ(bad.field_violations(0).field(), "calls[1].charges[0].cost");
  EXPECT_EQ(response.outcomes(2).response().charges(0).limit(), "limit2");
}

TEST(BatchCodec, HoldsOneTo1000Calls) {
  v1::ShouldAllowBatchRequest request;
  BatchCodec codec;
  const auto fault = [&] { return codec.Decode(request.SerializeAsString()); };
  ASSERT_NE(fault(), nullptr);
  EXPECT_EQ(fault()->reason, ErrorReason::kInvalidField);
  EXPECT_EQ(fault()->field, "calls");
  request.add_calls();
  EXPECT_EQ(fault(), nullptr);
  while (request.calls_size() < 1000) request.add_calls();
  EXPECT_EQ(fault(), nullptr);
  request.add_calls();
  ASSERT_NE(fault(), nullptr);
  EXPECT_EQ(fault()->field, "calls");
  EXPECT_EQ(fault()->reason, ErrorReason::kInvalidField);
}

v1::ShouldAllowBatchRequest RandomBatch(std::mt19937_64& random) {
  const auto pick = [&random](std::uint64_t below) { return static_cast<int>(random() % below); };
  const auto text = [&] {
    static const char* const kPieces[] = {"a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "long enough for two"};
    std::string made;
    for (int i = pick(3); i > 0; --i) made += kPieces[pick(5)];
    return made;
  };
  v1::ShouldAllowBatchRequest batch;
  for (int calls = 1 + pick(3); calls > 0; --calls) {
    v1::ShouldAllowRequest& call = *batch.add_calls();
    for (int charges = pick(4); charges > 0; --charges) {
      AddCharge(call, text(), text());
      if (pick(2) == 0) call.mutable_charges(0)->set_cost(static_cast<std::int64_t>(random()) >> pick(64));
    }
    call.set_request_id(text());
    call.set_peek(pick(2) == 0);
  }
  return batch;
}

v1::ShouldAllowBatchRequest AsMessage(absl::Span<const CallRequest> calls) {
  v1::ShouldAllowBatchRequest batch;
  for (const CallRequest& call : calls) {
    v1::ShouldAllowRequest& to = *batch.add_calls();
    for (const ChargeRequest& charge : call.charges) {
      AddCharge(to, std::string(charge.limit), std::string(charge.key));
      if (charge.cost) to.mutable_charges(to.charges_size() - 1)->set_cost(*charge.cost);
    }
    to.set_request_id(std::string(call.request_id));
    to.set_peek(call.peek);
  }
  return batch;
}

// What is read by hand must be what the generated classes read, of damaged bytes too: the same refused, the same
// accepted with the same meaning.
TEST(BatchCodec, ReadsRandomBytesAsTheGeneratedClassesDo) {
  google::protobuf::LogHandler* const former = google::protobuf::SetLogHandler(nullptr);
  std::mt19937_64 random(20261101);
  BatchCodec codec;
  int accepted = 0;
  int refused = 0;
  for (int round = 0; round < 100'000; ++round) {
    std::string bytes = RandomBatch(random).SerializeAsString();
    for (std::uint64_t damage = random() % 4; damage > 0 && !bytes.empty(); --damage) {
      const std::size_t at = random() % bytes.size();
      switch (random() % 4) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes.erase(at, 1);
          break;
        case 2:
          bytes.insert(at, 1, static_cast<char>(random()));
          break;
        default:
          bytes[at] = static_cast<char>(bytes[at] ^ 1 << random() % 8);
      }
    }
    v1::ShouldAllowBatchRequest expected;
    const bool readable = expected.ParseFromString(bytes);
    const CallFault fault = codec.Decode(bytes);
    if (fault != nullptr && fault->reason == ErrorReason::kInvalidField) {
      ASSERT_TRUE(readable);
      ASSERT_EQ(expected.calls_size(), 0);
      continue;
    }
    ASSERT_EQ(fault == nullptr, readable) << testing::PrintToString(bytes);
    (readable ? accepted : refused)++;
    if (!readable) continue;
    expected.DiscardUnknownFields();
    ASSERT_TRUE(google::protobuf::util::MessageDifferencer::Equals(AsMessage(codec.calls()), expected))
        << testing::PrintToString(bytes);
  }
  EXPECT_GT(accepted, 10'000);
  EXPECT_GT(refused, 10'000);
  google::protobuf::SetLogHandler(former);
}

}  // namespace
}  // namespace ebbgate

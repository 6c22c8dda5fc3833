#include "server/service/error_details.h"

#include <google/protobuf/util/time_util.h>

#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"

namespace ebbgate {
namespace {

struct Expectation {
  ErrorReason reason;
  const char* name;
  grpc::StatusCode code;
};

const Expectation kErrors[] = {
    {ErrorReason::kMalformed, "MALFORMED", grpc::StatusCode::INVALID_ARGUMENT},
    {ErrorReason::kInvalidField, "INVALID_FIELD", grpc::StatusCode::INVALID_ARGUMENT},
    {ErrorReason::kKeyTooLong, "KEY_TOO_LONG", grpc::StatusCode::INVALID_ARGUMENT},
    {ErrorReason::kCostOutOfRange, "COST_OUT_OF_RANGE", grpc::StatusCode::INVALID_ARGUMENT},
    {ErrorReason::kCostAboveMaximum, "COST_ABOVE_MAXIMUM", grpc::StatusCode::INVALID_ARGUMENT},
    {ErrorReason::kRequestIdReused, "REQUEST_ID_REUSED", grpc::StatusCode::INVALID_ARGUMENT},
    {ErrorReason::kUnknownLimit, "UNKNOWN_LIMIT", grpc::StatusCode::NOT_FOUND},
    {ErrorReason::kDeadlinePassed, "DEADLINE_PASSED", grpc::StatusCode::DEADLINE_EXCEEDED},
    {ErrorReason::kStoreFull, "STORE_FULL", grpc::StatusCode::UNAVAILABLE},
    {ErrorReason::kRequestIdsFull, "REQUEST_IDS_FULL", grpc::StatusCode::UNAVAILABLE},
    {ErrorReason::kOverloaded, "OVERLOADED", grpc::StatusCode::UNAVAILABLE},
    {ErrorReason::kDraining, "DRAINING", grpc::StatusCode::UNAVAILABLE},
};

template <typename Detail>
bool Find(const google::rpc::Status& status, Detail& detail) {
  for (const google::protobuf::Any& any : status.details()) {
    if (any.UnpackTo(&detail)) return true;
  }
  return false;
}

TEST(ErrorDetails, EveryReasonHasItsCodeAndItsDetails) {
  for (const Expectation& expected : kErrors) {
    const grpc::Status status = ToGrpcStatus({expected.reason, "charges[0].cost", "is wrong"});
    EXPECT_EQ(status.error_code(), expected.code) << expected.name;
    EXPECT_EQ(status.error_message(), "charges[0].cost: is wrong");
    google::rpc::Status rich;
    ASSERT_TRUE(rich.ParseFromString(status.error_details()));
    EXPECT_EQ(rich.code(), static_cast<int>(expected.code));
    EXPECT_EQ(rich.message(), status.error_message());
    google::rpc::ErrorInfo info;
    ASSERT_TRUE(Find(rich, info));
    EXPECT_EQ(info.reason(), expected.name);
    EXPECT_EQ(info.domain(), "ebbgate");
    EXPECT_EQ(info.metadata().at("field"), "charges[0].cost");
    google::rpc::BadRequest bad;
    ASSERT_EQ(Find(rich, bad), expected.code == grpc::StatusCode::INVALID_ARGUMENT) << expected.name;
    if (bad.field_violations_size() > 0) {
      EXPECT_EQ(bad.field_violations(0).field(), "charges[0].cost");
      EXPECT_EQ(bad.field_violations(0).description(), "is wrong");
    }
    google::rpc::RetryInfo retry;
    ASSERT_EQ(Find(rich, retry), expected.code == grpc::StatusCode::UNAVAILABLE) << expected.name;
    EXPECT_EQ(retry.has_retry_delay(), expected.code == grpc::StatusCode::UNAVAILABLE);
  }
}

TEST(ErrorDetails, AFieldMayBeMissingOrHaveAPrefix) {
  google::rpc::Status status;
  ToRpcStatus({ErrorReason::kMalformed, "", "is no message"}, "calls[3].", status);
  EXPECT_EQ(status.message(), "is no message");
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(Find(status, info));
  EXPECT_TRUE(info.metadata().empty());
  google::rpc::Status prefixed;
  ToRpcStatus({ErrorReason::kKeyTooLong, "charges[0].key", "is too long"}, "calls[3].", prefixed);
  google::rpc::BadRequest bad;
  ASSERT_TRUE(Find(prefixed, bad));
  EXPECT_EQ(bad.field_violations(0).field(), "calls[3].charges[0].key");
}

}  // namespace
}  // namespace ebbgate

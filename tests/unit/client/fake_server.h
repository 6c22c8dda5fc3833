// A server that answers as a test tells it to, on a Unix socket in a directory of its own.
#ifndef EBBGATE_TESTS_UNIT_CLIENT_FAKE_SERVER_H_
#define EBBGATE_TESTS_UNIT_CLIENT_FAKE_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "ebbgate/v1/admin.grpc.pb.h"
#include "ebbgate/v1/rate_limiter.grpc.pb.h"
#include "grpc/health/v1/health.grpc.pb.h"

namespace ebbgate::client {

class FakeServer final : v1::RateLimiter::Service, v1::Admin::Service, grpc::health::v1::Health::Service {
 public:
  using Decide = std::function<grpc::Status(const v1::ShouldAllowRequest&, v1::ShouldAllowResponse&)>;

  FakeServer();
  ~FakeServer() override;

  const std::string& address() const { return address_; }

  // How calls are decided, alone or in a batch. Until told otherwise: allowed, 3 of 4 left for each charge. Set before
  // the first call.
  Decide decide;
  // What Reserve, and Settle and Cancel, answer: granted at once; settled with 0, or cancelled. Set before the first
  // call.
  std::function<grpc::Status(const v1::ReserveRequest&, v1::ReserveResponse&)> reserve;
  std::function<grpc::Status(const v1::SettleRequest&, v1::SettleResponse&)> settle;
  std::function<grpc::Status(const v1::CancelRequest&, v1::SettleResponse&)> cancel;
  // What Admin answers.
  v1::InspectKeyResponse bucket;
  v1::ListLimitsResponse limits;
  v1::GetDriftResponse drift;
  grpc::Status admin_status;
  grpc::health::v1::HealthCheckResponse::ServingStatus health = grpc::health::v1::HealthCheckResponse::SERVING;

  // The calls so far, those in batches one by one.
  std::vector<v1::ShouldAllowRequest> calls() const;
  std::vector<v1::ReserveRequest> reservations() const;
  std::vector<v1::SettleRequest> settlings() const;
  // Ids of reservations.
  std::vector<std::string> cancelled() const;
  std::vector<std::string> reset_reasons() const;
  std::vector<v1::ReportObservedRequest> reports() const;
  // What reports are answered with.
  grpc::Status report_status;

 private:
  grpc::Status ShouldAllow(grpc::ServerContext*, const v1::ShouldAllowRequest*, v1::ShouldAllowResponse*) override;
  grpc::Status ShouldAllowBatch(grpc::ServerContext*, const v1::ShouldAllowBatchRequest*,
                                v1::ShouldAllowBatchResponse*) override;
  grpc::Status StreamShouldAllow(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::ShouldAllowBatchResponse, v1::ShouldAllowBatchRequest>*) override;
  grpc::Status Reserve(grpc::ServerContext*, const v1::ReserveRequest*, v1::ReserveResponse*) override;
  grpc::Status Settle(grpc::ServerContext*, const v1::SettleRequest*, v1::SettleResponse*) override;
  grpc::Status Cancel(grpc::ServerContext*, const v1::CancelRequest*, v1::SettleResponse*) override;
  grpc::Status ReportObserved(grpc::ServerContext*, const v1::ReportObservedRequest*,
                              v1::ReportObservedResponse*) override;
  grpc::Status GetDrift(grpc::ServerContext*, const v1::GetDriftRequest*, v1::GetDriftResponse*) override;
  grpc::Status InspectKey(grpc::ServerContext*, const v1::InspectKeyRequest*, v1::InspectKeyResponse*) override;
  grpc::Status ResetKey(grpc::ServerContext*, const v1::ResetKeyRequest*, v1::ResetKeyResponse*) override;
  grpc::Status ListLimits(grpc::ServerContext*, const v1::ListLimitsRequest*, v1::ListLimitsResponse*) override;
  grpc::Status ReloadLimits(grpc::ServerContext*, const v1::ReloadLimitsRequest*, v1::ReloadLimitsResponse*) override;
  grpc::Status Check(grpc::ServerContext*, const grpc::health::v1::HealthCheckRequest*,
                     grpc::health::v1::HealthCheckResponse*) override;

  grpc::Status DecideOne(const v1::ShouldAllowRequest& call, v1::ShouldAllowResponse& response);

  std::string folder_;
  std::string address_;
  mutable absl::Mutex mutex_;
  std::vector<v1::ShouldAllowRequest> calls_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::ReserveRequest> reservations_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::SettleRequest> settlings_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> cancelled_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> reset_reasons_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::ReportObservedRequest> reports_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Server> server_;
};

// The id of the reservations that a FakeServer grants.
inline constexpr char kReservationId[] = "0123456789abcdef0123456789abcdef";

// A gRPC error with the details that Ebbgate sends.
grpc::Status ErrorWithDetails(grpc::StatusCode code, const std::string& message, const std::string& reason,
                              const std::string& field);

}  // namespace ebbgate::client

#endif  // EBBGATE_TESTS_UNIT_CLIENT_FAKE_SERVER_H_

#include "tests/unit/client/fake_server.h"

#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace ebbgate::client {
namespace {

std::string MakeFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "client_test.XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) std::abort();
  return name;
}

grpc::Status AllowAll(const v1::ShouldAllowRequest& call, v1::ShouldAllowResponse& response) {
  response.set_allowed(true);
  response.set_reason(v1::ALLOWED);
  for (const v1::Charge& charge : call.charges()) {
    v1::ChargeResult& result = *response.add_charges();
    result.set_limit(charge.limit());
    result.set_remaining(3);
    result.set_capacity(4);
    result.mutable_reset_after()->set_nanos(500'000'000);
    result.set_reason(v1::ALLOWED);
  }
  return grpc::Status::OK;
}

grpc::Status GrantAll(const v1::ReserveRequest& call, v1::ReserveResponse& response) {
  response.set_granted(true);
  response.set_reason(v1::ALLOWED);
  response.set_reservation_id(kReservationId);
  response.mutable_act_after();
  response.mutable_expires_after()->set_seconds(600);
  for (const v1::Charge& charge : call.charges()) {
    v1::ChargeResult& result = *response.add_charges();
    result.set_limit(charge.limit());
    result.set_remaining(10);
    result.set_capacity(60);
    result.mutable_reset_after()->set_seconds(50);
    result.set_reason(v1::ALLOWED);
  }
  return grpc::Status::OK;
}

void EndOne(v1::HoldState state, std::int64_t actual, v1::SettleResponse& response) {
  response.set_state(state);
  v1::SettledCharge& charge = *response.add_charges();
  charge.set_limit("reports");
  charge.set_key("team-7");
  charge.set_reserved(50);
  charge.set_actual(actual);
  charge.set_given_back(50 - actual);
}

}  // namespace

FakeServer::FakeServer()
    : decide(AllowAll),
      reserve(GrantAll),
      settle([](const v1::SettleRequest& call, v1::SettleResponse& response) {
        EndOne(v1::SETTLED, call.actual_size() > 0 ? call.actual(0) : 0, response);
        return grpc::Status::OK;
      }),
      cancel([](const v1::CancelRequest&, v1::SettleResponse& response) {
        EndOne(v1::CANCELLED, 0, response);
        return grpc::Status::OK;
      }),
      folder_(MakeFolder()),
      address_(absl::StrCat("unix:", folder_, "/socket")) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
  builder.RegisterService(static_cast<v1::RateLimiter::Service*>(this));
  builder.RegisterService(static_cast<v1::Admin::Service*>(this));
  builder.RegisterService(static_cast<grpc::health::v1::Health::Service*>(this));
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) std::abort();
}

FakeServer::~FakeServer() {
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  std::filesystem::remove_all(folder_);
}

std::vector<v1::ShouldAllowRequest> FakeServer::calls() const {
  absl::MutexLock lock(&mutex_);
  return calls_;
}

std::vector<v1::ReserveRequest> FakeServer::reservations() const {
  absl::MutexLock lock(&mutex_);
  return reservations_;
}

std::vector<v1::SettleRequest> FakeServer::settlings() const {
  absl::MutexLock lock(&mutex_);
  return settlings_;
}

std::vector<std::string> FakeServer::cancelled() const {
  absl::MutexLock lock(&mutex_);
  return cancelled_;
}

std::vector<std::string> FakeServer::reset_reasons() const {
  absl::MutexLock lock(&mutex_);
  return reset_reasons_;
}

grpc::Status FakeServer::DecideOne(const v1::ShouldAllowRequest& call, v1::ShouldAllowResponse& response) {
  {
    absl::MutexLock lock(&mutex_);
    calls_.push_back(call);
  }
  return decide(call, response);
}

grpc::Status FakeServer::ShouldAllow(grpc::ServerContext*, const v1::ShouldAllowRequest* call,
                                     v1::ShouldAllowResponse* response) {
  return DecideOne(*call, *response);
}

grpc::Status FakeServer::ShouldAllowBatch(grpc::ServerContext*, const v1::ShouldAllowBatchRequest* batch,
                                          v1::ShouldAllowBatchResponse* response) {
  for (const v1::ShouldAllowRequest& call : batch->calls()) {
    v1::ShouldAllowOutcome& outcome = *response->add_outcomes();
    const grpc::Status status = DecideOne(call, *outcome.mutable_response());
    if (!status.ok()) outcome.mutable_error()->ParseFromString(status.error_details());
  }
  return grpc::Status::OK;
}

grpc::Status FakeServer::StreamShouldAllow(
    grpc::ServerContext*, grpc::ServerReaderWriter<v1::ShouldAllowBatchResponse, v1::ShouldAllowBatchRequest>* stream) {
  v1::ShouldAllowBatchRequest batch;
  while (stream->Read(&batch)) {
    v1::ShouldAllowBatchResponse response;
    ShouldAllowBatch(nullptr, &batch, &response);
    stream->Write(response);
  }
  return grpc::Status::OK;
}

grpc::Status FakeServer::Reserve(grpc::ServerContext*, const v1::ReserveRequest* call, v1::ReserveResponse* response) {
  {
    absl::MutexLock lock(&mutex_);
    reservations_.push_back(*call);
  }
  return reserve(*call, *response);
}

grpc::Status FakeServer::Settle(grpc::ServerContext*, const v1::SettleRequest* call, v1::SettleResponse* response) {
  {
    absl::MutexLock lock(&mutex_);
    settlings_.push_back(*call);
  }
  return settle(*call, *response);
}

grpc::Status FakeServer::Cancel(grpc::ServerContext*, const v1::CancelRequest* call, v1::SettleResponse* response) {
  {
    absl::MutexLock lock(&mutex_);
    cancelled_.push_back(call->reservation_id());
  }
  return cancel(*call, *response);
}

grpc::Status FakeServer::ReportObserved(grpc::ServerContext*, const v1::ReportObservedRequest* request,
                                        v1::ReportObservedResponse*) {
  absl::MutexLock lock(&mutex_);
  reports_.push_back(*request);
  return report_status;
}

std::vector<v1::ReportObservedRequest> FakeServer::reports() const {
  absl::MutexLock lock(&mutex_);
  return reports_;
}

grpc::Status FakeServer::GetDrift(grpc::ServerContext*, const v1::GetDriftRequest*, v1::GetDriftResponse* response) {
  *response = drift;
  return admin_status;
}

grpc::Status FakeServer::InspectKey(grpc::ServerContext*, const v1::InspectKeyRequest* request,
                                    v1::InspectKeyResponse* response) {
  *response = bucket;
  response->set_limit(request->limit());
  response->set_key(request->key());
  return admin_status;
}

grpc::Status FakeServer::ResetKey(grpc::ServerContext*, const v1::ResetKeyRequest* request,
                                  v1::ResetKeyResponse* response) {
  absl::MutexLock lock(&mutex_);
  reset_reasons_.push_back(request->reason());
  response->set_known(request->key() != "unknown");
  return admin_status;
}

grpc::Status FakeServer::ListLimits(grpc::ServerContext*, const v1::ListLimitsRequest*,
                                    v1::ListLimitsResponse* response) {
  *response = limits;
  return admin_status;
}

grpc::Status FakeServer::ReloadLimits(grpc::ServerContext*, const v1::ReloadLimitsRequest*,
                                      v1::ReloadLimitsResponse* response) {
  response->set_changed(true);
  response->set_limits(1);
  response->set_generation(2);
  return admin_status;
}

grpc::Status FakeServer::Check(grpc::ServerContext*, const grpc::health::v1::HealthCheckRequest* request,
                               grpc::health::v1::HealthCheckResponse* response) {
  if (request->service() == "nobody") return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such service");
  response->set_status(health);
  return grpc::Status::OK;
}

grpc::Status ErrorWithDetails(grpc::StatusCode code, const std::string& message, const std::string& reason,
                              const std::string& field) {
  google::rpc::Status status;
  status.set_code(code);
  status.set_message(message);
  google::rpc::ErrorInfo info;
  info.set_reason(reason);
  info.set_domain("ebbgate");
  status.add_details()->PackFrom(info);
  if (!field.empty()) {
    google::rpc::BadRequest bad;
    bad.add_field_violations()->set_field(field);
    status.add_details()->PackFrom(bad);
  }
  if (code == grpc::StatusCode::UNAVAILABLE) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_nanos(250'000'000);
    status.add_details()->PackFrom(retry);
  }
  return grpc::Status(code, message, status.SerializeAsString());
}

}  // namespace ebbgate::client

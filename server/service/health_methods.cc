#include "server/service/health_methods.h"

#include <algorithm>
#include <memory>

#include "grpc/health/v1/health.pb.h"
#include "server/service/error_details.h"

namespace ebbgate {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

class HealthHandler final : public MessageHandler {
 public:
  HealthHandler(const Readiness& readiness, const std::vector<std::string>& services, Method method)
      : readiness_(readiness), services_(services), method_(method) {}

  grpc::Status Handle(absl::string_view request, absl::string_view& response) override {
    HealthCheckRequest asked;
    if (!asked.ParseFromArray(request.data(), static_cast<int>(request.size()))) {
      return ToGrpcStatus({ErrorReason::kMalformed, "", "is not a well-formed HealthCheckRequest"});
    }
    HealthCheckResponse answer;
    if (IsKnown(asked.service())) {
      answer.set_status(readiness_.Ready() ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING);
    } else if (method_ == Method::kHealthWatch) {
      answer.set_status(HealthCheckResponse::SERVICE_UNKNOWN);
    } else {
      return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such service here");
    }
    answer.SerializeToString(&bytes_);
    response = bytes_;
    return grpc::Status::OK;
  }

 private:
  bool IsKnown(const std::string& service) const {
    return service.empty() || std::find(services_.begin(), services_.end(), service) != services_.end();
  }

  const Readiness& readiness_;
  const std::vector<std::string> services_;
  const Method method_;
  std::string bytes_;
};

}  // namespace

std::vector<RpcMethod> HealthMethods(const Readiness& readiness, const std::vector<std::string>& services) {
  const auto handler = [&readiness, services](Method method) {
    return [&readiness, services, method] { return std::make_unique<HealthHandler>(readiness, services, method); };
  };
  return {
      {"/grpc.health.v1.Health/Check", CallShape::kUnary, Method::kHealthCheck, handler(Method::kHealthCheck)},
      {"/grpc.health.v1.Health/Watch", CallShape::kFeed, Method::kHealthWatch, handler(Method::kHealthWatch)},
  };
}

}  // namespace ebbgate

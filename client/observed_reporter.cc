#include "client/observed_reporter.h"

#include <algorithm>
#include <utility>

#include "client/channel.h"
#include "ebbgate/v1/rate_limiter.grpc.pb.h"
#include "server/limiter/bounds.h"

namespace ebbgate::client {
namespace {

google::protobuf::Timestamp ToProto(absl::Time time) {
  google::protobuf::Timestamp proto;
  const std::int64_t ns = absl::ToUnixNanos(time);
  proto.set_seconds(ns / 1'000'000'000);
  proto.set_nanos(static_cast<std::int32_t>(ns % 1'000'000'000));
  return proto;
}

}  // namespace

class ObservedReporter::Impl {
 public:
  explicit Impl(std::shared_ptr<grpc::Channel> channel) : stub(v1::RateLimiter::NewStub(std::move(channel))) {}

  absl::Status Send(const v1::ReportObservedRequest& request, absl::Duration timeout) const {
    grpc::ClientContext context;
    SetTimeout(context, timeout);
    v1::ReportObservedResponse response;
    const grpc::Status status = stub->ReportObserved(&context, request, &response);
    return status.ok() ? absl::OkStatus() : FromGrpc(status);
  }

  const std::unique_ptr<v1::RateLimiter::Stub> stub;
};

ObservedReporter::ObservedReporter(std::unique_ptr<Impl> impl, ReporterIdentity identity)
    : impl_(std::move(impl)), identity_(std::move(identity)) {
  for (const std::string& limit : identity_.limits) totals_.emplace(limit, 0);
}
ObservedReporter::~ObservedReporter() = default;

absl::StatusOr<std::unique_ptr<ObservedReporter>> ObservedReporter::Connect(const ClientOptions& options,
                                                                            ReporterIdentity identity) {
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel =
      OpenChannel(options.address, options.tls, /*own_connection=*/false);
  if (!channel.ok()) return channel.status();
  return std::unique_ptr<ObservedReporter>(
      new ObservedReporter(std::make_unique<Impl>(*std::move(channel)), std::move(identity)));
}

void ObservedReporter::Count(absl::string_view limit, std::int64_t cost) {
  const absl::MutexLock lock(&mutex_);
  auto total = totals_.find(limit);
  if (total == totals_.end()) total = totals_.emplace(limit, 0).first;
  total->second += std::clamp<std::int64_t>(cost, 0, kMaxObservedTotal - total->second);
}

absl::Status ObservedReporter::Report(absl::Duration timeout) {
  std::vector<v1::ReportObservedRequest> requests;
  {
    const absl::MutexLock lock(&mutex_);
    for (const auto& [limit, total] : totals_) {
      if (requests.empty() || static_cast<std::size_t>(requests.back().totals_size()) == kMaxTotalsPerReport) {
        v1::ReportObservedRequest& request = requests.emplace_back();
        request.set_reporter(identity_.reporter);
        request.set_instance(identity_.instance);
        *request.mutable_start_time() = ToProto(identity_.start_time);
      }
      v1::ObservedTotal& one = *requests.back().add_totals();
      one.set_limit(limit);
      one.set_total(total);
    }
  }
  for (const v1::ReportObservedRequest& request : requests) {
    if (absl::Status status = impl_->Send(request, timeout); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace ebbgate::client

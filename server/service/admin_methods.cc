#include "server/service/admin_methods.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ebbgate/v1/admin.pb.h"
#include "google/protobuf/util/time_util.h"
#include "server/limiter/bounds.h"
#include "server/service/call_codec.h"
#include "server/service/error_details.h"
#include "server/service/proto_method.h"

namespace ebbgate {
namespace {

using google::protobuf::util::TimeUtil;

CallError Error(ErrorReason reason, absl::string_view field, absl::string_view message) {
  return CallError{reason, std::string(field), std::string(message)};
}

// What the engine says of (limit, key), in the words of the API.
CallError Translate(const absl::Status& status) {
  if (absl::IsNotFound(status)) return Error(ErrorReason::kUnknownLimit, "limit", status.message());
  return Error(ErrorReason::kInvalidField, "key", status.message());
}

template <typename Request, typename Response, typename Answer>
RpcMethod MakeMethod(absl::string_view name, Method counted_as, Answer answer) {
  return ProtoMethod<Request, Response>(absl::StrCat("/ebbgate.v1.Admin/", name), counted_as, std::move(answer));
}

grpc::Status InspectKey(const AdminParts& parts, const v1::InspectKeyRequest& request,
                        v1::InspectKeyResponse& response) {
  const absl::StatusOr<Inspection> found = parts.engine.Inspect(request.limit(), request.key());
  if (!found.ok()) return ToGrpcStatus(Translate(found.status()));
  response.set_limit(request.limit());
  response.set_key(request.key());
  response.set_known(found->known);
  response.set_level_microtokens(found->level);
  response.set_capacity(found->capacity);
  response.set_remaining(found->remaining);
  *response.mutable_reset_after() = TimeUtil::NanosecondsToDuration(found->reset_after_ns);
  if (found->last_change_age_ns != kNoWait) {
    *response.mutable_last_change_age() = TimeUtil::NanosecondsToDuration(found->last_change_age_ns);
  }
  response.set_last_change_label(found->last_change_label);
  response.set_parameters(found->parameters);
  response.set_override_pattern(found->override_pattern);
  response.set_slot(found->slot);
  response.set_debt_microtokens(found->debt);
  for (const Inspection::Hold& hold : found->holds) {
    v1::HoldInfo& info = *response.add_holds();
    info.set_cost(hold.cost);
    if (hold.act_after_ns > 0) *info.mutable_act_after() = TimeUtil::NanosecondsToDuration(hold.act_after_ns);
    *info.mutable_expires_after() = TimeUtil::NanosecondsToDuration(hold.expires_after_ns);
  }
  response.set_open_holds(static_cast<std::uint32_t>(found->open_holds));
  response.set_request_ids(static_cast<std::uint32_t>(found->request_ids));
  return grpc::Status::OK;
}

grpc::Status ResetKey(const AdminParts& parts, const v1::ResetKeyRequest& request, v1::ResetKeyResponse& response) {
  if (request.reason().size() > kMaxReasonBytes) {
    return ToGrpcStatus(
        Error(ErrorReason::kInvalidField, "reason",
              absl::StrCat("must be at most ", kMaxReasonBytes, " bytes, not ", request.reason().size())));
  }
  const absl::StatusOr<bool> known = parts.engine.Reset(request.limit(), request.key());
  if (!known.ok()) return ToGrpcStatus(Translate(known.status()));
  parts.log.Info("key_reset",
                 {{"limit", request.limit()}, {"key", request.key()}, {"known", *known}, {"reason", request.reason()}});
  response.set_known(*known);
  return grpc::Status::OK;
}

void Describe(const Limit& limit, v1::LimitInfo& info) {
  const absl::string_view algorithm = Name(limit.parameters.algorithm);
  info.set_name(limit.name);
  info.set_algorithm(algorithm.data(), algorithm.size());
  info.set_parameters(ebbgate::Describe(limit.parameters));
  info.set_capacity(WholeTokens(limit.parameters.capacity));
  info.set_shadow(limit.shadow);
  info.set_default_cost(limit.default_cost);
  info.set_max_cost(limit.max_cost.value_or(0));
  info.set_on_unavailable(ToWire(limit.on_unavailable));
  info.set_time_zone(limit.display_zone.name());
  info.set_file(limit.file);
  info.set_line(limit.line);
  for (const Override& override : limit.overrides) {
    v1::OverrideInfo& added = *info.add_overrides();
    added.set_key(override.key);
    added.set_parameters(ebbgate::Describe(override.parameters));
    added.set_line(override.line);
  }
  for (const auto& [name, value] : limit.metadata) (*info.mutable_metadata())[name] = value;
}

grpc::Status ListLimits(const AdminParts& parts, const v1::ListLimitsRequest&, v1::ListLimitsResponse& response) {
  const LimitsInForce in_force = parts.engine.limits();
  response.set_generation(in_force.generation);
  *response.mutable_loaded_at() = TimeUtil::NanosecondsToTimestamp(in_force.installed_at_wall_ns);
  for (const Limit& limit : *in_force.limits) Describe(limit, *response.add_limits());
  return grpc::Status::OK;
}

grpc::Status ReloadLimits(const AdminParts& parts, const v1::ReloadLimitsRequest&, v1::ReloadLimitsResponse& response) {
  const absl::StatusOr<bool> changed = parts.reload();
  if (!changed.ok()) {
    const absl::string_view message = changed.status().message();
    return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, std::string(message));
  }
  const LimitsInForce in_force = parts.engine.limits();
  response.set_changed(*changed);
  response.set_generation(in_force.generation);
  response.set_limits(static_cast<std::uint32_t>(in_force.limits->size()));
  return grpc::Status::OK;
}

}  // namespace

std::vector<RpcMethod> AdminMethods(const AdminParts& parts) {
  return {
      MakeMethod<v1::InspectKeyRequest, v1::InspectKeyResponse>(
          "InspectKey", Method::kInspectKey,
          [parts](const auto& request, auto& response) { return InspectKey(parts, request, response); }),
      MakeMethod<v1::ResetKeyRequest, v1::ResetKeyResponse>(
          "ResetKey", Method::kResetKey,
          [parts](const auto& request, auto& response) { return ResetKey(parts, request, response); }),
      MakeMethod<v1::ListLimitsRequest, v1::ListLimitsResponse>(
          "ListLimits", Method::kListLimits,
          [parts](const auto& request, auto& response) { return ListLimits(parts, request, response); }),
      MakeMethod<v1::ReloadLimitsRequest, v1::ReloadLimitsResponse>(
          "ReloadLimits", Method::kReloadLimits,
          [parts](const auto& request, auto& response) { return ReloadLimits(parts, request, response); }),
  };
}

}  // namespace ebbgate

// Methods that are called now and then: their messages are parsed and built by protobuf's generated code.
#ifndef EBBGATE_SERVER_SERVICE_PROTO_METHOD_H_
#define EBBGATE_SERVER_SERVICE_PROTO_METHOD_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "server/engine/call.h"
#include "server/service/error_details.h"
#include "server/service/rpc_method.h"
#include "server/telemetry/service_counters.h"

namespace ebbgate {

// What refuses bytes that are no `Request`.
template <typename Request>
CallError NotA() {
  return {ErrorReason::kMalformed, "",
          "is not a well-formed " + Request::descriptor()->name() + ", or its text is not UTF-8"};
}

// Answers one method whose messages are `Request` and `Response`, with `answer`, a grpc::Status(request, response).
template <typename Request, typename Response, typename Answer>
class ProtoHandler final : public MessageHandler {
 public:
  ProtoHandler(Answer answer, ServiceCounters* counters) : answer_(std::move(answer)), counters_(counters) {}

  grpc::Status Handle(absl::string_view bytes, absl::string_view& response_bytes) override {
    Request request;
    if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      if (counters_ != nullptr) counters_->CountError(ErrorReason::kMalformed);
      return ToGrpcStatus(NotA<Request>());
    }
    Response response;
    const grpc::Status status = answer_(request, response);
    if (!status.ok()) return status;
    response.SerializeToString(&bytes_);
    response_bytes = bytes_;
    return grpc::Status::OK;
  }

 private:
  const Answer answer_;
  ServiceCounters* const counters_;
  std::string bytes_;
};

// `counters` counts unreadable messages among the errors; null: nobody does.
template <typename Request, typename Response, typename Answer>
RpcMethod ProtoMethod(std::string path, Method counted_as, Answer answer, ServiceCounters* counters = nullptr) {
  return {std::move(path), CallShape::kUnary, counted_as, [answer = std::move(answer), counters] {
            return std::make_unique<ProtoHandler<Request, Response, Answer>>(answer, counters);
          }};
}

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_SERVICE_PROTO_METHOD_H_

#include "server/service/reflection_methods.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <memory>
#include <set>
#include <utility>

#include "grpc/reflection/v1/reflection.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "server/service/error_details.h"

namespace ebbgate {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;
using grpc::reflection::v1::ServerReflectionRequest;
using grpc::reflection::v1::ServerReflectionResponse;

// The file and all that it imports, each once.
void AddFiles(const FileDescriptor& file, std::set<const FileDescriptor*>& seen, ServerReflectionResponse& response) {
  if (!seen.insert(&file).second) return;
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  response.mutable_file_descriptor_response()->add_file_descriptor_proto(proto.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) AddFiles(*file.dependency(i), seen, response);
}

class ReflectionHandler final : public MessageHandler {
 public:
  explicit ReflectionHandler(const std::vector<std::string>& services)
      : services_(services), pool_(*DescriptorPool::generated_pool()) {}

  grpc::Status Handle(absl::string_view request, absl::string_view& response) override {
    ServerReflectionResponse answer;
    ServerReflectionRequest& asked = *answer.mutable_original_request();
    if (!asked.ParseFromArray(request.data(), static_cast<int>(request.size()))) {
      return ToGrpcStatus({ErrorReason::kMalformed, "", "is not a well-formed ServerReflectionRequest"});
    }
    answer.set_valid_host(asked.host());
    Answer(asked, answer);
    answer.SerializeToString(&bytes_);
    response = bytes_;
    return grpc::Status::OK;
  }

 private:
  void Answer(const ServerReflectionRequest& asked, ServerReflectionResponse& answer) const {
    switch (asked.message_request_case()) {
      case ServerReflectionRequest::kFileByFilename:
        return AnswerFile(pool_.FindFileByName(asked.file_by_filename()), answer);
      case ServerReflectionRequest::kFileContainingSymbol:
        return AnswerFile(pool_.FindFileContainingSymbol(asked.file_containing_symbol()), answer);
      case ServerReflectionRequest::kListServices:
        for (const std::string& name : services_) {
          answer.mutable_list_services_response()->add_service()->set_name(name);
        }
        return;
      case ServerReflectionRequest::kFileContainingExtension:
      case ServerReflectionRequest::kAllExtensionNumbersOfType:
        // proto3 has no extensions.
        return AnswerError(grpc::StatusCode::NOT_FOUND, "there are no extensions", answer);
      case ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
        return AnswerError(grpc::StatusCode::INVALID_ARGUMENT, "message_request is not set", answer);
    }
  }

  static void AnswerFile(const FileDescriptor* file, ServerReflectionResponse& answer) {
    if (file == nullptr) return AnswerError(grpc::StatusCode::NOT_FOUND, "not found", answer);
    std::set<const FileDescriptor*> seen;
    AddFiles(*file, seen, answer);
  }

  static void AnswerError(grpc::StatusCode code, const char* message, ServerReflectionResponse& answer) {
    answer.mutable_error_response()->set_error_code(code);
    answer.mutable_error_response()->set_error_message(message);
  }

  const std::vector<std::string> services_;
  const DescriptorPool& pool_;
  std::string bytes_;
};

}  // namespace

std::vector<RpcMethod> ReflectionMethods(const std::vector<std::string>& services) {
  // Naming a message of each file is what makes its descriptors part of the program.
  const FileDescriptor* const versions[] = {
      grpc::reflection::v1::ServerReflectionRequest::descriptor()->file(),
      grpc::reflection::v1alpha::ServerReflectionRequest::descriptor()->file(),
  };
  std::vector<std::string> listed = services;
  for (const FileDescriptor* file : versions) listed.push_back(file->service(0)->full_name());
  std::vector<RpcMethod> methods;
  for (const FileDescriptor* file : versions) {
    methods.push_back({"/" + file->service(0)->full_name() + "/ServerReflectionInfo", CallShape::kStream,
                       Method::kReflection, [listed] { return std::make_unique<ReflectionHandler>(listed); }});
  }
  return methods;
}

}  // namespace ebbgate

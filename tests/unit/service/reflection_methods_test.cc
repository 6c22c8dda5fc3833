#include "server/service/reflection_methods.h"

#include <google/protobuf/descriptor.pb.h>

#include "gmock/gmock.h"
#include "grpc/reflection/v1/reflection.grpc.pb.h"
#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"
#include "gtest/gtest.h"
#include "tests/unit/service/served.h"

namespace ebbgate {
namespace {

using ::testing::ElementsAre;
using testing::Served;

// One question over a stream of its own.
template <typename Service, typename Request, typename Response>
Response Ask(Served& served, const Request& request) {
  const auto stub = Service::NewStub(served.channel);
  grpc::ClientContext context;
  testing::SetPatience(context);
  const auto stream = stub->ServerReflectionInfo(&context);
  EXPECT_TRUE(stream->Write(request));
  Response response;
  EXPECT_TRUE(stream->Read(&response));
  EXPECT_TRUE(stream->WritesDone());
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
  return response;
}

namespace reflection = grpc::reflection::v1;

reflection::ServerReflectionResponse AskV1(Served& served, const reflection::ServerReflectionRequest& request) {
  return Ask<reflection::ServerReflection, reflection::ServerReflectionRequest, reflection::ServerReflectionResponse>(
      served, request);
}

TEST(Reflection, BothVersionsListTheServices) {
  Served served;
  reflection::ServerReflectionRequest request;
  request.set_host("here");
  request.set_list_services("");
  std::vector<std::string> names;
  const auto response = AskV1(served, request);
  EXPECT_EQ(response.valid_host(), "here");
  EXPECT_EQ(response.original_request().message_request_case(), reflection::ServerReflectionRequest::kListServices);
  for (const auto& service : response.list_services_response().service()) names.push_back(service.name());
  EXPECT_THAT(names, ElementsAre("ebbgate.v1.RateLimiter", "grpc.health.v1.Health",
                                 "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"));

  namespace alpha = grpc::reflection::v1alpha;
  alpha::ServerReflectionRequest alpha_request;
  alpha_request.set_list_services("");
  const auto alpha_response =
      Ask<alpha::ServerReflection, alpha::ServerReflectionRequest, alpha::ServerReflectionResponse>(served,
                                                                                                    alpha_request);
  EXPECT_EQ(alpha_response.list_services_response().service_size(), 4);
}

TEST(Reflection, AFileComesWithItsImportsAndCanBeBuilt) {
  Served served;
  for (const char* symbol : {"ebbgate.v1.RateLimiter", "ebbgate.v1.RateLimiter.ShouldAllow", "ebbgate.v1.Charge",
                             "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}) {
    reflection::ServerReflectionRequest request;
    request.set_file_containing_symbol(symbol);
    const auto response = AskV1(served, request);
    const auto& files = response.file_descriptor_response();
    ASSERT_GT(files.file_descriptor_proto_size(), 0) << symbol;
    google::protobuf::DescriptorPool pool;
    // Imports stand behind what imports them.
    for (int i = files.file_descriptor_proto_size(); i-- > 0;) {
      google::protobuf::FileDescriptorProto file;
      ASSERT_TRUE(file.ParseFromString(files.file_descriptor_proto(i)));
      ASSERT_NE(pool.BuildFile(file), nullptr) << file.name();
    }
    EXPECT_NE(pool.FindFileContainingSymbol(symbol), nullptr);
  }
}

TEST(Reflection, FilesByNameAndWhatIsNotThere) {
  Served served;
  reflection::ServerReflectionRequest request;
  request.set_file_by_filename("ebbgate/v1/rate_limiter.proto");
  EXPECT_GT(AskV1(served, request).file_descriptor_response().file_descriptor_proto_size(), 1);
  request.set_file_by_filename("no/such.proto");
  EXPECT_EQ(AskV1(served, request).error_response().error_code(), grpc::StatusCode::NOT_FOUND);
  request.set_file_containing_symbol("no.such.Symbol");
  EXPECT_EQ(AskV1(served, request).error_response().error_code(), grpc::StatusCode::NOT_FOUND);
  request.mutable_file_containing_extension()->set_containing_type("ebbgate.v1.Charge");
  EXPECT_EQ(AskV1(served, request).error_response().error_code(), grpc::StatusCode::NOT_FOUND);
  request.set_all_extension_numbers_of_type("ebbgate.v1.Charge");
  EXPECT_EQ(AskV1(served, request).error_response().error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(AskV1(served, reflection::ServerReflectionRequest()).error_response().error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace ebbgate

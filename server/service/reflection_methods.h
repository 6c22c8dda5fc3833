// Server reflection, so that tools such as grpcurl need no .proto files. Own code over protobuf's descriptors, because
// gRPC's would not run on completion queues.
#ifndef EBBGATE_SERVER_SERVICE_REFLECTION_METHODS_H_
#define EBBGATE_SERVER_SERVICE_REFLECTION_METHODS_H_

#include <string>
#include <vector>

#include "server/service/rpc_method.h"

namespace ebbgate {

// ServerReflectionInfo of grpc.reflection.v1 and v1alpha, which differ in nothing but their names. `services` are full
// names; reflection itself is listed too.
std::vector<RpcMethod> ReflectionMethods(const std::vector<std::string>& services);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_SERVICE_REFLECTION_METHODS_H_

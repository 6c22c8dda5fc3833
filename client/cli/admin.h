// How the subcommands that speak to the admin port do so.
#ifndef EBBGATE_CLIENT_CLI_ADMIN_H_
#define EBBGATE_CLIENT_CLI_ADMIN_H_

#include "absl/status/statusor.h"
#include "client/channel.h"
#include "client/cli/command.h"
#include "ebbgate/v1/admin.grpc.pb.h"

namespace ebbgate::client {

// Calls one method of Admin, such as &v1::Admin::Stub::ListLimits, on the server that the flags name.
template <typename Request, typename Response>
absl::StatusOr<Response> CallAdmin(const Session& session,
                                   grpc::Status (v1::Admin::Stub::*method)(grpc::ClientContext*, const Request&,
                                                                           Response*),
                                   const Request& request) {
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel =
      OpenChannel(session.flags.admin, session.flags.Tls(), /*own_connection=*/false);
  if (!channel.ok()) return channel.status();
  v1::Admin::Stub stub(*channel);
  grpc::ClientContext context;
  SetTimeout(context, session.flags.timeout);
  Response response;
  const grpc::Status status = (stub.*method)(&context, request, &response);
  if (!status.ok()) return FromGrpc(status);
  return response;
}

}  // namespace ebbgate::client

#endif  // EBBGATE_CLIENT_CLI_ADMIN_H_

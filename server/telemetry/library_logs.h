// What gRPC and Protobuf have to say, sent through the event log instead of straight to standard error.
//
//   LibraryLogs library_logs(log);   // in main, before the first server is built; outlives them all
//
// Their messages hold what peers sent: they are escaped like any value, header values are left out, and each place in
// their code may speak once in ten seconds (event names: grpc_log, protobuf_log).
//
// Thread-safety: one at a time in a process, made and destroyed while no gRPC server or channel lives. Both libraries
// take a plain function without an argument of ours, so the log in force has to be found through a static; this class
// is the only one that has it.
#ifndef EBBGATE_SERVER_TELEMETRY_LIBRARY_LOGS_H_
#define EBBGATE_SERVER_TELEMETRY_LIBRARY_LOGS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "server/telemetry/logging.h"

namespace ebbgate {

class LibraryLogs {
 public:
  explicit LibraryLogs(EventLog& log);
  ~LibraryLogs();
  LibraryLogs(const LibraryLogs&) = delete;
  LibraryLogs& operator=(const LibraryLogs&) = delete;
};

// `message` of gRPC without the values of headers.
std::string WithoutHeaderValues(absl::string_view message);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_TELEMETRY_LIBRARY_LOGS_H_

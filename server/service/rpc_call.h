// One gRPC call on the server's side, from waiting for it to its last byte.
//
// These objects sit directly on gRPC's core: a call is one event when it arrives with its first message, and a unary
// one is one batch (headers, answer, status) with one event when it is gone. grpc::ServerContext and the C++ operations
// above the core would cost a tenth more processor time a call, and a second pair of everything for Unix sockets.
//
// Thread-safety: a call belongs to its queue's thread, which alone may touch it; Wake alone comes from elsewhere.
// Ownership: by the ServedMethod, which uses an object again for a later call. Bounded: a call holds at most one
// message that came in and one that goes out.
#ifndef EBBGATE_SERVER_SERVICE_RPC_CALL_H_
#define EBBGATE_SERVER_SERVICE_RPC_CALL_H_

#include <grpc/grpc.h>
#include <grpcpp/support/status.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace ebbgate {

struct ServedMethod;

class RpcCall {
 public:
  enum class Event : std::uint8_t {
    kArrived,  // a caller called, or the server is closing
    kStep,     // the shape's own step is done
    kHungUp,   // the caller is gone, or all is said
    kWoken,    // somebody asked for a look
    kDone,     // the status is sent, or nobody is there to read it
  };
  // What gRPC hands back with an event.
  struct Tag {
    RpcCall* call;
    Event event;
  };

  explicit RpcCall(ServedMethod& method);
  virtual ~RpcCall();
  RpcCall(const RpcCall&) = delete;
  RpcCall& operator=(const RpcCall&) = delete;

  // Waits for the next caller of the method.
  void Post();
  void On(Event event, bool ok);
  // The server is closing: a call that could go on for ever ends now.
  virtual void Close() {}

  // From any thread, while the queue knows the call as a feed: causes the event kWoken.
  virtual void Wake() {}

  std::size_t open_index = 0;  // of ServedMethod::open

 protected:
  // The call has arrived and counts as in flight.
  virtual void Begin() = 0;
  virtual void Step(bool) {}
  virtual void HungUp() {}
  virtual void Woken() {}
  // Whether no event but those counted in pending_ is to come; then the object is used again.
  virtual bool Settled() { return true; }
  virtual void Reset() {}

  // Ends the call. `response`, for unary calls, is sent before the status.
  void Finish(const grpc::Status& status, absl::string_view response = {}, bool has_response = false);

  // Lets the handler answer what came in last. Pre: has_message().
  grpc::Status HandleMessage(absl::string_view& response);
  bool has_message() const { return message_ != nullptr; }
  // OK, or why nothing may be decided any more.
  grpc::Status CheckTime() const;

  // Operations of one batch.
  class Batch {
   public:
    void SendHeaders();
    void SendMessage(absl::string_view bytes);
    void ReceiveMessage(RpcCall& call);
    void ReceiveClose(RpcCall& call);
    void SendStatus(RpcCall& call, const grpc::Status& status);
    void Start(RpcCall& call, Event event);
    ~Batch();

   private:
    grpc_op& Add(grpc_op_type type);
    grpc_op ops_[4] = {};
    std::size_t count_ = 0;
    grpc_byte_buffer* message_ = nullptr;
  };

  ServedMethod& method_;
  grpc_call* call_ = nullptr;
  bool headers_sent_ = false;
  bool close_awaited_ = false;
  bool finishing_ = false;

 private:
  void Arrived(bool ok);
  void Abandon(grpc::StatusCode code, const char* message);
  void Recycle();
  void DropMessage();
  void DropStatus();

  Tag tags_[5];
  int pending_ = 0;  // events to come
  bool in_flight_ = false;
  int cancelled_ = 0;
  gpr_timespec deadline_;
  grpc_metadata_array request_metadata_;
  grpc_call_details details_;  // of calls to methods that do not exist
  grpc_byte_buffer* message_ = nullptr;
  // Of the status, until it is sent.
  grpc::StatusCode code_ = grpc::StatusCode::OK;
  grpc_slice status_message_;
  grpc_metadata status_details_;
};

// The call of `method`'s shape.
std::unique_ptr<RpcCall> MakeCall(ServedMethod& method);

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_SERVICE_RPC_CALL_H_

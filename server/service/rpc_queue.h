// One completion queue of gRPC's core, the thread that serves it, and the calls that live on it.
//
// Thread-safety: methods are added before Start; WakeFeeds may be called from any thread while the queue runs; the rest
// belongs to the queue's thread. Ownership: the queue owns its calls and handlers; servers, counters and the budget
// outlive it. Bounded: see CallBudget and ServedMethod::Refill.
#ifndef EBBGATE_SERVER_SERVICE_RPC_QUEUE_H_
#define EBBGATE_SERVER_SERVICE_RPC_QUEUE_H_

#include <grpc/grpc.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/service/rpc_call.h"
#include "server/service/rpc_method.h"
#include "server/telemetry/service_counters.h"

namespace ebbgate {

// How many calls may be in flight together, over all queues of a server. Thread-safe.
class CallBudget {
 public:
  explicit CallBudget(std::int64_t limit) : limit_(limit) {}

  bool TryTake() {
    if (taken_.fetch_add(1, std::memory_order_relaxed) < limit_) return true;
    Return();
    return false;
  }
  void Return() { taken_.fetch_sub(1, std::memory_order_relaxed); }
  std::int64_t limit() const { return limit_; }

 private:
  const std::int64_t limit_;
  std::atomic<std::int64_t> taken_{0};
};

class RpcQueue;

// A method of one server, on one queue.
struct ServedMethod {
  RpcQueue& queue;
  grpc_server* server;
  void* registered;  // null: stands for all methods that do not exist
  CallShape shape;
  std::optional<Method> counted_as;
  MessageHandler* handler;
  // A stream older than this ends between two messages, so that callers spread over new servers; 0: never.
  std::int64_t max_stream_age_ns;

  // Keeps calls waiting for callers, unless so many are unfinished that more would be no use: callers then wait in the
  // transport.
  void Refill();
  // An event said that the server is closing: nobody new comes, and what could go on for ever ends.
  void ServerIsClosing();
  // A stream or feed begins, ends.
  void Opened(RpcCall& call);
  void Closed(RpcCall& call);

  int posted = 0;
  int posted_goal = 8;  // grows with the bursts that come
  bool closing = false;
  std::vector<std::unique_ptr<RpcCall>> calls = {};
  std::vector<RpcCall*> idle = {};
  std::vector<RpcCall*> open = {};  // streams and feeds under way
};

class RpcQueue {
 public:
  enum class Kind : std::uint8_t {
    kWaitsForSockets,
    // Other queues of its servers do, and hand over what is for this one.
    kIsHandedEvents,
  };

  RpcQueue(Kind kind, CallBudget& budget, ServiceCounters& counters);
  // Pre: not started, or joined.
  ~RpcQueue();
  RpcQueue(const RpcQueue&) = delete;
  RpcQueue& operator=(const RpcQueue&) = delete;

  // Makes the handler of a method, to be named in AddMethod.
  MessageHandler* AddHandler(std::unique_ptr<MessageHandler> handler);
  void AddMethod(grpc_server* server, void* registered, const RpcMethod& method, MessageHandler* handler,
                 std::int64_t max_stream_age_ns);
  // Calls to methods that do not exist are answered UNIMPLEMENTED. To be called once for each server.
  void AddUnknownMethods(grpc_server* server);

  void Start();
  // Lets a server of this queue shut down; the queue serves until all of them have.
  void ShutDown(grpc_server* server);
  // Pre: ShutDown was called for every server. Returns when every call has ended and the thread is gone.
  void Join();

  // Lets every feed look whether its answer has changed.
  void WakeFeeds();

  grpc_completion_queue* cq() const { return cq_; }

  // --- For calls, on the queue's thread ---

  CallBudget& budget() { return budget_; }
  ServiceCounters& counters() { return counters_; }
  // Calls that arrived and are not gone, refused ones included.
  std::int64_t unfinished = 0;
  // Calls of all methods that wait for callers.
  std::int64_t posted = 0;
  // All of `message` in one piece, good until the next call.
  absl::string_view Flatten(grpc_byte_buffer* message);

  // Between these two, WakeFeeds calls call.Wake().
  void AddFeed(RpcCall& call);
  void RemoveFeed(RpcCall& call);

 private:
  void Run();

  CallBudget& budget_;
  ServiceCounters& counters_;
  grpc_completion_queue* const cq_;
  std::vector<std::unique_ptr<MessageHandler>> handlers_;
  std::list<ServedMethod> methods_;
  std::string flat_;
  int servers_ = 0;  // that have not shut down
  std::thread thread_;
  bool joined_ = false;

  absl::Mutex feeds_mutex_;
  std::vector<RpcCall*> feeds_ ABSL_GUARDED_BY(feeds_mutex_);
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_SERVICE_RPC_QUEUE_H_

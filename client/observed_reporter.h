// For the service behind the limits: counts what it has received, and tells Ebbgate, which compares it with what was
// admitted.
//
//   auto reporter = ObservedReporter::Connect({.address = "127.0.0.1:7370"},
//                                             {.reporter = "billing", .instance = "pod-7", .limits = {"api-user"}});
//   ...
//   (*reporter)->Count("api-user", 1);                  // for each piece of work that arrives
//   (*reporter)->Report(absl::Seconds(1)).IgnoreError();  // every few seconds, and once right after Connect
//
// Totals are cumulative since Connect: a report that is lost or comes twice costs nothing, so an error needs no repeat;
// the next report makes up for it. Report once before the first work arrives, so that the server knows the zeros it
// starts from.
//
// Thread-safety: everything from any thread. Cost: a lock and a look-up for a count, one gRPC exchange for a report of
// up to 1,000 limits. Bounded: by the names that are counted; count only limits that are configured, since a report
// with an unknown one is refused as a whole.
#ifndef EBBGATE_CLIENT_OBSERVED_REPORTER_H_
#define EBBGATE_CLIENT_OBSERVED_REPORTER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/client.h"

namespace ebbgate::client {

// Who reports.
struct ReporterIdentity {
  // The service: a name of few, it becomes a label of a metric.
  std::string reporter;
  // This process of it: such as the name of its pod.
  std::string instance;
  // Limits whose totals are reported from the start, as zeros.
  std::vector<std::string> limits = {};
  absl::Time start_time = absl::Now();
};

class ObservedReporter {
 public:
  // Does not wait. Fails only if the TLS files cannot be used.
  static absl::StatusOr<std::unique_ptr<ObservedReporter>> Connect(const ClientOptions& options,
                                                                   ReporterIdentity identity);
  ~ObservedReporter();
  ObservedReporter(const ObservedReporter&) = delete;
  ObservedReporter& operator=(const ObservedReporter&) = delete;

  // Work of this cost has arrived. A cost below 0 counts as 0, and totals stop at what the server takes.
  void Count(absl::string_view limit, std::int64_t cost);

  // Sends all totals, in as many messages as they need, waiting at most `timeout` for each. The first error ends it.
  absl::Status Report(absl::Duration timeout);

 private:
  class Impl;
  ObservedReporter(std::unique_ptr<Impl> impl, ReporterIdentity identity);

  const std::unique_ptr<Impl> impl_;
  const ReporterIdentity identity_;
  absl::Mutex mutex_;
  std::map<std::string, std::int64_t, std::less<>> totals_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ebbgate::client

#endif  // EBBGATE_CLIENT_OBSERVED_REPORTER_H_

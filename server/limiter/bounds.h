// Every bound of Ebbgate, in one place, each with the reason for it.
//
// What a user may set is bounded here too; the settings themselves stand in server/config.
#ifndef EBBGATE_SERVER_LIMITER_BOUNDS_H_
#define EBBGATE_SERVER_LIMITER_BOUNDS_H_

#include <cstddef>
#include <cstdint>

namespace ebbgate {

// --- Calls -----------------------------------------------------------------------------------------------------------

// Names are labels of metrics and cells of tables; longer ones help nobody.
inline constexpr std::size_t kMaxLimitNameBytes = 128;
// Room for a URL or a token's hash; more would let callers choose how much memory a bucket takes.
inline constexpr std::size_t kMaxKeyBytes = 1024;
// A call locks the shards of all its charges; 32 levels of user, team, tenant, region, API are plenty.
inline constexpr std::size_t kMaxChargesPerCall = 32;
// A batch of this size takes well under a millisecond and a response of about 100 KiB.
inline constexpr std::size_t kMaxCallsPerBatch = 1000;
// A UUID is 36 bytes; longer ids would only fill the table that remembers them.
inline constexpr std::size_t kMaxRequestIdBytes = 64;
// The largest cost in whole tokens whose microtokens fit signed 64 bits: floor((2^63 - 1) / 10^6).
inline constexpr std::int64_t kMaxCostTokens = 9'223'372'036'854;
// Why a key was reset, for the log; a sentence or two.
inline constexpr std::size_t kMaxReasonBytes = 256;
// A full batch with long keys is about this large; gRPC's default of 4 MiB is an invitation.
inline constexpr std::size_t kMaxMessageBytes = 256 * 1024;

// --- Limits ----------------------------------------------------------------------------------------------------------

// Design contract: capacities to 9*10^12 tokens (9*10^18 microtokens fit signed 64 bits with room for the sign).
inline constexpr std::int64_t kMaxCapacityTokens = 9'000'000'000'000;
// Design contract: rates from one a year (a leap year, so that 365 and 366 days both pass) to 10^9 a second.
inline constexpr std::int64_t kSlowestTokenNs = 366LL * 24 * 3600 * 1'000'000'000;
inline constexpr std::int64_t kMaxTokensPerSecond = 1'000'000'000;
// Design contract: 100 years to full, so that every time fits signed 64-bit nanoseconds and a protobuf Duration.
inline constexpr std::int64_t kMaxTimeToFullNs = 100LL * 366 * 24 * 3600 * 1'000'000'000;
// A window longer than this is a quota for ever; the same 100 years.
inline constexpr std::int64_t kMaxWindowNs = kMaxTimeToFullNs;
// exact_window remembers up to this many admissions a key, 16 bytes each.
inline constexpr std::int64_t kMaxExactWindowCount = 10'000;
// Each limit costs counters in every shard and a set of time series in Prometheus.
inline constexpr std::size_t kMaxLimits = 10'000;
// Overrides of all limits together; each is a row of memory and, if a pattern, of work when a key is first seen.
inline constexpr std::size_t kMaxOverrides = 100'000;
inline constexpr std::size_t kMaxPatternsPerLimit = 100;
// Metadata is handed through, not used.
inline constexpr std::size_t kMaxMetadataEntries = 16;
inline constexpr std::size_t kMaxMetadataBytes = 256;
// A limits file beyond this is a mistake, or an attempt to exhaust the parser.
inline constexpr std::size_t kMaxLimitsFileBytes = 16 * 1024 * 1024;
// YAML nests at most limits > limit > overrides > override > refill; anchors are refused, so depth is all there is.
inline constexpr int kMaxYamlDepth = 16;
// Values in a YAML file: kMaxLimits and kMaxOverrides need some 800,000; a node takes about 100 bytes.
inline constexpr std::size_t kMaxYamlNodes = 1'000'000;
// Brackets, commas, colons and the like in a YAML file, each counted twice, and quotes. The parser keeps every token of
// the outermost brackets until they close, up to 370 bytes for each of these; 100,000 overrides as JSON have about so
// many.
inline constexpr std::size_t kMaxYamlMarks = 4'000'000;
// What a person reads of the faults and warnings of a file before correcting the first.
inline constexpr std::size_t kMaxFaults = 20;
inline constexpr std::size_t kMaxLintWarnings = 100;

// --- Memory ----------------------------------------------------------------------------------------------------------

// Slots are what a cluster deals out to its nodes; 16,384 of them spread evenly over dozens.
inline constexpr std::uint32_t kSlots = 16'384;
// Shards are what threads contend for. A power of two, many more than cores, few enough to lock all for a reload.
inline constexpr std::uint32_t kShards = 64;
// Keys held unless configured otherwise, and the most that may be configured (an entry's index has 32 bits).
inline constexpr std::int64_t kDefaultMaxKeys = 2'000'000;
inline constexpr std::int64_t kMaxKeys = 1'000'000'000;
inline constexpr std::int64_t kDefaultMaxStoreBytes = 1LL << 30;
// Entries looked at for expiry each time a key is added, so that the work never comes as a pause.
inline constexpr int kExpiryStepsPerInsert = 4;
// Entries looked at before a full store gives up and applies its policy.
inline constexpr int kExpiryStepsWhenFull = 256;
// A full bucket is kept this long after its last charge while there is room: a busy key of a fast limit is full all the
// time, and forgetting it between two calls would only cost work.
inline constexpr std::int64_t kMinIdleNs = 1'000'000'000;
// Remembered request ids, all together, and what one may hold on to.
inline constexpr std::int64_t kDefaultMaxRequestIds = 1'000'000;
inline constexpr std::int64_t kDefaultDedupeWindowNs = 60LL * 1'000'000'000;

// --- Holds -----------------------------------------------------------------------------------------------------------

// How long a hold stays open unless the caller says otherwise: long work finishes, a lost caller is forgotten.
inline constexpr std::int64_t kDefaultHoldNs = 10LL * 60 * 1'000'000'000;
// The longest a hold may stay open, and a reservation may wait for its turn; a promise binds later calls all that time.
inline constexpr std::int64_t kMaxHoldNs = 24LL * 3600 * 1'000'000'000;
// Open holds of all keys, one for each charge of a reservation (some 300 bytes each), unless configured otherwise, and
// the most that may be.
inline constexpr std::int64_t kDefaultMaxHolds = 100'000;
inline constexpr std::int64_t kMaxHolds = 100'000'000;
// Open holds of one key unless its limit says otherwise, and the most that it may say: a decision on the key walks over
// those that wait for their turn, 20 ns each.
inline constexpr std::int64_t kDefaultMaxHoldsPerKey = 1000;
inline constexpr std::int64_t kMaxHoldsPerKey = 5000;
// What a bucket may owe unless its limit says otherwise, in its capacities: a thousand full buckets wait in line.
inline constexpr std::int64_t kDefaultMaxDebtCapacities = 1000;
// Rounds of the search for a time that suits all charges of a reservation. Each follows the gap of one bucket; after
// so many the call goes behind everything that its buckets have promised, where any time suits.
inline constexpr int kMaxSearchRounds = 16;
// Reservations forgotten under one lock.
inline constexpr int kReservationsPerLock = 256;
// Holds of a key that an operator is shown.
inline constexpr std::size_t kMaxHoldsShown = 100;
// A reservation's name: 128 random bits in hexadecimal, so that nobody guesses another's.
inline constexpr std::size_t kReservationIdBytes = 32;

// --- Time ------------------------------------------------------------------------------------------------------------

// A step of the system's clock must hold this long before calendar windows follow it.
inline constexpr std::int64_t kDefaultWallStepHoldNs = 10LL * 1'000'000'000;
// Two clocks cannot be read at one instant; differences below this are noise, not steps.
inline constexpr std::int64_t kWallStepToleranceNs = 50'000'000;

// --- Drift -----------------------------------------------------------------------------------------------------------

// Received against admitted: 15 % apart for ten minutes is what the fall-back hour went far beyond, and what calls in
// flight, retries and late reports stay below.
inline constexpr std::int64_t kDefaultDriftRatioMicros = 1'150'000;
inline constexpr std::int64_t kDefaultDriftWindowNs = 600LL * 1'000'000'000;
// Tokens in a window below which nothing is judged: of fewer, a dozen in flight are more than 15 %.
inline constexpr std::int64_t kDefaultDriftMinimum = 100;
// What may be set. Closer than 1 % is noise, and beyond a thousandfold nothing is compared.
inline constexpr std::int64_t kMinDriftRatioMicros = 1'010'000;
inline constexpr std::int64_t kMaxDriftRatioMicros = 1'000'000'000;
// Reports come every few seconds; a window must hold several. Beyond a day nobody waits for an answer.
inline constexpr std::int64_t kMinDriftWindowNs = 1'000'000'000;
inline constexpr std::int64_t kMaxDriftWindowNs = 24LL * 3600 * 1'000'000'000;
// Points kept of a window, 48 bytes each: enough that its far end moves smoothly.
inline constexpr std::int64_t kDriftPoints = 60;
// A comparison that is younger than this part of its window is too young to judge: a report more or less decides it.
inline constexpr std::int64_t kDriftYoungPart = 4;
// Reporters are services, and labels of metrics: each costs a time series for every limit it reports.
inline constexpr std::size_t kMaxReporters = 32;
inline constexpr std::size_t kMaxReporterNameBytes = 64;
// A host and a port, or the name of a pod.
inline constexpr std::size_t kMaxInstanceNameBytes = 128;
// Processes that report, of all reporters together: a large fleet; some 200 bytes each.
inline constexpr std::size_t kMaxReportingInstances = 10'000;
// Starts of one process of which late reports are still told apart: a process that restarts faster than its reports
// arrive has other troubles.
inline constexpr std::size_t kMaxStartsPerInstance = 4;
// Totals remembered, of all instances and limits together; some 40 bytes each, so 20 MB at worst.
inline constexpr std::size_t kMaxObservedTotals = 500'000;
// Totals in one report: a message of about 150 KiB with the longest names. More limits take several reports.
inline constexpr std::size_t kMaxTotalsPerReport = 1000;
// Up to here a Prometheus sample (a double) is exact.
inline constexpr std::int64_t kMaxObservedTotal = 1LL << 53;
// A process that has not reported for so long is gone; what it counted stays counted.
inline constexpr std::int64_t kInstanceIdleNs = 3600LL * 1'000'000'000;
// Limits that /readyz names as drifting, or nearly so: a page for people.
inline constexpr std::size_t kMaxDriftTold = 20;

// --- Process ---------------------------------------------------------------------------------------------------------

// Addresses for calls; one for each network and a socket or two are plenty.
inline constexpr std::size_t kMaxListeners = 16;
// One thread reads while the other serves: a single one would read all that a client sends before it serves any of it,
// and keep a dozen KiB for every stream that was opened and reset (CVE-2023-44487).
inline constexpr std::int64_t kMinThreads = 2;
// Threads that serve calls; beyond the cores they only wait for each other.
inline constexpr std::int64_t kMaxThreads = 256;
// Calls in flight unless configured otherwise (some 10 KiB each, so 100 MB at worst), and the most that may be.
inline constexpr std::int64_t kDefaultMaxCallsInFlight = 10'000;
inline constexpr std::int64_t kMaxCallsInFlight = 1'000'000;
// Request ids and bytes that may be configured: more than machines have.
inline constexpr std::int64_t kMaxRequestIds = 1'000'000'000;
inline constexpr std::int64_t kMinStoreBytes = 1LL << 20;
inline constexpr std::int64_t kMaxStoreBytes = 1LL << 46;
// Waits that may be configured (dedupe window, drain, age of a connection); a day is longer than any that makes sense.
inline constexpr std::int64_t kMaxSettingNs = 24LL * 3600 * 1'000'000'000;
// A certificate chain or a bundle of authorities; the public ones together take 200 KiB.
inline constexpr std::size_t kMaxPemFileBytes = 1024 * 1024;

// --- Operations ------------------------------------------------------------------------------------------------------

// A value in a log line; a longer one is cut, so that no caller decides how large a log grows.
inline constexpr std::size_t kMaxLogValueBytes = 2048;
// Request line and headers of one HTTP request: several times what browsers and Prometheus send.
inline constexpr std::size_t kMaxHttpHeadBytes = 16 * 1024;
// HTTP connections open at once: scrapers, probes and people, not an application's traffic.
inline constexpr std::size_t kMaxHttpConnections = 64;
// Threads that serve them; each serves one connection at a time.
inline constexpr std::size_t kHttpThreads = 4;
// From the first byte of a request to the last of its answer; a peer slower than that keeps a thread from others.
inline constexpr std::int64_t kMaxHttpRequestNs = 10LL * 1'000'000'000;
// A connection serves this many requests, so that even a busy client spreads over the servers behind a balancer.
inline constexpr int kMaxHttpRequestsPerConnection = 1000;
// A connection waits this long for its next request, unless it must make room for another one.
inline constexpr std::int64_t kMaxHttpIdleNs = 60LL * 1'000'000'000;

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_LIMITER_BOUNDS_H_

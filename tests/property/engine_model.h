// What the engine should answer, told by a map of exact references that forgets nothing.
#ifndef EBBGATE_TESTS_PROPERTY_ENGINE_MODEL_H_
#define EBBGATE_TESTS_PROPERTY_ENGINE_MODEL_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/engine.h"
#include "tests/property/reference.h"

namespace ebbgate::testing {

// A charge and a call that own their text.
struct OwnCharge {
  std::string limit;
  std::string key;
  std::optional<std::int64_t> cost;
  friend bool operator==(const OwnCharge&, const OwnCharge&) = default;
};
struct OwnCall {
  std::vector<OwnCharge> charges;
  std::string request_id;
  bool peek = false;
};

// The call as the engine takes it; `charges` holds what it points at.
CallRequest View(const OwnCall& call, std::vector<ChargeRequest>& charges);

// "" if the answers are alike in everything, else what differs.
std::string Difference(const CallAnswer& a, const CallAnswer& b);

// Single-threaded. Both clocks of the engine under test must read the same.
class EngineModel {
 public:
  explicit EngineModel(std::int64_t dedupe_window_ns) : dedupe_window_ns_(dedupe_window_ns) {}

  // What the engine has forgotten, of the limits in force there, must have been full (**Forget only full**), and is
  // forgotten here too. To be told before anything else happens at a reading. Returns faults.
  std::string Forget(const Engine& engine, std::int64_t now_ns);
  // Compares the level of each key.
  std::string Compare(const Engine& engine, std::int64_t now_ns) const;

  void Install(const std::vector<Limit>& limits, std::int64_t now_ns);

  // Holds the engine's answer to a call against what is due, and takes note of it. Returns what is wrong, or "".
  std::string Check(const OwnCall& call, std::int64_t now_ns, const CallAnswer& answer);

  // What the counters of a limit should be.
  const LimitCounters& Expected(const std::string& limit) { return counters_[limit]; }
  std::uint64_t replays() const { return replays_; }

 private:
  using Key = std::pair<std::string, std::string>;
  struct Account {
    Key key;
    const Limit* limit;
    Parameters parameters;
    Reference reference;
    std::int64_t cost;
    bool never = false;
    bool fits = false;
  };
  struct Remembered {
    std::vector<OwnCharge> charges;
    CallAnswer answer;
    std::int64_t at_ns;
  };

  const Limit* Find(const std::string& name) const;
  static const Parameters& ParametersOf(const Limit& limit, const std::string& key);
  std::optional<ErrorReason> Fault(const OwnCall& call) const;
  std::string CheckError(const OwnCall& call, ErrorReason due, const CallAnswer& answer);
  std::string CheckDecision(const OwnCall& call, std::int64_t now_ns, const CallAnswer& answer);
  static std::string CheckCharge(const Account& account, std::int64_t now_ns, const ChargeAnswer& answer);
  static std::string CheckReset(const Account& account, std::int64_t now_ns, std::int64_t reset_ns);
  void Count(const OwnCall& call, const CallAnswer& answer, const std::vector<Account>& accounts);
  std::vector<Account> Open(const OwnCall& call, std::int64_t now_ns) const;

  const std::int64_t dedupe_window_ns_;
  std::vector<Limit> limits_;
  struct Held {
    Parameters parameters;
    Reference reference;
  };
  std::map<Key, Held> held_;
  std::map<std::string, Remembered> remembered_;
  std::map<std::string, LimitCounters> counters_;
  std::uint64_t replays_ = 0;
  std::int64_t latest_ns_ = INT64_MIN;
};

}  // namespace ebbgate::testing

#endif  // EBBGATE_TESTS_PROPERTY_ENGINE_MODEL_H_

#include "server/service/readiness.h"

#include <iterator>
#include <utility>

namespace ebbgate {

Readiness::Readiness(std::vector<std::string> reasons)
    : reasons_(std::make_move_iterator(reasons.begin()), std::make_move_iterator(reasons.end())),
      ready_(reasons_.empty()) {}

void Readiness::Block(absl::string_view reason) {
  absl::MutexLock lock(&mutex_);
  if (reasons_.emplace(reason).second) Changed();
}

void Readiness::Clear(absl::string_view reason) {
  absl::MutexLock lock(&mutex_);
  if (reasons_.erase(std::string(reason)) > 0) Changed();
}

std::vector<std::string> Readiness::Reasons() const {
  absl::MutexLock lock(&mutex_);
  return {reasons_.begin(), reasons_.end()};
}

Readiness::ListenerId Readiness::AddListener(Listener listener) {
  absl::MutexLock lock(&mutex_);
  const ListenerId id = next_listener_++;
  listeners_.emplace(id, std::move(listener));
  return id;
}

void Readiness::RemoveListener(ListenerId id) {
  absl::MutexLock lock(&mutex_);
  listeners_.erase(id);
}

void Readiness::Changed() {
  ready_.store(reasons_.empty(), std::memory_order_release);
  version_.fetch_add(1, std::memory_order_release);
  for (const auto& [id, listener] : listeners_) listener();
}

}  // namespace ebbgate

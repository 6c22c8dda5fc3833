// Does something again and again on a thread of its own, by the monotonic clock.
//
// Thread-safety: made and destroyed by one thread; the work is done on the ticker's. The destructor returns once the
// work is not running and will not run again.
#ifndef EBBGATE_SERVER_TICKER_H_
#define EBBGATE_SERVER_TICKER_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace ebbgate {

class Ticker {
 public:
  Ticker(std::chrono::milliseconds every, std::function<void()> work)
      : every_(every), work_(std::move(work)), thread_([this] { Run(); }) {}

  ~Ticker() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    stopped_.notify_one();
    thread_.join();
  }
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

 private:
  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!stopped_.wait_for(lock, every_, [this] { return stop_; })) {
      lock.unlock();
      work_();
      lock.lock();
    }
  }

  const std::chrono::milliseconds every_;
  const std::function<void()> work_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace ebbgate

#endif  // EBBGATE_SERVER_TICKER_H_

// Timers on a clock that tests move by hand.
#pragma once

#include "runtime/async/deadline.hpp"

#include <boost/asio/post.hpp>

#include <functional>
#include <map>
#include <memory>
#include <utility>

namespace troupe::async::testing {

class ManualTimers final : public Timers {
 public:
  core::TimePoint now() const noexcept override { return now_; }

  Timer arm(Executor executor, core::TimePoint at, std::function<void()> fire) override {
    auto entry = std::make_shared<Entry>();
    entry->executor = std::move(executor);
    entry->fire = std::move(fire);
    entries_.emplace(at, entry);
    return Timer(entry);
  }

  // Moves the clock and posts what is due, in order of time.
  void advance(core::Duration by) {
    now_ += by;
    while (!entries_.empty() && entries_.begin()->first <= now_) {
      auto entry = entries_.begin()->second;
      entries_.erase(entries_.begin());
      boost::asio::post(entry->executor, [entry] {
        if (entry->fire) std::exchange(entry->fire, nullptr)();
      });
    }
  }

  std::size_t armed() const {
    std::size_t count = 0;
    for (const auto& [at, entry] : entries_)
      count += entry->fire ? 1 : 0;
    return count;
  }

 private:
  struct Entry final : Timer::State {
    void disarm() override { fire = nullptr; }
    Executor executor;
    std::function<void()> fire;
  };

  core::TimePoint now_{};
  std::multimap<core::TimePoint, std::shared_ptr<Entry>> entries_;
};

}  // namespace troupe::async::testing

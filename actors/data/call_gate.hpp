// Lets so many calls to one peer through at a time and the others wait in the order they came, so
// that many groups at once fill no inbox. Owned by the data role, on its strand. Bound: the waiting
// calls, one a group and scorer.
#pragma once

#include "runtime/async/event.hpp"
#include "runtime/async/notifier.hpp"
#include "runtime/async/task.hpp"

#include <cstddef>
#include <list>
#include <memory>

namespace troupe::actors {

class CallGate {
 public:
  explicit CallGate(std::size_t calls_max) : calls_max_(calls_max) {}
  CallGate(const CallGate&) = delete;
  CallGate& operator=(const CallGate&) = delete;

  // Leaves when it goes; made after `enter` has returned.
  struct Pass {
    explicit Pass(CallGate& gate) : gate_(gate) {}
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    ~Pass() { gate_.leave(); }

   private:
    CallGate& gate_;
  };

  async::task<void> enter() {
    if (inside_ < calls_max_) {
      ++inside_;
      co_return;
    }
    auto turn = std::make_shared<async::Event>();
    const async::Listed<async::Event> listed(waiting_, turn);
    co_await async::Event::wait(turn);
  }

  std::size_t inside() const noexcept { return inside_; }
  std::size_t waiting() const noexcept { return waiting_.size(); }

 private:
  // The place goes to the first that still waits.
  void leave() {
    for (const auto& turn : waiting_) {
      if (turn->fire()) return;
    }
    --inside_;
  }

  const std::size_t calls_max_;
  std::size_t inside_ = 0;
  std::list<std::shared_ptr<async::Event>> waiting_;
};

}  // namespace troupe::actors

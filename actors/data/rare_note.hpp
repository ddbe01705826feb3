// Limits how often the user gets messages of one kind: passes on the first at once, then at most
// one in each span `every`, with the number left out before it. Owned by one role, on its strand.
#pragma once

#include "runtime/async/deadline.hpp"
#include "runtime/core/clock.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace troupe::actors::data {

class RareNote {
 public:
  RareNote(std::function<void(const std::string&)> say, async::Timers& timers, core::Duration every)
      : say_(std::move(say)), timers_(timers), every_(every) {}

  void operator()(const std::string& text) {
    const core::TimePoint now = timers_.now();
    if (last_ && now - *last_ < every_) {
      ++left_out_;
      return;
    }
    last_ = now;
    const std::uint64_t more = std::exchange(left_out_, 0);
    if (say_) say_(more == 0 ? text : text + " (and " + std::to_string(more) + " more before it)");
  }

 private:
  const std::function<void(const std::string&)> say_;
  async::Timers& timers_;
  const core::Duration every_;
  std::optional<core::TimePoint> last_;
  std::uint64_t left_out_ = 0;
};

}  // namespace troupe::actors::data

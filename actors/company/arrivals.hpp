// The nodes and roles that have introduced themselves and are there, each with the epoch of its
// life, and which node brought a role that the run did not ask for. Owned by the company, used on
// its strand.
#pragma once

#include "runtime/async/notifier.hpp"
#include "runtime/cluster/limits.hpp"
#include "runtime/core/find_value.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

namespace troupe::actors::company {

class Arrivals {
 public:
  // `changed` is notified by whoever reports an arrival. Both outlive the object.
  Arrivals(async::Timers& timers, async::Notifier& changed) : timers_(timers), changed_(changed) {}

  void add(const std::string& name, std::uint64_t epoch) {
    epochs_[name] = std::max(epochs_[name], epoch);
  }
  void bring(const std::string& role, const std::string& node) { brought_[role] = node; }
  void forget(const std::string& name) {
    epochs_.erase(name);
    brought_.erase(name);
  }

  // The epoch of the life that is there; 0: none.
  std::uint64_t epoch_of(const std::string& name) const {
    const std::uint64_t* const epoch = core::find_value(epochs_, name);
    return epoch == nullptr ? 0 : *epoch;
  }
  // The node by role, for roles that guests brought.
  const std::map<std::string, std::string>& brought() const noexcept { return brought_; }

  // Waits for that life of a role, or a later one. False: it did not come in time.
  async::task<bool> wait(std::string role, std::uint64_t epoch) const {
    const auto deadline = async::Deadline::after(timers_, cluster::limits::kLinkAnswer_max);
    while (epoch_of(role) < epoch) {
      if (!co_await changed_.wait(deadline)) co_return epoch_of(role) >= epoch;
    }
    co_return true;
  }

 private:
  async::Timers& timers_;
  async::Notifier& changed_;
  std::map<std::string, std::uint64_t> epochs_;
  std::map<std::string, std::string> brought_;
};

}  // namespace troupe::actors::company

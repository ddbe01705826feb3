// Who failed to prove himself at a door, and how often in the last minute. Addresses that failed
// kDoorFailures_max times are refused until the oldest failure is a minute old. Owned by a door,
// used on its strand; a pure value otherwise. Bound: kDoorAddresses_max addresses, the stalest goes
// first.
#pragma once

#include "runtime/core/clock.hpp"

#include <deque>
#include <map>
#include <string>

namespace troupe::net {

class FailureBook {
 public:
  bool blocked(const std::string& address, core::TimePoint now) const;
  // True when this failure is the one from which on the address is blocked.
  bool failed(const std::string& address, core::TimePoint now);
  std::size_t addresses() const noexcept { return failures_.size(); }

 private:
  void make_room(core::TimePoint now);

  std::map<std::string, std::deque<core::TimePoint>> failures_;  // at most kDoorFailures_max each
};

}  // namespace troupe::net

// What happened how often within the last minute, by a key: wrong proofs of an address, log lines
// about a network. A key is full from `most` events on until the oldest of those is a minute old.
// Owned by a gateway, used on its strand; a pure value otherwise. Bound: kGatewayAddresses_max keys, the
// stalest goes first.
#pragma once

#include "runtime/core/clock.hpp"

#include <cstddef>
#include <deque>
#include <map>
#include <string>

namespace troupe::net {

class MinuteBook {
 public:
  explicit MinuteBook(std::size_t most) : most_(most) {}
  bool full(const std::string& key, core::TimePoint now) const;
  // True when this event is the one from which on the key is full.
  bool add(const std::string& key, core::TimePoint now);
  std::size_t keys() const noexcept { return times_.size(); }

 private:
  void make_room(core::TimePoint now);

  const std::size_t most_;
  std::map<std::string, std::deque<core::TimePoint>> times_;  // at most `most_` each
};

}  // namespace troupe::net

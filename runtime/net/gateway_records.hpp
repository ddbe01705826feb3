// What a gateway remembers of its peers: how often something happened within the last minute, and
// from which addresses a peer has proved itself. Owned by a gateway, used on its strand; pure
// values otherwise. Bound: kGatewayAddresses_max entries each; the stalest goes first.
#pragma once

#include "runtime/core/clock.hpp"

#include <cstddef>
#include <deque>
#include <map>
#include <string>

namespace troupe::net {

// Counts events by a key: wrong proofs of an address, log lines about a network. A key is full from
// `most` events on until the oldest of those is a minute old.
class MinuteBook {
 public:
  explicit MinuteBook(std::size_t most) : most_(most) {}
  bool full(const std::string& key, core::TimePoint now) const;
  // True when this event makes the key full.
  bool add(const std::string& key, core::TimePoint now);
  std::size_t keys() const noexcept { return times_.size(); }

 private:
  void make_room(core::TimePoint now);

  const std::size_t most_;
  std::map<std::string, std::deque<core::TimePoint>> times_;  // at most `most_` each
};

// The addresses from which a peer has proved itself: known while a connection of it is carried, and
// for kGatewayProof_kept after the last. Addresses with open connections are never dropped.
class ProvenBook {
 public:
  bool knows(const std::string& address, core::TimePoint now) const;
  // A connection that proved itself begins and ends.
  void enters(const std::string& address, core::TimePoint now);
  void leaves(const std::string& address, core::TimePoint now);

 private:
  struct Visits {
    std::size_t open = 0;
    core::TimePoint last{};
  };
  void make_room();

  std::map<std::string, Visits> visits_;
};

}  // namespace troupe::net

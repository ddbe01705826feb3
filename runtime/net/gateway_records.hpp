// What a gateway remembers about addresses: how many failures or log lines there were within the
// last minute, and from which addresses a peer has proved itself. Owned by a gateway, used on its
// strand. Bound: kGatewayAddresses_max entries each; a new entry replaces the one that was unused
// longest. An address with open connections is never dropped.
#pragma once

#include "runtime/async/deadline.hpp"
#include "runtime/core/clock.hpp"

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <utility>

namespace troupe::net {

// Counts events by key, such as wrong proofs by address or log lines by network. A key is full
// while its last `most` events all lie within one minute.
class MinuteBook {
 public:
  explicit MinuteBook(std::size_t most) : most_(most) {}
  bool full(const std::string& key, core::TimePoint now) const;
  // Records an event. True if this event makes the key full.
  bool add(const std::string& key, core::TimePoint now);
  std::size_t keys() const noexcept { return times_.size(); }

 private:
  void make_room(core::TimePoint now);

  const std::size_t most_;
  std::map<std::string, std::deque<core::TimePoint>> times_;  // the last `most_` events of each key
};

// The addresses from which a peer has proved itself. An address is known while such a connection is
// open, and for kGatewayProof_kept after the last one; one with open connections is never dropped.
class ProvenBook {
 public:
  bool knows(const std::string& address, core::TimePoint now) const;
  // Call these when a connection has proved itself and when it ends.
  void enters(const std::string& address, core::TimePoint now);
  void leaves(const std::string& address, core::TimePoint now);

 private:
  struct Visits {
    std::size_t open = 0;    // connections
    core::TimePoint last{};  // when a connection last proved itself or ended
  };
  void make_room();

  std::map<std::string, Visits> visits_;
};

// A connection that has proved itself, while this object lives: counted, and in the book.
class ProvenVisit {
 public:
  ProvenVisit(ProvenBook& book, std::size_t& count, async::Timers& timers, std::string address)
      : book_(book), count_(count), timers_(timers), address_(std::move(address)) {
    ++count_;
    book_.enters(address_, timers_.now());
  }
  ProvenVisit(const ProvenVisit&) = delete;
  ProvenVisit& operator=(const ProvenVisit&) = delete;
  ~ProvenVisit() {
    --count_;
    book_.leaves(address_, timers_.now());
  }

 private:
  ProvenBook& book_;
  std::size_t& count_;
  async::Timers& timers_;
  const std::string address_;
};

}  // namespace troupe::net

// The publisher of a world of relays: the real RelayBook, asked and told as WeightServer does, and
// what must hold of its choices, from what has reached the publisher. Owned by the world.
#pragma once

#include "runtime/weights/relay_book.hpp"
#include "tests/sim/relays/receiver.hpp"

#include <deque>
#include <map>
#include <set>

namespace troupe::sim {

class Publisher {
 public:
  // `all_reachable`: from other hosts; others may need copies of their own.
  Publisher(cluster::sim::VirtualTime& time, Truth& truth, bool all_reachable)
      : time_(time), truth_(truth), all_reachable_(all_reachable) {}

  // Another life, without receivers; its next version follows `last`.
  void begin(core::Version last);
  void end();
  bool lives() const { return lives_; }
  std::uint64_t life() const { return life_; }
  core::Version newest() const { return images_.empty() ? 0 : images_.back()->version; }
  // Makes the next version. Returns an image whose receivers it takes back, or null.
  ImagePtr publish(std::uint32_t buckets);

  void connected(std::uint32_t number) { connections_[number] = {}; }
  bool is_connected(std::uint32_t number) const { return connections_.contains(number); }
  void gone(std::uint32_t number);
  struct Answer {
    RelayDirection direction;
    ImagePtr image;  // of a stream that begins with `first`
    std::uint32_t first = 0;
  };
  // `streams`: of this publisher, with how far they are.
  Answer ask(const Receiver& from, const RelayAsk& ask, const std::vector<StreamPtr>& streams);
  void report(std::uint32_t number, const weights::Report& report);
  void streamed(std::uint32_t number);  // its whole stream was taken
  void taken_back(std::uint32_t number) { cut_.insert(number); }

  // Streams that it began of each version, of all its lives; without those to receivers that it had
  // cut for a newer one.
  const std::map<std::pair<std::uint64_t, core::Version>, std::uint64_t>& copies() const {
    return copies_;
  }

 private:
  // What it knows of a receiver.
  struct Connection {
    std::uint64_t turn = 0;
    std::uint32_t host = 0, parent = 0;
    core::Version version = 0;
    bool done = false, memory = false;
    bool free = false;  // it gets a copy of the publisher's, and no relay had failed it
  };
  void check(const Receiver& from, const weights::RelayPlace& place, bool stays);
  bool moves_on(const RelayAsk& ask, std::uint32_t from) const;
  void note_fault(const RelayAsk& ask, std::uint32_t from);
  void check_copies();

  cluster::sim::VirtualTime& time_;
  Truth& truth_;
  const bool all_reachable_;
  bool lives_ = false;
  std::uint64_t life_ = 0, turns_ = 0;
  std::deque<ImagePtr> images_;  // the newest three
  std::optional<weights::RelayBook> book_;
  std::map<std::uint32_t, Connection> connections_;
  std::set<std::uint32_t> cut_, failed_, lost_;  // the last two in this version
  std::set<std::uint32_t> moved_on_;  // ended what they gave of an older version than this one
  std::map<std::uint32_t, std::set<std::uint32_t>> wrong_;  // relay: who got wrong bytes of it
  std::map<std::pair<std::uint64_t, core::Version>, std::uint64_t> copies_;
};

}  // namespace troupe::sim

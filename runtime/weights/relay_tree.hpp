// The receivers of one publisher, what each has, and who feeds it: a tree for each version, whose
// root is the publisher. Says how far a receiver is from a whole copy, and whom it feeds; what
// follows from that is decided in relay_book.hpp. Plain values; owned by the book.
#pragma once

#include "runtime/core/clock.hpp"
#include "runtime/core/find_value.hpp"
#include "runtime/weights/push_protocol.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace troupe::weights {

// What a receiver wants: a version, packed as one storage type.
struct RelayContent {
  kernels::PanelDtype image = kernels::PanelDtype::kF32;
  core::Version version = 0;
  std::uint32_t all = 0;  // its buckets
  friend bool operator==(const RelayContent&, const RelayContent&) = default;
};

struct RelayEntry {
  RelayPlace place;
  std::uint64_t host = 0, turn = 0;
  RelayContent content;
  std::uint32_t buckets = 0;
  std::uint32_t parent = 0;          // 0: the publisher
  core::TimePoint moved;             // when it last got a bucket, or began
  bool suspected = false;            // failed a receiver with this version
  bool reads_other = false;          // it reads the memory of one of its host, and has no copy
  std::vector<std::uint32_t> wrong;  // relays that gave it wrong bytes
  std::vector<std::uint32_t> slow;   // relays it left for better ones, in this version
  bool complete() const { return buckets >= content.all; }
  // Another one can read its memory.
  bool is_near(const RelayEntry& other) const {
    return host == other.host && !place.socket.empty();
  }
};

class RelayTree {
 public:
  // By number. What is counted once for each choice.
  struct Counts {
    std::map<std::uint32_t, std::size_t> children;    // children on other hosts that are not done
    std::map<std::uint32_t, std::size_t> complaints;  // of wrong bytes
  };

  RelayEntry& of(std::uint32_t number) { return entries_[number]; }  // a new one if it is unknown
  // Or null.
  RelayEntry* find(std::uint32_t number) { return core::find_value(entries_, number); }
  const RelayEntry* find(std::uint32_t number) const { return core::find_value(entries_, number); }
  void erase(std::uint32_t number) { entries_.erase(number); }
  const std::map<std::uint32_t, RelayEntry>& all() const { return entries_; }

  // How many relays its buckets pass until they come from a whole copy.
  std::size_t level(const RelayEntry& one) const;
  bool is_fed_by(const RelayEntry& one, std::uint32_t number) const;
  // How many the publisher feeds, or has fed.
  std::size_t copies(const RelayContent& content) const;
  Counts count(const RelayContent& content) const;
  // What is broken, or "": none has more than all, and none feeds itself through others.
  std::string check_invariants() const;

 private:
  // The receiver that feeds it; null: the publisher, or one that has left or gets another version.
  const RelayEntry* feeder_of(const RelayEntry& one) const;

  std::map<std::uint32_t, RelayEntry> entries_;
};

}  // namespace troupe::weights

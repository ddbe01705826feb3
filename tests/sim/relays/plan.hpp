// What a seed draws for a world of relays: receivers on hosts, the speed of links, versions, and
// what goes wrong. A plain value: the same seed gives the same plan.
#pragma once

#include "runtime/core/clock.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::sim {

struct RelayTrouble {
  enum class Kind {
    kDeath,     // of a receiver; another process comes in its place after `span`
    kFreeze,    // of a receiver
    kDownSlow,  // a bucket takes a receiver's host 1.2 to 1.8 s to get
    kUpSlow,    // a bucket takes it 0.3 to 0.8 s to give
    kWithhold,  // it gets buckets and gives none
    kWrong,     // it gives wrong bytes
    kDeaf,      // it lets nobody connect
    kCut,       // nothing goes between its host and another one; the publisher's for `other` 0
    kRestart,   // of the publisher, whose versions go on from an earlier one
  };
  static constexpr int kKinds = static_cast<int>(Kind::kRestart) + 1;
  Kind kind = Kind::kDeath;
  core::Duration at{}, span{};
  std::uint32_t target = 0, other = 0;  // receivers, from 1
  std::string text() const;
};
const char* name_of(RelayTrouble::Kind kind);

struct RelayPlan {
  std::uint64_t seed = 0;
  std::uint32_t receivers = 8;
  std::vector<std::uint32_t> hosts;  // by receiver
  std::vector<bool> reachable;       // from other hosts, by receiver
  std::uint32_t buckets = 20;
  std::uint64_t versions = 3;
  core::Duration bucket{};   // how long one takes from a host to another
  core::Duration between{};  // two versions
  std::vector<RelayTrouble> troubles;

  bool all_reachable() const;
  // Whether nothing happens but that hosts get buckets slowly.
  bool only_slow() const;
  std::string text() const;
};

RelayPlan draw_relay_plan(std::uint64_t seed);

}  // namespace troupe::sim

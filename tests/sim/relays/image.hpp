// The weights of a world of relays: a version is a list of numbers, its buckets, that says which
// publisher made it; and a stream of them from one process to another.
#pragma once

#include "runtime/core/ids.hpp"
#include "tests/sim/world/truth.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::sim {

// The bucket as the publisher that has lived `life` times signed it.
inline std::uint64_t true_bucket(std::uint64_t life, core::Version version, std::uint32_t index) {
  return mix(mix(life, version), static_cast<std::uint64_t>(index));
}

// A snapshot in the memory of a process.
struct Image {
  std::uint64_t life = 0;
  core::Version version = 0;
  std::uint32_t all = 0;                 // buckets of the version
  std::vector<std::uint64_t> buckets{};  // the first ones, that are here
  bool abandoned = false;                // it gets no more

  std::uint32_t ready() const { return static_cast<std::uint32_t>(buckets.size()); }
  bool complete() const { return ready() == all; }
  bool is(std::uint64_t its_life, core::Version its_version) const {
    return life == its_life && version == its_version;
  }
  bool is_true() const {
    for (std::uint32_t i = 0; i < ready(); ++i)
      if (buckets[i] != true_bucket(life, version, i)) return false;
    return complete();
  }
};
using ImagePtr = std::shared_ptr<Image>;

struct Stream {
  std::uint32_t from = 0;  // number of the process; 0: the publisher
  std::uint32_t to = 0;
  ImagePtr image;
  std::uint32_t next = 0;  // the bucket to send
  bool sending = false;    // one is on its way
  bool over = false;
};
using StreamPtr = std::shared_ptr<Stream>;

}  // namespace troupe::sim

// Random waits before retries, so that many processes that lost the same peer do not come back at
// the same moment. One thread at a time.
#pragma once

#include "runtime/core/clock.hpp"
#include "runtime/core/rng.hpp"

namespace troupe::core {

class Jitter {
 public:
  // Equal seeds give equal waits.
  explicit Jitter(std::uint64_t seed) : rng_(seed) {}
  // A wait between half of `most` and `most`.
  Duration of(Duration most) {
    const double half = static_cast<double>(most.count()) / 2;
    return Duration(static_cast<Duration::rep>(half + rng_.next_uniform() * half));
  }

 private:
  Rng rng_;
};

}  // namespace troupe::core

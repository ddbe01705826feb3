// Where a run whose weights diverge goes back to (train.on_divergence back): to the newest
// checkpoint that may be good, and one further each time that it diverges again without getting
// past the update where it did. At most limits::kDivergences_max times, then the run ends. A pure
// value; lives as long as the process that trains.
#pragma once

#include "runtime/core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::session {

class Returns {
 public:
  // `unit`: what the run counts, "update" or "step".
  explicit Returns(std::string unit) : unit_(std::move(unit)) {}

  struct Place {
    std::uint64_t step = 0;
    bool is_start = false;  // the run's start, not a checkpoint of its own
    std::size_t nth = 1;    // the first return, the second, ...
  };
  // The next place. `good`: the last update whose weights may be right; nothing: those that the run
  // began with are not. `kept`: the steps that have a checkpoint, ascending. `start`: the updates
  // that the run began with, if it has made no checkpoint since. Error kNumeric, with advice: there
  // is no place any more; it names those that were tried.
  core::Result<Place> next(std::optional<std::uint64_t> good,
                           const std::vector<std::uint64_t>& kept,
                           std::optional<std::uint64_t> start);

 private:
  core::Failure none(const std::string& why) const;

  std::string unit_;
  std::vector<Place> tried_;  // since a run got past `reached_`, the newest first
  std::uint64_t reached_ = 0;
};

}  // namespace troupe::session

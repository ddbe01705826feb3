// Which groups are in the engine and what of each has been told already. Part of the pump, on the
// engine's thread. Bound: the groups of the engine.
#pragma once

#include "apps/serving/engine_pump.hpp"

#include <map>

namespace troupe::app {

class EngineWatch {
 public:
  void add(core::GroupId group, std::int32_t samples, bool stream);
  void drop(core::GroupId group) { groups_.erase(group.value); }
  std::vector<core::GroupId> groups() const;

  // News of one turn: what it finished, then what unfinished samples have drawn.
  std::vector<GroupNews> look(engine::Engine& engine, std::vector<engine::Sample> finished);

 private:
  struct Watched {
    std::int32_t left = 0;  // samples that have not finished
    bool stream = false, drew = false;
    std::vector<std::size_t> told;  // tokens of each sample, of streams
  };
  void grow(engine::Engine& engine, core::GroupId group, Watched& watched, GroupNews& news);

  std::map<std::uint64_t, Watched> groups_;  // in the order of submission
};

}  // namespace troupe::app

// What all parts of a world share. Owned by the world.
#pragma once

#include "runtime/core/team.hpp"
#include "tests/sim/world/fake_engine.hpp"
#include "tests/sim/world/gangs.hpp"
#include "tests/sim/world/links.hpp"
#include "tests/sim/world/plan.hpp"
#include "tests/sim/world/sim_disk.hpp"
#include "tests/sim/world/truth.hpp"

#include <functional>
#include <string>

namespace troupe::sim {

inline constexpr std::uint64_t kRun = 42;             // the first one; the next is one more
inline constexpr std::chrono::seconds kHeadWait{60};  // how long nodes wait for the next head

struct Stage {
  VirtualTime& time;
  SimNetwork& network;
  Links& links;
  Truth& truth;
  SimDisk& disk;
  const WorldPlan& plan;
  core::Rng& rng;
  core::TeamRunner& team;
  const Numbers& text;
  Gangs& gangs;
  std::function<const Process*(std::uint64_t number)> process;
  std::function<void(const std::string& line)> note;  // for the trace

  core::Duration soon(core::Duration most) const {
    return core::Duration(rng.next_below(static_cast<std::uint64_t>(most.count()) + 1));
  }
};

}  // namespace troupe::sim

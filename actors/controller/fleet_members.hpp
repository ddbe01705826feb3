// The members of a fleet: which are up, what weights each holds, how busy each is, and which are
// able to work. When none has been for kGeneratorWait the run ends, unless the fleet is patient.
// Part of the controller, on its strand; its coroutine is a child of the run's scope. Bound: one
// entry for each name that was ever up.
#pragma once

#include "actors/controller/limits.hpp"
#include "actors/controller/router.hpp"
#include "actors/controller/run_state.hpp"
#include "actors/controller/snapshot.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors::controller {

// What the members of a fleet are.
struct FleetKind {
  const char* noun = "generator";
  bool weights = true;   // members sample, with weights sent to them
  bool patient = false;  // waits for one as long as it takes
  std::uint32_t work_max = static_cast<std::uint32_t>(limits::kGeneratorGroups_max);  // of each
};

class FleetMembers {
 public:
  struct Member {
    bool up = false;
    std::uint64_t life = 0;  // grows each time it comes up; answers to an earlier one are ignored
    std::uint64_t epoch = 0;
    std::optional<core::Version> holds{};
    core::Version sent = 0;      // newest weights it was told of
    int pushes = 0;              // weight calls under way
    std::uint64_t misses = 0;    // weights in a row that it could not take, restarts included
    std::uint64_t refusals = 0;  // refused tickets in a row while it had none
    bool sick = false;           // restarted, and nothing succeeded since
    bool again = false;          // a timer to send the weights again is running
  };

  // `run` outlives it.
  FleetMembers(RunState& run, FleetKind kind);

  const FleetKind& kind() const noexcept { return kind_; }
  Router& router() noexcept { return router_; }
  const Router& router() const noexcept { return router_; }
  std::map<std::string, Member>& all() noexcept { return members_; }
  Member& at(const std::string& name) { return members_.at(name); }
  // True if that start of the member still lives.
  bool lives(const std::string& name, std::uint64_t life) const;
  bool knows(const std::string& name) const { return members_.contains(name); }
  bool is_up(const std::string& name) const;

  void up(const std::string& name, std::uint64_t epoch);
  // The member is lost. It must be up.
  void down(const std::string& name, const std::string& cause);
  // What the run's end names, if no member is able to work then.
  void failed(const std::string& name, const std::string& cause) { cause_ = name + ": " + cause; }

  // How many can work: up, not sick or drained, with weights or without a failed try to load.
  std::size_t able() const;
  // To be called when that may have changed.
  void look();
  std::vector<GeneratorLine> lines() const;

 private:
  async::task<core::Result<void>> wait_for_one(std::uint64_t alone);

  RunState& run_;
  const FleetKind kind_;
  Router router_;
  std::map<std::string, Member> members_;
  bool is_alone_ = false;    // no member is able to work
  std::uint64_t alone_ = 0;  // grows when is_alone_ changes
  std::string cause_;
};

}  // namespace troupe::actors::controller

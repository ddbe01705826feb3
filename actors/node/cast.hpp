// The roles a run wants, who plays them, and when a role that was lost is started again. Pure: told
// the time, never asks for it. Owned by the company role, used on its strand.
//
//   wanted -> (a node offers its kind) -> starting -> up -> lost -> (back-off) -> wanted
//
// A role that is lost kRestarts_max times within kRestartWindow is given up: the run ends with its
// cause.
#pragma once

#include "runtime/core/clock.hpp"
#include "runtime/core/error.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

enum class PartState { kWanted, kStarting, kUp };

struct Part {
  std::string kind;   // "generator"
  std::string name;   // "generator/0"
  std::string bound;  // the one node that may play it; "" any that offers the kind
  PartState state = PartState::kWanted;
  std::string node;  // who plays it or is starting it
  std::uint64_t epoch = 0;
  core::TimePoint not_before{};  // back-off
  std::deque<core::TimePoint> losses;
  std::string last_cause;
};

class Cast {
 public:
  void want(std::string kind, std::string name, std::string bound);
  // No longer wanted; true when somebody plays it.
  bool drop(const std::string& name);

  // Nodes that are in, with what they offer.
  void node_in(const std::string& node, std::vector<std::string> kinds);
  // The parts it played are wanted again; gives their names.
  std::vector<std::string> node_out(const std::string& node,
                                    const core::Error& cause,
                                    core::TimePoint now);

  // Parts that can be started now: each is `starting` on its node from then on, with a new epoch.
  std::vector<Part> start_due(core::TimePoint now);
  // Start succeeded; false when it was lost meanwhile (epoch differs).
  bool up(const std::string& name, std::uint64_t epoch);
  // A start failed or a role that was up went away; false when this epoch was over before.
  bool lost(const std::string& name,
            std::uint64_t epoch,
            const core::Error& cause,
            core::TimePoint now);

  // Taken down on purpose: wanted again, and no loss.
  void retire(const std::string& name);

  // A part that was lost too often, with its last cause.
  std::optional<Part> hopeless(core::TimePoint now) const;

  const Part* find(const std::string& name) const;
  const std::map<std::string, Part>& parts() const noexcept { return parts_; }
  // True when all parts of these kinds are up (and there is one).
  bool all_up(const std::string& kind) const;

 private:
  std::string place_for(const Part& part) const;

  std::map<std::string, Part> parts_;
  std::map<std::string, std::vector<std::string>> nodes_;  // offered kinds by node
};

}  // namespace troupe::actors

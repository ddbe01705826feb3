// Records which nodes have joined and how long each has been silent. Pure: the caller passes the
// time in. Owned by the company role, used on its strand. Bound: kNodes_max.
//
//   alive <-> suspect (1 s of silence) -> frozen (2 s): the company gives the node up
//
// A node whose heartbeats wait behind bulk data on a slow link is not silent while bytes come from
// it, up to kTrafficLife.
//
// A company that was itself delayed must not take its own pause for silence of the nodes: when
// `look` is called late, the delay does not count as silence of any node.
#pragma once

#include "actors/company/node_figures.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/find_value.hpp"
#include "runtime/core/result.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors::company {

enum class NodeHealth { kAlive, kSuspect, kFrozen };
inline constexpr const char* health_name(NodeHealth health) {
  constexpr const char* kNames[] = {"alive", "suspect", "frozen"};
  return kNames[static_cast<int>(health)];
}

// Whether a node offers to run roles of a kind.
bool offers(const Join& join, const char* kind);

struct Member {
  Join join;
  core::TimePoint joined{};
  core::TimePoint last_beat{};   // as the node sent it, or as a late look moved it
  core::TimePoint last_heard{};  // last_beat, or bytes that came later
  NodeHealth health = NodeHealth::kAlive;
  NodeFigures figures{};
};

class Membership {
 public:
  // All nodes of a company have the same arithmetic and build; `join` refuses others.
  Membership(std::string arithmetic, std::string build)
      : arithmetic_(std::move(arithmetic)), build_(std::move(build)) {}

  // Errors: kInvalidArgument (name taken), kUnsupported (other arithmetic or program version),
  // kOverloaded (kNodes_max nodes).
  core::Result<void> join(const Join& join, core::TimePoint now);
  // Records a heartbeat. False: the node has not joined, or is frozen.
  bool beat(const Beat& beat, core::TimePoint now);
  void remove(const std::string& name) { members_.erase(name); }

  struct Change {
    std::string name;
    NodeHealth health;
    double silent_s;
  };
  // When bytes last came from a node, if that is known.
  using Traffic = std::function<std::optional<core::TimePoint>(const std::string& name)>;
  // Call every kLookEvery; returns the nodes whose health changed since the last call.
  std::vector<Change> look(core::TimePoint now, const Traffic& traffic = nullptr);

  const Member* find(const std::string& name) const { return core::find_value(members_, name); }
  const std::map<std::string, Member>& members() const noexcept { return members_; }

 private:
  std::string arithmetic_, build_;
  std::map<std::string, Member> members_;
  std::optional<core::TimePoint> last_look_;
};

}  // namespace troupe::actors::company

// Which nodes have joined and how long each has been silent. Pure: the caller passes the time in.
// Owned by the company role, used on its strand. Bound: kNodes_max.
//
//   alive -> suspect (1 s of silence) -> frozen (2 s): to be given up
//
// A company that was itself delayed must not mistake its own pause for silence of the nodes: when
// `look` is called late, the delay is not counted as silence of any node.
#pragma once

#include "actors/protocol/messages_node.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/find_value.hpp"
#include "runtime/core/result.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

enum class NodeHealth { kAlive, kSuspect, kFrozen };
inline constexpr const char* health_name(NodeHealth health) {
  constexpr const char* kNames[] = {"alive", "suspect", "frozen"};
  return kNames[static_cast<int>(health)];
}

// Whether a node offers to play roles of a kind.
bool offers(const Join& join, const char* kind);

struct Member {
  Join join;
  core::TimePoint joined{};
  core::TimePoint last_beat{};
  NodeHealth health = NodeHealth::kAlive;
};

class Membership {
 public:
  // All nodes of a company share these; `join` refuses a node that differs.
  Membership(std::string arithmetic, std::string build)
      : arithmetic_(std::move(arithmetic)), build_(std::move(build)) {}

  // Errors: kInvalidArgument (name taken, malformed), kUnsupported (other arithmetic or program),
  // kOverloaded (kNodes_max).
  core::Result<void> join(const Join& join, core::TimePoint now);
  // False: no such node (any more).
  bool beat(const std::string& name, core::TimePoint now);
  void remove(const std::string& name) { members_.erase(name); }

  struct Change {
    std::string name;
    NodeHealth health;
    double silent_s;
  };
  // Call every kLookEvery; returns the nodes whose health changed since the last call.
  std::vector<Change> look(core::TimePoint now);

  const Member* find(const std::string& name) const { return core::find_value(members_, name); }
  const std::map<std::string, Member>& members() const noexcept { return members_; }

 private:
  std::string arithmetic_, build_;
  std::map<std::string, Member> members_;
  std::optional<core::TimePoint> last_look_;
};

}  // namespace troupe::actors

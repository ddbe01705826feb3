// Records which nodes leave the company on request, and decides whether a node
// may leave. Pure. Owned by the company, used on its strand. Bound: kDrains_max nodes that have
// left; beyond that the oldest is forgotten.
//
//   (asked for) draining -> its roles are elsewhere -> dismissed -> gone
//
// A process that was told to go and comes back, say because it was frozen meanwhile, is known by
// its host and process id and told again; another process of the same name is a new node.
#pragma once

#include "actors/company/role_placement.hpp"
#include "actors/protocol/messages_node.hpp"
#include "runtime/core/result.hpp"

#include <deque>
#include <map>
#include <string>

namespace troupe::actors::company {

// Whether the run can go on without the node. Error kInvalidArgument: why not, and what to do
// instead. `brought`: the node of each role that a guest brought.
core::Result<void> may_leave(const std::string& node,
                             const RolePlacement& placement,
                             const std::map<std::string, std::string>& brought);

class Drains {
 public:
  // `process`: the node's, as it joined; one without a host when it has not.
  void begin(const std::string& node, const Join& process);
  // All that it did is elsewhere, and it is told to go.
  void dismissed(const std::string& node);
  void done(const std::string& node);

  bool is_draining(const std::string& node) const { return is(node, State::kDraining); }
  // True when its end is no surprise.
  bool is_expected(const std::string& node) const { return find(node) && !is_draining(node); }
  bool is_gone(const std::string& node) const { return is(node, State::kGone); }
  // True while it drains, and after it has left.
  bool knows(const std::string& node) const { return find(node) != nullptr; }
  // True when a process that was told to go asks to join again.
  bool is_back(const Join& join) const;
  // A new node has this name.
  void forget(const std::string& node);

 private:
  enum class State { kDraining, kDismissed, kGone };
  struct Drain {
    std::string node, host_id;
    std::uint32_t pid = 0;
    State state = State::kDraining;
  };
  const Drain* find(const std::string& node) const;
  bool is(const std::string& node, State state) const;
  void set(const std::string& node, State state);

  std::deque<Drain> drains_;  // oldest first
};

}  // namespace troupe::actors::company

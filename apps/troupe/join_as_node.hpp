// Lives as a node of a company whose head is another process, through its gateway, until the
// company dismisses the node or a signal comes. Joins again when the company was lost. A node lends
// what it has to any run; one that brings an environment of its own is a guest of one run.
#pragma once

#include "apps/session/node/node_process.hpp"
#include "apps/session/roles/role_loader.hpp"

#include <functional>
#include <string>

namespace troupe::app {

struct NodePlace {
  session::JoinFlags join;
  session::NodeSelf self;
  std::string relay{};                                  // of the weights that it has; empty: none
  std::function<void(session::RoleLoader&)> prepare{};  // each loader of its roles; may be null
  bool one_run = false;                                 // stay with one run
  double wait_s = 0;                                    // for an absent company; 0: for ever
};

// Starts this program anew in this process, with the same words: the company takes it for a node
// that was lost and comes back.
void start_over();
// The exit status of a process whose device is wedged, as of an internal error.
inline constexpr int kWedged = 70;

// On the main thread, which it blocks. Error kInterrupted: a signal came.
Result<void> join_as_node(const NodePlace& place);

}  // namespace troupe::app

// What a run session needs from its surroundings: a network for its roles, and all roles but its
// own started and kept running. One implementation runs a company of processes, the other one all
// roles in this process. Lives as long as the process. Called on the thread of the command that
// trains, which the functions block.
#pragma once

#include "actors/controller/controller.hpp"
#include "runtime/async/io_threads.hpp"
#include "runtime/cluster/endpoint.hpp"

#include <cstdint>
#include <memory>

namespace troupe::app {

class RunSession;

class ControlPlane {
 public:
  virtual ~ControlPlane() = default;

  // For the session's own roles: their threads, and a place in the network. Any thread.
  virtual async::IoThreads& io() = 0;
  virtual core::Result<std::shared_ptr<cluster::Endpoint>> join(const std::string& name) = 0;

  // Brings up all roles that a session needs. The error is that of the role that cannot be had.
  virtual core::Result<void> start_roles() = 0;
  // The session's controller has been made and not begun; called on its strand.
  virtual void prepare(actors::Controller& controller) = 0;
  // The session hears from now on who comes, who goes, and what ends it.
  virtual void attach(RunSession& session) = 0;
  // Leaves an account of the session in the run folder, while its roles are there.
  virtual void write_report() = 0;
  // The session hears nothing any more; its roles end. `over`: no other session follows.
  virtual void stop_roles(bool over) = 0;
};

}  // namespace troupe::app

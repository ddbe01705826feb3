// What a run session stands on: the network of its roles, and whoever brings them up and keeps them
// up. Lives as long as the process; there is one for a company of processes and one for a run in a
// single process. Its functions are called on the thread of the command that trains, and block.
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

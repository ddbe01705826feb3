// ControlPlane, the interface under a run session: it gives the session a network, and starts and
// watches all roles but the session's own (controller, data). CompanyPlane runs them in several
// processes, LoopbackPlane in this one. Unless it says otherwise, a function is called on the
// thread of the `train` command and blocks it.
#pragma once

#include "actors/controller/controller.hpp"
#include "runtime/async/io_threads.hpp"
#include "runtime/cluster/endpoint.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace troupe::session {

class RunSession;

class ControlPlane {
 public:
  virtual ~ControlPlane() = default;

  // For the session's own roles: their threads, and a place in the network. Any thread.
  virtual async::IoThreads& io() = 0;
  virtual core::Result<std::shared_ptr<cluster::Endpoint>> join(const std::string& name) = 0;

  // Starts all roles that a session needs and waits for them. Error: why a role could not start.
  virtual core::Result<void> start_roles() = 0;
  // The class of arithmetic that the policy computes in (runtime/model/arithmetic.hpp), once
  // `start_roles` has succeeded.
  virtual std::string arithmetic() const = 0;
  // Sets up the controller of a new session before it starts. Called on the controller's strand;
  // not for supervised training, whose controller needs nothing of the plane.
  virtual void prepare(actors::controller::Controller& controller) = 0;
  // From now on tells `session` which roles come and go, and of an error that must end it.
  virtual void attach(RunSession& session) = 0;
  // What the system was short of when policy or critic were last lost; nothing when another cause
  // is known, or none.
  virtual std::optional<core::Error> shortage() { return std::nullopt; }
  // Writes the session's status report to the run folder. Call while the roles still run.
  virtual void write_report() = 0;
  // Detaches the session and stops its roles. `over`: no other session follows.
  virtual void stop_roles(bool over) = 0;
};

}  // namespace troupe::session

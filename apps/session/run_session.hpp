// One session of a run: hosts its data role and its conductor (controller/0), from the last
// checkpoint (or the start) to an outcome. The control plane runs the other roles. If policy or
// critic is lost, the run goes on in a new session. Owned by the `train` command, whose thread
// `run` blocks; the destructor stops the session's roles, then those of the plane.
#pragma once

#include "actors/controller/conductor.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "apps/session/control_plane.hpp"
#include "runtime/async/device_thread.hpp"
#include "runtime/cluster/role_host.hpp"

#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>

namespace troupe::session {

// How a session ended. Only the first `set` counts. Call `set` on any thread, `wait` on one, once.
class Outcome {
 public:
  void set(core::Result<void> result) {
    std::call_once(once_, [&] { promise_.set_value(std::move(result)); });
  }
  core::Result<void> wait() { return future_.get(); }
  // Waits at most for `span`; true when the outcome is set.
  bool wait_for(core::Duration span) const {
    return future_.wait_for(span) == std::future_status::ready;
  }

 private:
  std::once_flag once_;
  std::promise<core::Result<void>> promise_;
  std::future<core::Result<void>> future_ = promise_.get_future();
};

// A conductor, and how it answers requests.
struct HostedConductor {
  std::shared_ptr<actors::controller::Conductor> conductor;
  std::unique_ptr<cluster::Role> role;
};

template <class C>
HostedConductor hosted(std::shared_ptr<C> conductor, const cluster::RoleServices& services) {
  return {conductor,
          std::make_unique<actors::RoleAdapter<C>>(conductor, services.transport->identity().self)};
}

// What a session is made from.
struct SessionParts {
  std::string checkpoint;           // to load first; "" starts from the model
  cluster::RoleHost::Factory data;  // of data/0
  // Makes controller/0; called once, on its strand.
  std::function<HostedConductor(const cluster::RoleServices&)> conductor;
  actors::controller::RunListener* listener = nullptr;
  // Called on the thread of `run` when the roles are up, with the class of arithmetic that they
  // compute in; its error ends the session. May be null.
  std::function<core::Result<void>(const std::string& arithmetic)> roles_up;
  // Error when the run folder is gone, or (kClosed) another head has taken the run over.
  std::function<core::Result<void>()> check_place;
};

class RunSession {
 public:
  RunSession(ControlPlane& plane, SessionParts parts);
  RunSession(const RunSession&) = delete;
  RunSession& operator=(const RunSession&) = delete;
  ~RunSession();

  // Runs to the end. kPeerLost: policy or critic was lost; a new session may resume the run.
  core::Result<void> run();

  // Any thread. Ends the session with an error of another role, after a checkpoint if there is
  // anything to save.
  void end(core::Error error);
  // Any thread. Posts `what` to the conductor's strand; does nothing without a conductor.
  void tell(std::function<void(actors::controller::Conductor&)> what);

 private:
  async::task<core::Result<void>> start();
  async::task<core::Result<void>> host(std::string name,
                                       cluster::RoleHost::Factory factory,
                                       std::unique_ptr<cluster::RoleHost>* place);
  async::task<void> stop();
  void look_at_place();
  core::Result<std::unique_ptr<cluster::Role>> make_conductor(
      const cluster::RoleServices& services);

  ControlPlane& plane_;
  SessionParts parts_;
  async::DeviceThread log_writer_{"experience log"};
  Outcome outcome_;
  bool over_ = false;
  std::unique_ptr<cluster::RoleHost> data_host_, controller_host_;
  std::mutex mutex_;  // protects the two below
  std::weak_ptr<actors::controller::Conductor> conductor_;
  async::Executor conductor_strand_;
};

}  // namespace troupe::session

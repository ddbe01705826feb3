// One life of a run: its data role and its controller, from the last checkpoint to the outcome.
// Stands on a control plane that has the other roles. A run whose policy or critic was lost has
// another session after it. Owned by the command that trains, which `run` blocks; going away stops
// its roles, then those of the plane.
#pragma once

#include "actors/controller/controller.hpp"
#include "actors/data/data_role.hpp"
#include "apps/session/control_plane.hpp"
#include "apps/session/outcome.hpp"
#include "runtime/cluster/role_host.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace troupe::app {

struct SessionParts {
  actors::RunPlan plan;
  std::string checkpoint;  // to load first; "" starts from the model
  actors::DataRoleOptions data;
  std::unique_ptr<actors::PromptSource> prompts;
  std::unique_ptr<actors::PromptSource> evaluation;  // null without held-out prompts
  std::unique_ptr<actors::GroupSink> sink;
  actors::RunListener* listener = nullptr;
  std::function<bool()> folder_here;  // the run folder is still the run's
  std::function<void(const std::string&)> note;
};

class RunSession {
 public:
  RunSession(ControlPlane& plane, SessionParts parts);
  RunSession(const RunSession&) = delete;
  RunSession& operator=(const RunSession&) = delete;
  ~RunSession();

  // To the end. kPeerLost when policy or critic was lost: the run can go on from its checkpoint.
  core::Result<void> run();

  // Any thread. Ends the session for what happened to another role: it saves first, where there is
  // something to save.
  void end(core::Error error);
  // Any thread. Runs on the controller's strand, if there is a controller.
  void tell(std::function<void(actors::Controller&)> what);

 private:
  async::task<core::Result<void>> start();
  async::task<core::Result<void>> host(std::string name,
                                       cluster::RoleHost::Factory factory,
                                       std::unique_ptr<cluster::RoleHost>* place);
  async::task<void> stop();
  core::Result<std::unique_ptr<cluster::Role>> make_controller(
      const cluster::RoleServices& services);

  ControlPlane& plane_;
  SessionParts parts_;
  Outcome outcome_;
  bool over_ = false;
  std::unique_ptr<cluster::RoleHost> data_host_, controller_host_;
  std::mutex mutex_;  // of these two
  std::weak_ptr<actors::Controller> controller_;
  async::Executor controller_strand_;
};

}  // namespace troupe::app

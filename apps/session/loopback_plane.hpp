// LoopbackPlane, the control plane of a run in one process. Every role has its own strand on the
// loopback network. The roles that compute take turns on one device thread with all cores, except
// that generators get threads of their own when training is asynchronous or there are several.
// Nothing restarts a role: one that fails ends the session. Serves one session. Owned by the
// `train` command.
#pragma once

#include "actors/company/arithmetic_classes.hpp"
#include "apps/session/control_plane.hpp"
#include "apps/session/roles/role_loader.hpp"
#include "apps/session/session_news.hpp"
#include "runtime/cluster/loopback/loopback.hpp"
#include "runtime/cluster/role_host.hpp"
#include "runtime/config/train_config.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::session {

class LoopbackPlane final : public ControlPlane {
 public:
  // `updates`: of the whole run. `params`: the policy's weights. `reward`: the configured rule,
  // Python file or server; null without one.
  LoopbackPlane(config::TrainConfig config,
                std::uint64_t updates,
                std::unique_ptr<model::ParamStore> params,
                std::unique_ptr<actors::reward::RewardCalls> reward);
  ~LoopbackPlane() override;

  async::IoThreads& io() override { return io_; }
  core::Result<std::shared_ptr<cluster::Endpoint>> join(const std::string& name) override;
  core::Result<void> start_roles() override;
  std::string arithmetic() const override { return classes_.of(actors::controller::kPolicyRole); }
  void prepare(actors::controller::Controller&) override {}
  void attach(RunSession& session) override;
  void write_report() override {}
  void stop_roles(bool over) override;

 private:
  async::task<core::Result<void>> start();
  async::task<void> stop();

  const config::TrainConfig config_;
  const std::uint64_t updates_;
  async::SteadyTimers timers_;
  RoleLoader loader_;
  async::IoThreads io_;
  cluster::LoopbackNetwork network_;
  std::vector<std::unique_ptr<cluster::RoleHost>> hosts_;
  actors::company::ArithmeticClasses classes_;
  SessionNews news_;
};

}  // namespace troupe::session

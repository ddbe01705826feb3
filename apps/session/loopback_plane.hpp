// The control plane of a run in one process: every role on its own strand over the loopback
// network; the roles that compute take turns on one device thread with all cores. Nothing restarts
// a role: one that fails ends the session. Serves one session. Owned by the `train` command.
#pragma once

#include "apps/session/control_plane.hpp"
#include "apps/session/roles/role_loader.hpp"
#include "runtime/cluster/loopback/loopback.hpp"
#include "runtime/cluster/role_host.hpp"
#include "runtime/config/train_config.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace troupe::app {

class LoopbackPlane final : public ControlPlane {
 public:
  // `updates`: of the whole run. `params` and `reward` are loaded already; `reward` is null when no
  // rule, Python file or server is configured.
  LoopbackPlane(config::TrainConfig config,
                std::uint64_t updates,
                std::unique_ptr<model::ParamStore> params,
                std::unique_ptr<actors::RewardSource> reward);
  ~LoopbackPlane() override;

  async::IoThreads& io() override { return io_; }
  core::Result<std::shared_ptr<cluster::Endpoint>> join(const std::string& name) override;
  core::Result<void> start_roles() override;
  void prepare(actors::Controller&) override {}
  void attach(RunSession& session) override;
  void write_report() override {}
  void stop_roles(bool over) override;

 private:
  async::task<core::Result<void>> start();
  async::task<void> stop();
  void failed(const core::Error& error);

  const config::TrainConfig config_;
  const std::uint64_t updates_;
  async::SteadyTimers timers_;
  RoleLoader loader_;
  async::IoThreads io_;
  cluster::LoopbackNetwork network_;
  std::vector<std::unique_ptr<cluster::RoleHost>> hosts_;
  std::mutex mutex_;  // of the two below
  RunSession* session_ = nullptr;
  std::optional<core::Error> early_;  // a role's failure before `attach`
};

}  // namespace troupe::app

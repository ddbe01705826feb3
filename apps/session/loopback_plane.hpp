// A run in one process: every role on its own strand over the loopback network, the numeric ones
// taking turns on one device thread with all cores. Has no company: a role that fails ends the
// session. Serves one session. Owned by the command that trains.
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
  // `updates`: of the whole run. `params` and `reward`: loaded already; the reward is null without
  // rule, Python file and server.
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
  std::optional<core::Error> early_;  // what failed before there was a session
};

}  // namespace troupe::app

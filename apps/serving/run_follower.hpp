// Keeps a server at the newest weights of a training run (`troupe serve --join`). Again and again
// it asks the run's controller for a version newer than its own, fetches the newest one over the
// weight channel, and hands it to the pump. A role (a guest of the run) that accepts no requests.
// Lives on its host's strand. Bound: one fetch at a time.
#pragma once

#include "actors/generator/weight_follower.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "apps/serving/engine_pump.hpp"

#include <functional>
#include <memory>
#include <string>

namespace troupe::serving {

class RunFollower final : public cluster::Role {
 public:
  // `pump` and `fetch_thread` outlive the follower. `note` is called with a message for each new
  // version, and for errors from the second consecutive failure on: a single failure may be the end
  // of the run, which the node reports by itself. `current`: the engine has the run's weights.
  RunFollower(EnginePump& pump,
              std::shared_ptr<weights::WeightSubscriber> subscriber,
              async::DeviceQueue& fetch_thread,
              std::function<void(const std::string&)> note,
              std::function<void()> current,
              actors::RoleContext context);

  async::task<core::Result<wire::Frame>> handle(wire::Frame request) override;
  // Runs until its scope is cancelled.
  async::task<core::Result<void>> run() override;

 private:
  void hand_over();
  async::task<core::Result<void>> take_next();

  EnginePump& pump_;
  const std::function<void(const std::string&)> note_;
  const std::function<void()> current_;
  actors::RoleContext context_;
  async::Executor executor_;
  std::shared_ptr<actors::generator::WeightFollower> weights_;
};

}  // namespace troupe::serving

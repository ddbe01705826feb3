// Keeps a server at the newest weights of a training run: asks the run's controller for a version
// newer than its own, fetches it over the weight channel and hands it to the pump, one version at a
// time; versions published meanwhile are skipped. A role that gets no requests and that the run
// never waits for. Lives on its host's strand. Bound: one fetch at a time.
#pragma once

#include "actors/generator/weight_follower.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "apps/serving/engine_pump.hpp"

#include <functional>
#include <memory>
#include <string>

namespace troupe::app {

class RunFollower final : public cluster::Role {
 public:
  // `pump` and `fetch_thread` outlive it. `note` is called for new versions, and for an error that
  // occurs twice: the first may be the run's end, which the node learns by itself.
  RunFollower(EnginePump& pump,
              std::shared_ptr<weights::WeightSubscriber> subscriber,
              async::DeviceQueue& fetch_thread,
              std::function<void(const std::string&)> note,
              actors::RoleContext context);

  async::task<core::Result<wire::Frame>> handle(wire::Frame request) override;
  // Runs until its scope is cancelled.
  async::task<core::Result<void>> run() override;

 private:
  void hand_over();
  async::task<core::Result<void>> take_next();

  EnginePump& pump_;
  const std::function<void(const std::string&)> note_;
  actors::RoleContext context_;
  async::Executor executor_;
  std::shared_ptr<actors::WeightFollower> weights_;
};

}  // namespace troupe::app

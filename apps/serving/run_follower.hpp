// Keeps a server at the newest weights of a training run: asks the run's controller for a version
// newer than its own, fetches it over the weight channel and hands it to the pump, one version at a
// time; versions that come meanwhile are skipped. A role of this process that nobody sends requests
// to and that the run does not wait for. Lives on its host's strand. Bound: one fetch at a time.
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
  // `pump` and `fetch_thread` outlive it. `note` is told of versions, and of what goes wrong once
  // it has gone wrong twice: the first time may be the run's end, of which the node hears by
  // itself.
  RunFollower(EnginePump& pump,
              std::shared_ptr<weights::WeightSubscriber> subscriber,
              async::DeviceThread& fetch_thread,
              std::function<void(const std::string&)> note,
              actors::RoleContext context);

  async::task<core::Result<wire::Frame>> handle(wire::Frame request) override;
  // Until its scope is cancelled.
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

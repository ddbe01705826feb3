// Follows the weights of a run from inside it, as a guest: asks the controller for a version
// newer than its own, fetches it by the weight channel and hands it to the pump, one version at a
// time; what comes meanwhile is skipped. The run waits for none of it. Its coroutine lives on the
// strand of the role that hosts it; fetching blocks a thread of its own. Bound: one fetch at a
// time.
#pragma once

#include "actors/protocol/role_shell.hpp"
#include "apps/serving/engine_pump.hpp"
#include "runtime/async/device_thread.hpp"
#include "runtime/weights/weight_channel.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace troupe::app {

class LiveWeights {
 public:
  // `pump` outlives it. `note` is told of versions, and of what goes wrong once it has gone wrong
  // twice: the first time may be the run's end, of which the node hears by itself.
  LiveWeights(EnginePump& pump,
              std::shared_ptr<weights::WeightSubscriber> subscriber,
              std::function<void(const std::string&)> note);

  // Until the context's scope is cancelled.
  static async::task<void> follow(LiveWeights* self, actors::RoleContext context);

  void close() { fetch_.close(); }

 private:
  static async::task<core::Result<core::Version>> take(LiveWeights* self,
                                                       core::Version version,
                                                       weights::WeightLocation location);

  EnginePump& pump_;
  std::shared_ptr<weights::WeightSubscriber> subscriber_;
  const std::function<void(const std::string&)> note_;
  async::DeviceThread fetch_{"fetch"};
  std::optional<core::Version> held_;
  std::string last_;          // complaint that was told
  std::size_t failures_ = 0;  // in a row
};

}  // namespace troupe::app

// Configures CAF and owns an actor system. CAF waits for ever for an actor that does not end, so
// the system is ended on a thread of its own, with a time limit. Each system gets a random node id.
// Owned by the exchange.
#pragma once

#include "runtime/core/clock.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/io/middleman_actor.hpp>

#include <future>
#include <memory>
#include <thread>

namespace troupe::cluster::exchange {

struct Settings : caf::actor_system_config {
  Settings();
};

// Must live around every use of an actor system on a thread that is not the system's own. Spawning
// and other calls leave a thread-local reference to the system's logger, which the destructor
// drops; the end of the system would wait for it for ever.
class Visit {
 public:
  Visit() = default;
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  ~Visit();
};

class System {
 public:
  System() = default;
  System(const System&) = delete;
  System& operator=(const System&) = delete;
  ~System();

  caf::actor_system& get() noexcept { return *state_->system; }
  // Opens and dials Unix sockets (local_middleman.hpp).
  const caf::io::middleman_actor& middleman() const noexcept { return state_->middleman; }

  // Ends the system on a thread of its own. False when it has not ended by `end`; another call then
  // waits again.
  bool destroy(core::TimePoint end);

 private:
  struct State {  // outlives this object if the end never comes
    State();
    void end();
    Settings settings;
    std::unique_ptr<caf::actor_system> system;
    caf::io::middleman_actor middleman;
  };

  const std::shared_ptr<State> state_ = std::make_shared<State>();
  std::thread ender_;
  std::future<void> ended_;
};

}  // namespace troupe::cluster::exchange

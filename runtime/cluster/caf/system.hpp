// The settings of CAF, in one place, and the owner of an actor system whose end is watched: CAF
// waits for ever for an actor that does not end. Every system's node id is made of random bits.
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

// Must surround every use of a system by a thread that is not its own. Spawning and other calls
// leave a thread-local reference to the system's logger, for which the system's end would wait for
// ever.
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

  // Ends the system on a thread of its own. False when that has not come to its end by `end`; it
  // may be asked again.
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

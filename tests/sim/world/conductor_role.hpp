// The controller of a run as a role of the head: when it ends, so does the session. Private to
// Head.
#pragma once

#include "actors/protocol/role_adapter.hpp"
#include "tests/sim/world/head.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace troupe::sim {

template <class Conductor>
class ConductorRole final : public actors::RoleAdapter<Conductor> {
 public:
  ConductorRole(std::shared_ptr<Conductor> conductor,
                std::string checkpoint,
                std::function<void(core::Result<void>)> ended,
                std::string self)
      : actors::RoleAdapter<Conductor>(conductor, std::move(self)),
        conductor_(std::move(conductor)),
        checkpoint_(std::move(checkpoint)),
        ended_(std::move(ended)) {}

  async::task<core::Result<void>> run() override {
    auto loaded = conductor_->load(checkpoint_);
    core::Result<void> ended = co_await std::move(loaded);
    if (ended) ended = co_await conductor_->run();
    ended_(std::move(ended));
    co_return core::Result<void>();
  }

 private:
  std::shared_ptr<Conductor> conductor_;
  const std::string checkpoint_;
  const std::function<void(core::Result<void>)> ended_;
};

// The present session is conducted by this role from now on.
template <class Conductor>
core::Result<std::unique_ptr<cluster::Role>> Head::conducting(
    std::shared_ptr<Conductor> conductor,
    const std::string& checkpoint,
    const cluster::RoleServices& services) {
  session_->role = conductor;
  session_->strand = services.executor;
  std::function<void(core::Result<void>)> ended = [this](core::Result<void> outcome) {
    set_outcome(std::move(outcome));
  };
  return std::unique_ptr<cluster::Role>(std::make_unique<ConductorRole<Conductor>>(
      std::move(conductor), checkpoint, std::move(ended), services.transport->identity().self));
}

}  // namespace troupe::sim

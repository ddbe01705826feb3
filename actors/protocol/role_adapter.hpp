// Lets a RoleHost run a role of actors/: passes frames on to its `on(Request)` handlers.
#pragma once

#include "actors/protocol/dispatch.hpp"
#include "actors/protocol/limits.hpp"
#include "runtime/cluster/role_host.hpp"

#include <memory>
#include <utility>

namespace troupe::actors {

inline RoleContext context_of(const cluster::RoleServices& services) {
  return {services.transport,     &services.scope, services.device,   &services.timers,
          limits::kRoundDeadline, services.team,   &services.activity};
}

template <class R>
class RoleAdapter : public cluster::Role {
 public:
  RoleAdapter(std::shared_ptr<R> role, std::string self)
      : role_(role), handler_(handler_of(std::move(role), std::move(self))) {}

  async::task<core::Result<wire::Frame>> handle(wire::Frame request) override {
    return handler_(std::move(request));
  }

  // The role's own state and amounts where it has such functions, else the defaults.
  std::string state() const override {
    if constexpr (requires(const R& role) { role.state(); }) return role_->state();
    return Role::state();
  }
  wire::Amounts amounts() const override {
    if constexpr (requires(const R& role) { role.amounts(); }) return role_->amounts();
    return Role::amounts();
  }

 private:
  std::shared_ptr<R> role_;
  cluster::Handler handler_;
};

// A factory for RoleHost::start; `make(context)` makes the role.
template <class R, class Make>
cluster::RoleHost::Factory factory_of(Make make) {
  auto shared = std::make_shared<Make>(std::move(make));
  return
      [shared](
          const cluster::RoleServices& services) -> core::Result<std::unique_ptr<cluster::Role>> {
        std::shared_ptr<R> role = (*shared)(context_of(services));
        return std::unique_ptr<cluster::Role>(
            std::make_unique<RoleAdapter<R>>(std::move(role), services.transport->identity().self));
      };
}

}  // namespace troupe::actors

// The host is made and started on an io thread of the guest.
#include "apps/session/node/guest_role.hpp"

#include <utility>

namespace troupe::app {

core::Result<void> GuestRole::start(const NodeGuest& guest, cluster::RoleHost::Factory factory) {
  core::Result<void> started;
  guest.io->run(start_there(guest, std::move(factory), &started));
  return started;
}

void GuestRole::stop(const NodeGuest& guest) {
  if (host_) guest.io->run(stop_there());
  host_.reset();
}

async::task<void> GuestRole::start_there(NodeGuest guest,
                                         cluster::RoleHost::Factory factory,
                                         core::Result<void>* out) {
  const cluster::Identity identity{name_, core::RunId{guest.run_id}, guest.epoch};
  auto endpoint = guest.exchange->join(identity, guest.io->make_strand());
  if (!endpoint) {
    *out = endpoint.failure();
    co_return;
  }
  host_ = std::make_unique<cluster::RoleHost>(std::move(*endpoint), cluster::RoleHost::Hooks{},
                                              device_);
  *out = co_await host_->start(std::move(factory));
}

}  // namespace troupe::app

#include "apps/session/node/guest_role.hpp"

#include <utility>

namespace troupe::app {

core::Result<void> GuestRole::start(const NodeGuest& guest, cluster::RoleHost::Factory factory) {
  const cluster::Identity identity{name_, core::RunId{guest.run_id}, guest.epoch};
  cluster::RoleRecipe recipe{std::move(factory), device_};
  auto place = guest.exchange->join(identity, guest.io->make_strand());
  TROUPE_TRY_SET(host_, guest.io->run(cluster::host_role(std::move(place), std::move(recipe), {})));
  return {};
}

void GuestRole::stop(const NodeGuest& guest) {
  if (host_) guest.io->run(host_->stop());
  host_.reset();
}

}  // namespace troupe::app

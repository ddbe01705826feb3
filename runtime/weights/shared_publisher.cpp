#include "runtime/weights/shared_publisher.hpp"

#include "runtime/core/check.hpp"
#include "runtime/core/secret.hpp"

#include <unistd.h>

namespace troupe::weights {
namespace {

constexpr const char* kTcpHost = "127.0.0.1";

}  // namespace

core::Result<std::unique_ptr<SharedWeightPublisher>> SharedWeightPublisher::create(
    PublisherOptions options, core::TeamRunner& team) {
  WeightLocation location;
  location.host_id = own_host_id();
  location.key = core::random_hex(kKey_chars / 2);
  WeightServer::Listeners listeners;
  if (options.memory) {
    location.socket = "@troupe-weights-" + std::to_string(::getpid()) + "-" +
                      std::to_string(random_id() % 1'000'000);
    TROUPE_TRY_SET(listeners.unix_listener, net::listen_unix(location.socket));
  }
  if (options.tcp) {
    location.tcp_host = kTcpHost;
    TROUPE_TRY_SET(listeners.tcp_listener, net::listen_tcp(kTcpHost, location.tcp_port));
  }
  return std::unique_ptr<SharedWeightPublisher>(
      new SharedWeightPublisher(std::move(location), std::move(listeners), team));
}

SharedWeightPublisher::SharedWeightPublisher(WeightLocation location,
                                             WeightServer::Listeners listeners,
                                             core::TeamRunner& team)
    : location_(std::move(location)),
      team_(team),
      device_(!team.memory().shared_name().empty()),
      server_(std::move(listeners), location_.key, pool_, device_pool_) {}

core::Result<WeightLocation> SharedWeightPublisher::take(const Offer& offer) {
  TROUPE_CHECK(offer.master != nullptr, "an offer without weights");
  const model::ParamStore& master = *offer.master;
  if (!shape_) shape_.emplace(master.layout());
  TROUPE_CHECK(static_cast<std::uint64_t>(master.size()) == shape_->elements,
               "weights of another model than those published before");
  if (device_) TROUPE_TRY(publish_on_device(master, offer.version));
  TROUPE_TRY_ASSIGN(snapshot, pool_.take([&] { return Snapshot::create(*shape_); }));
  snapshot->fill(team_, master, offer.version);
  pool_.offer(std::move(snapshot));
  return location_;
}

// If the driver cannot share device memory (in some containers), host memory and TCP remain.
core::Result<void> SharedWeightPublisher::publish_on_device(const model::ParamStore& master,
                                                            core::Version version) {
  auto snapshot =
      device_pool_.take([&] { return DeviceSnapshot::create(*shape_, team_.memory()); });
  if (!snapshot && snapshot.error().code == core::ErrorCode::kUnsupported) {
    device_ = false;
    return {};
  }
  if (!snapshot) return snapshot.failure();
  (*snapshot)->fill(team_, master, version);
  device_pool_.offer(std::move(*snapshot));
  return {};
}

SharedWeightPublisher::Counters SharedWeightPublisher::counters() const {
  return {server_.counters(), pool_.size(), pool_.most(), pool_.made(), device_pool_.made()};
}

}  // namespace troupe::weights

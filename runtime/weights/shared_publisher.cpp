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
  const std::string secret = core::random_hex(kSecret_chars / 2);
  TROUPE_TRY_ASSIGN(signing_key, net::SigningKey::create());
  location.key = secret + signing_key.public_key();
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
      new SharedWeightPublisher(std::move(location), secret, std::move(signing_key),
                                std::move(listeners), image_type(options.image), team));
}

SharedWeightPublisher::SharedWeightPublisher(WeightLocation location,
                                             const std::string& secret,
                                             net::SigningKey signing_key,
                                             WeightServer::Listeners listeners,
                                             kernels::PanelDtype image,
                                             core::TeamRunner& team)
    : location_(std::move(location)),
      signing_key_(std::move(signing_key)),
      image_(image),
      team_(team),
      device_(!team.memory().shared_name().empty()),
      server_(std::move(listeners), secret, shelves_, {.relay = false, .main = image}) {}

core::Result<WeightLocation> SharedWeightPublisher::take(const Offer& offer) {
  TROUPE_CHECK(offer.master != nullptr, "an offer without weights");
  for (std::size_t type = 0; type < ImageShelves::kTypes.size(); ++type) {
    std::atomic<std::uint32_t>& wanted = shelves_.all()[type].wanted;
    if (ImageShelves::kTypes[type] != image_) {
      if (wanted == 0) continue;
      --wanted;
    }
    TROUPE_TRY(publish_as(type, offer));
  }
  server_.look();
  return location_;
}

core::Result<void> SharedWeightPublisher::publish_as(std::size_t type, const Offer& offer) {
  const model::ParamStore& master = *offer.master;
  ImageShelves::Shelf& shelf = shelves_.all()[type];
  std::optional<ImageWriter>& writer = writers_[type];
  if (!writer) writer.emplace(master.spec(), ImageShelves::kTypes[type], team_.memory());
  TROUPE_CHECK(master.size() == writer->flat_size(),
               "weights of another model than those published before");
  // The trainer needs these panels for its next step anyway.
  std::shared_ptr<const model::PackedWeights> panels;
  if (ImageShelves::kTypes[type] == image_ && offer.packed) panels = offer.packed();
  const char* packed = panels != nullptr ? panels->image() : nullptr;
  TROUPE_CHECK(packed == nullptr ||
                   (image_type(panels->dtype()) == image_ && panels->version() == offer.version &&
                    &panels->memory() == &team_.memory()),
               "panels of another type, version or memory than the offer's");
  std::shared_ptr<DeviceSnapshot> on_device;
  if (device_) TROUPE_TRY_SET(on_device, publish_on_device(shelf, *writer, offer, packed));
  if (on_device != nullptr) packed = on_device->image();
  TROUPE_TRY_ASSIGN(snapshot, shelf.pool.take([&] { return Snapshot::create(writer->shape()); }));
  TROUPE_TRY(snapshot->fill(team_, *writer, master, offer.version, signing_key_, packed));
  shelf.pool.offer(std::move(snapshot));
  shelf.device_pool.end_lease(on_device);
  return {};
}

// If the driver cannot share device memory (in some containers), host memory and TCP remain.
core::Result<std::shared_ptr<DeviceSnapshot>> SharedWeightPublisher::publish_on_device(
    ImageShelves::Shelf& shelf, ImageWriter& writer, const Offer& offer, const char* packed) {
  auto snapshot = shelf.device_pool.take(
      [&] { return DeviceSnapshot::create(writer.shape(), team_.memory()); });
  if (!snapshot && snapshot.error().code == core::ErrorCode::kUnsupported) {
    device_ = false;
    return std::shared_ptr<DeviceSnapshot>();
  }
  if (!snapshot) return snapshot.failure();
  (*snapshot)->fill(team_, writer, *offer.master, offer.version, packed);
  std::shared_ptr<DeviceSnapshot> filled = *snapshot;
  shelf.device_pool.offer(std::move(*snapshot));
  return filled;
}

SharedWeightPublisher::Counters SharedWeightPublisher::counters() const {
  Counters all;
  all.server = server_.counters();
  for (const ImageShelves::Shelf& shelf : shelves_.all()) {
    all.snapshots += shelf.pool.size();
    all.snapshots_most += shelf.pool.most();
    all.snapshots_made += shelf.pool.made();
    all.device_snapshots_made += shelf.device_pool.made();
  }
  return all;
}

}  // namespace troupe::weights

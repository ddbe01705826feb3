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
  const std::string host = own_host_id();
  TROUPE_TRY_ASSIGN(signing_key, net::SigningKey::create());
  Parts parts{{}, core::random_hex(kSecret_chars / 2), std::move(signing_key), {}, {}, {}};
  parts.image = image_type(options.image);
  const bool ranks = options.gang != nullptr && options.gang->size() > 1;
  const bool leads = !ranks || options.gang->rank() == 0;
  if (options.memory || !leads) {
    parts.location.socket = "@troupe-weights-" + std::to_string(::getpid()) + "-" +
                            std::to_string(random_id() % 1'000'000);
    TROUPE_TRY_SET(parts.listeners.unix_listener, net::listen_unix(parts.location.socket));
  }
  if (options.tcp && leads) {
    parts.location.tcp_host = kTcpHost;
    TROUPE_TRY_SET(parts.listeners.tcp_listener,
                   net::listen_tcp(kTcpHost, parts.location.tcp_port));
  }
  if (ranks) {
    TROUPE_TRY_ASSIGN(met,
                      SourceGang::meet(*options.gang, {host, parts.location.socket, parts.secret}));
    parts.secret = met.secret();
    if (!met.is_source()) parts.listeners = {};
    parts.gang = std::move(met);
  }
  parts.location.host_id = host;
  parts.location.key = parts.secret + parts.signing_key.public_key();
  return std::unique_ptr<SharedWeightPublisher>(new SharedWeightPublisher(std::move(parts), team));
}

WeightServer::Work SharedWeightPublisher::work_of(const Parts& parts) {
  WeightServer::Work work;
  work.main = parts.image;
  if (!parts.gang) return work;
  work.sources = parts.gang->sockets();
  work.source = parts.gang->share().number;
  return work;
}

SharedWeightPublisher::SharedWeightPublisher(Parts parts, core::TeamRunner& team)
    : location_(parts.location),
      signing_key_(parts.signing_key),
      gang_(parts.gang),
      image_(parts.image),
      team_(team),
      device_(!team.memory().shared_name().empty() && !gang_),
      server_(std::move(parts.listeners), parts.secret, shelves_, work_of(parts)) {}

// One bit for each place of ImageShelves::kTypes.
std::uint32_t SharedWeightPublisher::types_to_make() {
  std::uint32_t types = 0;
  for (std::size_t type = 0; type < ImageShelves::kTypes.size(); ++type) {
    std::atomic<std::uint32_t>& wanted = shelves_.all()[type].wanted;
    const bool main = ImageShelves::kTypes[type] == image_;
    if (!main && wanted == 0) continue;
    if (!main) --wanted;
    types |= 1u << type;
  }
  return types;
}

core::Result<WeightLocation> SharedWeightPublisher::take(const Offer& offer) {
  TROUPE_CHECK(offer.master != nullptr, "an offer without weights");
  std::uint32_t types = types_to_make();
  if (gang_) TROUPE_TRY_SET(types, gang_->number_of_rank_zero(types));
  for (std::size_t type = 0; type < ImageShelves::kTypes.size(); ++type)
    if ((types >> type & 1) != 0) TROUPE_TRY(publish_as(type, offer));
  server_.look();
  return location_;
}

core::Result<void> SharedWeightPublisher::all_well(const core::Result<void>& own) {
  return gang_ ? gang_->all_well(own) : own;
}

// The panels with which the trainer takes its next step, if they are of this type.
std::shared_ptr<const model::PackedWeights> SharedWeightPublisher::panels_for(std::size_t type,
                                                                              const Offer& offer) {
  if (ImageShelves::kTypes[type] != image_ || !offer.packed || offer.each_part) return nullptr;
  auto panels = offer.packed();
  TROUPE_CHECK(panels == nullptr ||
                   (image_type(panels->dtype()) == image_ && panels->version() == offer.version &&
                    &panels->memory() == &team_.memory()),
               "panels of another type, version or memory than the offer's");
  return panels;
}

core::Result<void> SharedWeightPublisher::write(ImageWriter& writer,
                                                const Offer& offer,
                                                const char* packed,
                                                char* to,
                                                std::span<std::uint32_t> table) {
  if (!offer.each_part) {
    writer.write(team_, *offer.master, to, table, packed);
    return {};
  }
  TROUPE_TRY(offer.each_part(
      [&](core::Range part, const float* flat) { writer.write_part(team_, flat, part, to); }));
  writer.finish(team_, to, table);
  return {};
}

core::Result<void> SharedWeightPublisher::publish_as(std::size_t type, const Offer& offer) {
  const model::ParamStore& master = *offer.master;
  ImageShelves::Shelf& shelf = shelves_.all()[type];
  std::optional<ImageWriter>& writer = writers_[type];
  if (!writer) {
    writer.emplace(master.spec(), ImageShelves::kTypes[type], team_.memory(),
                   gang_ ? gang_->share() : Share{});
  }
  TROUPE_CHECK(master.size() == writer->flat_size(),
               "weights of another model than those published before");
  const auto panels = panels_for(type, offer);
  const char* packed = panels != nullptr ? panels->image() : nullptr;
  std::shared_ptr<DeviceSnapshot> on_device;
  std::shared_ptr<Snapshot> snapshot;
  const auto prepare = [&]() -> core::Result<void> {
    if (device_) TROUPE_TRY_SET(on_device, publish_on_device(shelf, *writer, offer, packed));
    if (gang_ && !gang_->is_source()) return {};
    TROUPE_TRY_SET(snapshot, shelf.pool.take([&] {
      return Snapshot::create(writer->shape(), writer->share());
    }));
    return {};
  };
  TROUPE_TRY(all_well(prepare()));
  if (on_device != nullptr) packed = on_device->image();
  std::vector<std::uint32_t> table(writer->shape().buckets);
  TROUPE_TRY(write(*writer, offer, packed, snapshot ? snapshot->buckets() : nullptr, table));
  const SnapshotShape& shape = writer->shape();
  auto head = gang_ ? gang_->sign(shape, offer.version, table, signing_key_)
                    : make_head(shape, offer.version, table, signing_key_);
  if (!head) return head.failure();
  shelf.device_pool.end_lease(on_device);
  if (snapshot == nullptr) return {};
  snapshot->begin(*head, table);
  snapshot->set_ready(shape.buckets);
  shelf.pool.offer(std::move(snapshot));
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

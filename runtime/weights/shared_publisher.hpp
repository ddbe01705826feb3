// The trainer's side of the weight channel between processes. `publish` copies the panels with
// which the trainer computes, or packs the master weights if they are kept otherwise, with all
// members of the trainer's team, into the image of a snapshot that other processes can map or
// receive by TCP, signs its checksums, and returns. A server thread hands the newest snapshot to
// any receiver that sends the key, or sends it to a receiver that has one. Owned by the policy's
// node; `publish` runs on its device thread.
//
// Each rank of a trainer has a publisher, and all publish together (source_gang.hpp): each writes
// and serves its share of the image, in host memory alone, and a version is offered when all shares
// are written. The location is that of rank 0.
//
// Memory: two images, or shares of them, and a third while receivers read older versions; as much
// again on the device of a trainer that is alone, if processes can share that; and again for
// another storage type, as long as receivers ask for it. When all three are in use, `publish` takes
// the oldest back from its receivers, which ask again; it waits for no receiver longer than
// kWeightReuse.
#pragma once

#include "runtime/weights/image_writer.hpp"
#include "runtime/weights/source_gang.hpp"
#include "runtime/weights/weight_channel.hpp"
#include "runtime/weights/weight_server.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string>

namespace troupe::weights {

struct PublisherOptions {
  // The storage type of the run's engines: each version is packed as this.
  kernels::PanelDtype image = kernels::PanelDtype::kF32;
  // Serve processes of this host by shared memory, and from the trainer's GPU if they can share it.
  // Those processes connect to an abstract Unix socket, which accepts only processes of this user.
  bool memory = true;
  bool tcp = true;  // serve by TCP too, on a free port of the loopback interface
  // The ranks of the trainer, connected; null: it is alone. They outlive the publisher, and are
  // used by `create` and `publish`, which all ranks call in the same order.
  collective::Collectives* gang = nullptr;
};

class SharedWeightPublisher final : public WeightPublisher {
 public:
  // Errors: kResources (a socket cannot be opened), those of the gang.
  static core::Result<std::unique_ptr<SharedWeightPublisher>> create(PublisherOptions options,
                                                                     core::TeamRunner& team);

  struct Counters {
    ServerCounters server;
    std::uint64_t snapshots = 0;       // in host memory now
    std::uint64_t snapshots_most = 0;  // in host memory, at any time so far
    std::uint64_t snapshots_made = 0;  // in host memory, ever
    std::uint64_t device_snapshots_made = 0;
  };
  Counters counters() const;

 private:
  struct Parts {
    WeightLocation location;
    std::string secret;
    net::SigningKey signing_key;
    WeightServer::Listeners listeners;
    std::optional<SourceGang> gang;
    kernels::PanelDtype image = kernels::PanelDtype::kF32;
  };
  SharedWeightPublisher(Parts parts, core::TeamRunner& team);
  static WeightServer::Work work_of(const Parts& parts);
  core::Result<WeightLocation> take(const Offer& offer) override;
  std::uint32_t types_to_make();
  core::Result<void> publish_as(std::size_t type, const Offer& offer);
  std::shared_ptr<const model::PackedWeights> panels_for(std::size_t type, const Offer& offer);
  core::Result<std::shared_ptr<DeviceSnapshot>> publish_on_device(ImageShelves::Shelf& shelf,
                                                                  ImageWriter& writer,
                                                                  const Offer& offer,
                                                                  const char* packed);
  // Returns `own` or, in a gang, the first error of any rank.
  core::Result<void> all_well(const core::Result<void>& own);
  core::Result<void> write(ImageWriter& writer,
                           const Offer& offer,
                           const char* packed,
                           char* to,
                           std::span<std::uint32_t> table);

  const WeightLocation location_;
  const net::SigningKey signing_key_;
  std::optional<SourceGang> gang_;
  const kernels::PanelDtype image_;
  core::TeamRunner& team_;
  std::array<std::optional<ImageWriter>, ImageShelves::kTypes.size()> writers_;
  ImageShelves shelves_;
  bool device_;          // the device's memory can be shared, and has the whole image
  WeightServer server_;  // last, so that it ends before the shelves that it reads
};

}  // namespace troupe::weights

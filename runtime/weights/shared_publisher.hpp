// The trainer's side of the weight channel between processes. `publish` copies the panels with
// which the trainer computes, or packs the master weights if they are kept otherwise, with all
// members of the trainer's team, into the image of a snapshot that other processes can map or
// receive by TCP, signs its checksums, and returns. A server thread hands the newest snapshot to
// any receiver that sends the key, or sends it to a receiver that has one. Owned by the policy's
// node; `publish` runs on its device thread. Memory: two images, and a third while receivers read
// older versions; as much again on the trainer's device, if processes can share that; and again for
// another storage type, as long as receivers ask for it. When all three are in use, `publish` takes
// the oldest back from its receivers, which ask again; it waits for no receiver longer than
// kWeightReuse.
#pragma once

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
  // They connect to an abstract Unix socket, which accepts only processes of this user.
  bool memory = true;
  bool tcp = true;  // serve by TCP too, on a free port of the loopback interface
};

class SharedWeightPublisher final : public WeightPublisher {
 public:
  // Error kResources: a socket cannot be opened.
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
  SharedWeightPublisher(WeightLocation location,
                        const std::string& secret,
                        net::SigningKey signing_key,
                        WeightServer::Listeners listeners,
                        kernels::PanelDtype image,
                        core::TeamRunner& team);
  core::Result<WeightLocation> take(const Offer& offer) override;
  core::Result<void> publish_as(std::size_t type, const Offer& offer);
  core::Result<std::shared_ptr<DeviceSnapshot>> publish_on_device(ImageShelves::Shelf& shelf,
                                                                  ImageWriter& writer,
                                                                  const Offer& offer,
                                                                  const char* packed);

  const WeightLocation location_;
  const net::SigningKey signing_key_;
  const kernels::PanelDtype image_;
  core::TeamRunner& team_;
  std::array<std::optional<ImageWriter>, ImageShelves::kTypes.size()> writers_;
  ImageShelves shelves_;
  bool device_;          // the device's memory can be shared
  WeightServer server_;  // last, so that it ends before the shelves that it reads
};

}  // namespace troupe::weights

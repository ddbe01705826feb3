// The trainer's side of the weight channel between processes. `publish` copies the master weights
// into a snapshot that other processes can map or receive by TCP, with all members of the trainer's
// team, and returns; its server thread hands the newest snapshot to any receiver that sends the
// key. Owned by the policy's node; `publish` on its device thread. Memory: two snapshots of the
// model in f32, one more for each receiver that still reads an older version; as much again on the
// trainer's device, when it has one that processes can share.
#pragma once

#include "runtime/weights/weight_channel.hpp"
#include "runtime/weights/weight_server.hpp"

#include <memory>
#include <optional>
#include <string>

namespace troupe::weights {

struct PublisherOptions {
  // Serve processes of this host by shared memory, and from the trainer's GPU where it has one that
  // they can share. They come by an abstract Unix socket and are checked to be of this user.
  bool memory = true;
  bool tcp = true;  // serve others by TCP: a free port of the loopback interface
};

class SharedWeightPublisher final : public WeightPublisher {
 public:
  // Error kResources: no socket.
  static core::Result<std::unique_ptr<SharedWeightPublisher>> create(PublisherOptions options,
                                                                     core::TeamRunner& team);

  struct Counters {
    ServerCounters server;
    std::uint64_t snapshots = 0;       // in memory now
    std::uint64_t snapshots_made = 0;  // ever
    std::uint64_t device_snapshots_made = 0;
  };
  Counters counters() const;

 private:
  SharedWeightPublisher(WeightLocation location,
                        WeightServer::Listeners listeners,
                        core::TeamRunner& team);
  core::Result<WeightLocation> take(const Offer& offer) override;
  core::Result<void> publish_on_device(const model::ParamStore& master, core::Version version);

  const WeightLocation location_;
  core::TeamRunner& team_;
  std::optional<SnapshotShape> shape_;  // of the first offer
  SnapshotPool pool_;
  DeviceSnapshotPool device_pool_;
  bool device_;          // the device's memory can be shared
  WeightServer server_;  // ends before the pools
};

}  // namespace troupe::weights

// The trainer's side of the weight channel between processes. `publish` copies the master weights into
// a snapshot that other processes can map or receive by TCP, with all members of the trainer's team,
// and returns; a server thread of its own hands the newest snapshot to whoever comes with the key.
// Owned by the policy's node; `publish` on its device thread. Memory: two snapshots of the model in f32,
// one more for each receiver that still reads an older version; as much again on the trainer's device,
// when it has one that processes can share.
#pragma once

#include "runtime/weights/weight_channel.hpp"
#include "runtime/weights/weight_server.hpp"

#include <memory>
#include <optional>
#include <string>

namespace troupe::weights {

struct PublisherOptions {
  // Folder of mode 0700 for the Unix socket; empty: an abstract socket, whose peers are checked to be
  // of this user.
  std::string socket_folder;
  // A trainer on a GPU: processes of this host read the weights where they lie on that GPU.
  bool device = true;
  bool memory = true;                   // serve processes of this host by shared memory
  bool tcp = true;                      // serve others by TCP
  std::string tcp_host = "127.0.0.1";   // address to bind
  std::uint32_t tcp_port = 0;           // 0: any free one
  std::string tcp_advertised;           // what receivers are told; empty: tcp_host
  std::string host_id = own_host_id();
};

class SharedWeightPublisher final : public WeightPublisher {
 public:
  // Errors: kConfig (folder, address), kResources.
  static core::Result<std::unique_ptr<SharedWeightPublisher>> create(PublisherOptions options,
                                                                     core::TeamRunner& team);
  ~SharedWeightPublisher() override;

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
                        core::TeamRunner& team,
                        bool device);
  core::Result<WeightLocation> take(const Offer& offer) override;
  core::Result<void> publish_on_device(const model::ParamStore& master, core::Version version);

  const WeightLocation location_;
  core::TeamRunner& team_;
  std::optional<SnapshotShape> shape_;    // of the first offer
  SnapshotPool pool_;
  DeviceSnapshotPool device_pool_;
  bool device_ = false;  // the device's memory can be shared
  std::optional<WeightServer> server_;    // ends before the pools
};

}  // namespace troupe::weights

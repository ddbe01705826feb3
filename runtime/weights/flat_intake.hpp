// Packs the weights of a snapshot into panels, in slices between an engine's steps. First checks
// the buckets' checksums, unless that was done on arrival or is not needed; `take` returns the
// panels only if every check passed and the snapshot was not taken back meanwhile. Made by a
// subscriber, used by the engine's thread.
#pragma once

#include "runtime/model/weight_packer.hpp"
#include "runtime/net/socket.hpp"
#include "runtime/weights/push_protocol.hpp"
#include "runtime/weights/shadow_pool.hpp"
#include "runtime/weights/weight_channel.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

namespace troupe::weights {

// Weights in the order of ParamLayout, and the owners that keep their memory alive and unchanged.
struct FlatWeights {
  core::Version version = 0;
  SnapshotShape shape;
  std::vector<std::uint32_t> table;  // CRC-32C of each bucket
  const float* data = nullptr;
  bool on_device = false;             // `data` lies in the memory of the engine's team
  net::OwnedFd lease;                 // a connection: until a byte comes nobody writes `data`
  std::shared_ptr<const void> owner;  // of `data`; goes before the lease
  bool verified = false;              // every bucket was checked, or needs no check
};

// True when the publisher has taken the memory behind this lease back. It sends a byte before it
// writes the memory again, so a reader that finds none after reading has read one version. If the
// publisher is gone, nobody writes.
bool is_taken_back(const net::OwnedFd& lease);
// The kPeerLost error for that.
core::Failure taken_back(core::Version version);

class FlatIntake final : public WeightIntake {
 public:
  // Takes panels from `shadows`: on the host in the constructor, so that the engine does not wait
  // for fresh memory; on a device in `advance`, on the engine's thread, which owns the device.
  FlatIntake(FlatWeights flat, std::shared_ptr<ShadowPool> shadows);

  core::Version version() const override { return flat_.version; }
  bool verified() const override { return flat_.verified; }
  core::Result<bool> advance(core::TeamRunner& team, core::Duration budget) override;
  std::shared_ptr<const model::PackedWeights> take() override;

 private:
  core::Result<bool> pack(core::TeamRunner& team, core::Duration budget);
  core::Result<bool> verify(core::TeamRunner& team, core::TimePoint end);
  void take_shadow();

  FlatWeights flat_;
  std::shared_ptr<ShadowPool> shadows_;
  std::shared_ptr<model::PackedWeights> shadow_;
  std::optional<model::WeightPacker> packer_;
  std::atomic<std::uint32_t> next_bucket_{0};
  std::atomic<std::uint32_t> wrong_bucket_;
};

}  // namespace troupe::weights

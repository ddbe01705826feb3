// Packs weights that lie flat in memory into panels, in slices between an engine's steps. Checks
// the buckets' checksums first unless the receiver did so on arrival; `take` returns the panels
// only if every check passed. Made by a subscriber, used by the engine's thread.
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

// Flat weights and the owners that keep their memory alive.
struct FlatWeights {
  core::Version version = 0;
  SnapshotShape shape;
  std::vector<std::uint32_t> table;
  const float* data = nullptr;
  bool on_device = false;             // `data` lies in the memory of the engine's team
  std::shared_ptr<const void> owner;  // of `data`
  net::OwnedFd lease;                 // a connection: while it is open nobody writes `data`
  bool verified = false;
};

class FlatIntake final : public WeightIntake {
 public:
  // Takes panels from `shadows`: on the host at once, so that the engine does not wait for fresh
  // memory; on a device later, on the engine's thread, which owns the device.
  FlatIntake(FlatWeights flat, std::shared_ptr<ShadowPool> shadows);

  core::Version version() const override { return flat_.version; }
  bool verified() const override { return flat_.verified; }
  core::Result<bool> advance(core::TeamRunner& team, core::Duration budget) override;
  std::shared_ptr<const model::PackedWeights> take() override;

 private:
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

// Copies the image of a snapshot into an engine's panels, in slices between the engine's steps, and
// checks each bucket's checksum in the same pass, unless that was done on arrival or is not needed.
// `take` returns the panels only if every check passed and the snapshot was not taken back
// meanwhile. Made by a subscriber, used by the engine's thread.
#pragma once

#include "runtime/net/socket.hpp"
#include "runtime/weights/push_protocol.hpp"
#include "runtime/weights/shadow_pool.hpp"
#include "runtime/weights/weight_channel.hpp"

#include <atomic>
#include <memory>
#include <vector>

namespace troupe::weights {

// The image of one version, and the owners that keep its memory alive and unchanged.
struct ArrivedImage {
  // The share of one source: part i has the buckets of Share{i, parts}.
  struct Part {
    const char* data = nullptr;
    net::OwnedFd lease;                 // a connection: until a byte comes nothing writes `data`
    std::shared_ptr<const void> owner;  // of `data`; goes before the lease
  };
  core::Version version = 0;
  SnapshotShape shape;
  std::vector<std::uint32_t> table;  // CRC-32C of each bucket
  std::vector<Part> parts;
  bool on_device = false;  // the one part lies in the memory of the engine's team
  bool verified = false;   // every bucket was checked, or needs no check

  std::span<const char> bucket(std::uint32_t index) const;
  // Whether the publisher has taken any of the memory back.
  bool is_taken_back() const;
  void let_go();  // of owners and leases
};

// True when the publisher has taken the memory behind this lease back. It sends a byte before it
// writes the memory again, so a reader that finds none after reading has read one version. If the
// publisher is gone, nothing writes.
bool is_taken_back(const net::OwnedFd& lease);
// The kPeerLost error for that.
core::Failure taken_back(core::Version version);

class ImageIntake final : public WeightIntake {
 public:
  // Takes panels from `shadows`: on the host in the constructor, so that the engine does not wait
  // for fresh memory; on a device in `advance`, on the engine's thread, which owns the device.
  ImageIntake(ArrivedImage image, std::shared_ptr<ShadowPool> shadows);

  core::Version version() const override { return image_.version; }
  bool verified() const override { return image_.verified; }
  // A slice takes at least one bucket for each member, and no further one that would not fit into
  // the budget if it took as long as the slowest so far.
  core::Result<bool> advance(core::TeamRunner& team, core::Duration budget) override;
  std::shared_ptr<const model::PackedWeights> take() override;

 private:
  core::Result<bool> copy(core::TeamRunner& team, core::Duration budget);
  void copy_bucket(std::uint32_t index);

  ArrivedImage image_;
  std::shared_ptr<ShadowPool> shadows_;
  std::shared_ptr<model::PackedWeights> shadow_;
  std::atomic<std::uint32_t> next_bucket_{0};
  std::atomic<std::uint32_t> wrong_bucket_;
  bool done_ = false;
};

}  // namespace troupe::weights

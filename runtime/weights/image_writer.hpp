// Writes the image of a model's parameters into host memory, and the CRC-32C of each bucket in the
// same pass: a member of the team takes a bucket and copies it from panels that exist already, or
// else packs the units that lie in it into its scratch, and copies them from there past the caches.
// On a device the image is packed there first, if there are no panels, and downloaded. One for each
// storage type of a publisher, used on its device thread. Memory: a unit for each member, and on a
// device one image, unless the caller has packed it there already.
//
// A bucket depends on no other, so several ranks of a trainer could each write the buckets of the
// parameters that they own.
#pragma once

#include "runtime/core/team.hpp"
#include "runtime/model/pack_plan.hpp"
#include "runtime/weights/push_protocol.hpp"

#include <span>
#include <vector>

namespace troupe::weights {

class ImageWriter {
 public:
  // `memory`: that of the trainer's team.
  ImageWriter(const model::ModelSpec& spec,
              kernels::PanelDtype dtype,
              core::Memory& memory = core::host_memory(),
              std::uint64_t bucket_bytes = kBucket_bytes);

  const SnapshotShape& shape() const { return shape_; }
  // Elements of the parameters that it packs.
  std::int64_t flat_size() const { return plan_.flat_size(); }

  // Writes `image` (host, 64-byte aligned, zero where no weight lies) and `table`. `packed`: the
  // same image in this writer's memory; null: packs it. `weights` are in this writer's memory
  // or on the host.
  void write(core::TeamRunner& team,
             const model::ParamStore& weights,
             char* image,
             std::span<std::uint32_t> table,
             const char* packed = nullptr);
  // Packs `weights`, which may be on the host, into `image` in the device's memory; enqueues only.
  void pack(core::TeamRunner& team, const model::ParamStore& weights, char* image);

 private:
  const char* packed_on_device(core::TeamRunner& team, const model::ParamStore& weights);
  std::uint32_t write_bucket(std::uint32_t index, const float* flat, char* image, char* scratch);
  void write_scaled(core::TeamRunner& team, const float* flat, char* image);
  void reserve_scratch(int members);

  model::PackPlan plan_;
  SnapshotShape shape_;
  std::vector<core::Buffer<char>> scratch_;  // one for each member
  core::Buffer<char> on_device_;
};

}  // namespace troupe::weights

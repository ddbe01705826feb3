// Writes the image of a model's parameters into host memory, or one source's share of its buckets,
// and the CRC-32C of each bucket. From panels that exist already a member of the team copies a
// bucket and computes its checksum in the same pass. Without them it packs the units that lie in a
// bucket into its scratch, and copies them from there past the caches. Weights that come part by
// part are packed as they come, and checksums follow when all are there. On a device the image is
// packed there first, if there are no panels, and downloaded. One for each storage type of a
// publisher, used on its device thread. Memory: a unit for each member, and on a device one image,
// unless the caller has packed it there already.
#pragma once

#include "runtime/core/range.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/pack_plan.hpp"
#include "runtime/weights/push_protocol.hpp"

#include <functional>
#include <span>
#include <vector>

namespace troupe::weights {

class ImageWriter {
 public:
  // `memory`: that of the trainer's team.
  ImageWriter(const model::ModelSpec& spec,
              kernels::PanelDtype dtype,
              core::Memory& memory = core::host_memory(),
              Share share = {},
              std::uint64_t bucket_bytes = kBucket_bytes);

  const SnapshotShape& shape() const { return shape_; }
  Share share() const { return share_; }
  // Elements of the parameters that it packs.
  std::int64_t flat_size() const { return plan_.flat_size(); }

  // Writes the share's buckets at `to` (host, 64-byte aligned, zero where no weight lies), one
  // behind another, and their checksums into `table`, which has a place for each bucket of the
  // image. `packed`: the image in this writer's memory; null: packs it. `weights` are in this
  // writer's memory or on the host.
  void write(core::TeamRunner& team,
             const model::ParamStore& weights,
             char* to,
             std::span<std::uint32_t> table,
             const char* packed = nullptr);

  // Writes weights that come part by part, each once, in whole tensors: `part` of the
  // parameters lies at `flat + part.begin`, in this writer's memory. After the last one, `finish`.
  void write_part(core::TeamRunner& team, const float* flat, core::Range part, char* to);
  void finish(core::TeamRunner& team, char* to, std::span<std::uint32_t> table);

  // Packs `weights`, which may be on the host, into `image` in the device's memory; enqueues only.
  void pack(core::TeamRunner& team, const model::ParamStore& weights, char* image);

 private:
  // Runs `job` for each of the share's buckets, on any member.
  using BucketJob = std::function<void(core::Team member, std::uint32_t bucket)>;
  void each_bucket(core::TeamRunner& team, const BucketJob& job) const;
  char* place_of(std::uint32_t bucket, char* to) const;
  void copy_packed(core::TeamRunner& team, const char* packed, char* to, std::span<std::uint32_t>);
  std::uint32_t write_bucket(std::uint32_t index, const float* flat, char* to, char* scratch);
  bool has_any_of(model::PackPlan::Place place) const;
  void copy_own(model::PackPlan::Place place, const char* from, char* to) const;
  void reserve_scratch(int members);
  void reserve_on_device();

  model::PackPlan plan_;
  SnapshotShape shape_;
  const Share share_;
  std::int64_t unit_bytes_ = 0, scales_bytes_ = 0;  // of the largest unit
  std::vector<core::Buffer<char>> scratch_;         // one for each member
  core::Buffer<char> on_device_;
};

}  // namespace troupe::weights

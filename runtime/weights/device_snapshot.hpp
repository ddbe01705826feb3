// One version of the weights in GPU memory that other processes of the host can open: f32, in the
// order of ParamLayout, without head and checksums, since receivers read it in place. Allocated
// once, and filled again for later versions while nobody else holds it. The publisher's device
// thread writes it; its server thread reads the device's name and the handle.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/team.hpp"
#include "runtime/weights/push_protocol.hpp"

#include <memory>
#include <string>

namespace troupe::weights {

class DeviceSnapshot {
 public:
  // A receiver whose lease was taken back may still have the memory open: what was made stays.
  static constexpr bool kSparesStay = true;
  // Errors: kUnsupported (this memory cannot be shared), kResources (no room on the device).
  static core::Result<std::shared_ptr<DeviceSnapshot>> create(const SnapshotShape& shape,
                                                              core::Memory& memory);
  // Copies `weights`, which lie on the same device; returns when the copy is complete.
  void fill(core::TeamRunner& team, const model::ParamStore& weights, core::Version version);

  core::Version version() const { return version_; }
  std::uint64_t id() const { return id_; }
  const SnapshotShape& shape() const { return shape_; }
  const std::string& device() const { return device_; }  // core::Memory::shared_name
  const core::Memory::SharedHandle& handle() const { return handle_; }

 private:
  DeviceSnapshot(const SnapshotShape& shape, core::Buffer<float> data, std::string device);

  const SnapshotShape shape_;
  const std::uint64_t id_;
  core::Buffer<float> data_;
  const std::string device_;
  core::Memory::SharedHandle handle_{};
  core::Version version_ = 0;
};

}  // namespace troupe::weights

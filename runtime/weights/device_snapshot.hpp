// One version of the weights in GPU memory that other processes of the host can open: their image,
// without head and checksums, since receivers copy it on the device. Allocated
// once, and filled again for later versions while nobody else holds it. The publisher's device
// thread writes it; its server thread reads the device's name and the handle.
#pragma once

#include "runtime/core/buffer.hpp"
#include "runtime/core/team.hpp"
#include "runtime/weights/image_writer.hpp"

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
  // Packs `weights`, which lie on the same device, or copies their image `packed` there; returns
  // when the image is complete.
  void fill(core::TeamRunner& team,
            ImageWriter& writer,
            const model::ParamStore& weights,
            core::Version version,
            const char* packed = nullptr);
  const char* image() const { return data_.data(); }

  core::Version version() const { return version_; }
  std::uint64_t id() const { return id_; }
  const SnapshotShape& shape() const { return shape_; }
  const std::string& device() const { return device_; }  // core::Memory::shared_name
  const core::Memory::SharedHandle& handle() const { return handle_; }

 private:
  DeviceSnapshot(const SnapshotShape& shape, core::Buffer<char> data, std::string device);

  const SnapshotShape shape_;
  const std::uint64_t id_;
  core::Buffer<char> data_;
  const std::string device_;
  core::Memory::SharedHandle handle_{};
  core::Version version_ = 0;
};

}  // namespace troupe::weights

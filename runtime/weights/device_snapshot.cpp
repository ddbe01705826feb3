#include "runtime/weights/device_snapshot.hpp"

#include "runtime/core/check.hpp"

#include <algorithm>

namespace troupe::weights {

core::Result<std::shared_ptr<DeviceSnapshot>> DeviceSnapshot::create(const SnapshotShape& shape,
                                                                     core::Memory& memory) {
  const std::string device = memory.shared_name();
  if (device.empty()) {
    return core::fail(core::ErrorCode::kUnsupported, "other processes cannot open this memory");
  }
  // The driver puts smaller blocks with others in one allocation, and sharing one would share its
  // neighbours too.
  const std::uint64_t room =
      std::max<std::uint64_t>(shape.image_bytes, core::Memory::kShared_bytes);
  try {
    core::Buffer<char> data(static_cast<std::int64_t>(room), memory);
    std::shared_ptr<DeviceSnapshot> snapshot(new DeviceSnapshot(shape, std::move(data), device));
    if (memory.share(snapshot->data_.data(), snapshot->handle_)) return snapshot;
  } catch (const core::OutOfMemory& error) {
    return core::fail(core::ErrorCode::kResources,
                      std::string("a snapshot of the weights: ") + error.what());
  }
  return core::fail(core::ErrorCode::kUnsupported,
                    device + " does not let other processes open its memory");
}

DeviceSnapshot::DeviceSnapshot(const SnapshotShape& shape,
                               core::Buffer<char> data,
                               std::string device)
    : shape_(shape), id_(random_id()), data_(std::move(data)), device_(std::move(device)) {}

void DeviceSnapshot::fill(core::TeamRunner& team,
                          ImageWriter& writer,
                          const model::ParamStore& weights,
                          core::Version version,
                          const char* packed) {
  TROUPE_CHECK(&weights.memory() == &data_.memory() || weights.memory().on_host(),
               "weights of another memory");
  core::Memory& memory = data_.memory();
  if (packed == nullptr) {
    writer.pack(team, weights, data_.data());
  } else {
    team.run([&](core::Team) { memory.copy(data_.data(), packed, shape_.image_bytes); });
  }
  memory.wait();
  version_ = version;
}

}  // namespace troupe::weights

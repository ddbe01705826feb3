// The snapshots of one publisher or relay by the storage type of their images: those of f32, bf16
// and int8 panels each have their pools. A publisher fills the type of its run with every version,
// and another one while receivers ask for it. The server's thread asks and leases; the publisher's
// fills.
#pragma once

#include "runtime/weights/push_protocol.hpp"
#include "runtime/weights/snapshot_pool.hpp"

#include <array>
#include <atomic>
#include <cstdint>

namespace troupe::weights {

class ImageShelves {
 public:
  struct Shelf {
    explicit Shelf(bool may_exceed) : pool(may_exceed) {}
    SnapshotPool pool;
    DeviceSnapshotPool device_pool;
    // Publications for which this image is still made, counted down by the publisher.
    std::atomic<std::uint32_t> wanted{0};
  };
  static constexpr std::array<kernels::PanelDtype, 3> kTypes = {
      kernels::PanelDtype::kF32, kernels::PanelDtype::kBf16, kernels::PanelDtype::kInt8};

  // `may_exceed`: of the pools in host memory (LeasePool).
  explicit ImageShelves(bool may_exceed = false)
      : shelves_{Shelf(may_exceed), Shelf(may_exceed), Shelf(may_exceed)} {}

  static bool is_type(kernels::PanelDtype dtype) { return place_of(dtype) < kTypes.size(); }
  Shelf& of(kernels::PanelDtype dtype) { return shelves_[place_of(image_type(dtype))]; }
  std::array<Shelf, kTypes.size()>& all() { return shelves_; }
  const std::array<Shelf, kTypes.size()>& all() const { return shelves_; }

 private:
  static std::size_t place_of(kernels::PanelDtype type) {
    std::size_t place = 0;
    while (place < kTypes.size() && kTypes[place] != type)
      ++place;
    return place;
  }

  std::array<Shelf, kTypes.size()> shelves_;
};

}  // namespace troupe::weights

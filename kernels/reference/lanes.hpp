// A sum or maximum over a row, in the order of all levels: element i goes to virtual lane i mod 16,
// then a fixed tree joins the lanes. A row is padded to a multiple of 16 with the start value. Used
// only by the reference level.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace troupe::kernels::reference {

inline constexpr std::int64_t kLanes = 16;

template <class T>
class LaneSum {
 public:
  T& operator[](std::int64_t i) { return lanes_[static_cast<std::size_t>(i % kLanes)]; }
  T total() {
    for (std::size_t step = 8; step > 0; step /= 2)
      for (std::size_t l = 0; l < step; ++l)
        lanes_[l] = lanes_[l] + lanes_[l + step];
    return lanes_[0];
  }

 private:
  std::array<T, kLanes> lanes_{};
};

// The larger one; the second if neither is larger (so a NaN in x does not enter a maximum).
inline float larger(float x, float y) {
  return x > y ? x : y;
}

class LaneMax {
 public:
  LaneMax() { lanes_.fill(-std::numeric_limits<float>::infinity()); }
  void take(std::int64_t i, float x) {
    float& lane = lanes_[static_cast<std::size_t>(i % kLanes)];
    lane = larger(x, lane);
  }
  float total() {
    for (std::size_t step = 8; step > 0; step /= 2)
      for (std::size_t l = 0; l < step; ++l)
        lanes_[l] = larger(lanes_[l + step], lanes_[l]);
    return lanes_[0];
  }

 private:
  std::array<float, kLanes> lanes_;
};

constexpr std::int64_t round_up_to_lanes(std::int64_t count) {
  return (count + kLanes - 1) / kLanes * kLanes;
}

}  // namespace troupe::kernels::reference

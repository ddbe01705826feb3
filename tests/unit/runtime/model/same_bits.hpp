// Equal to the last bit, where == would take -0 for 0 and no NaN for another.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

namespace troupe::model {

inline bool same_bits(const float* a, const float* b, std::int64_t count) {
  return std::memcmp(a, b, static_cast<std::size_t>(count) * sizeof(float)) == 0;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace troupe::model

// Locates a key or value in the pools, by slot (block * 16 + place) or by position in a segment.
// Also the soft cap of a score. Used only by the reference level.
#pragma once

#include "kernels/scalar.hpp"
#include "kernels/shapes.hpp"

#include <cstdint>

namespace troupe::kernels::reference {

// The scaled score, with the soft cap applied if there is one.
inline float capped(const Attention& a, float score) {
  return a.softcap > 0.0f ? a.softcap * tanh_f32(score / a.softcap) : score;
}

inline std::int64_t k_index(std::int64_t kv_heads,
                            std::int64_t head_dim,
                            std::int64_t slot,
                            std::int64_t head,
                            std::int64_t d) {
  return ((slot / kKvBlock * kv_heads + head) * head_dim + d) * kKvBlock + slot % kKvBlock;
}
inline std::int64_t v_index(std::int64_t kv_heads,
                            std::int64_t head_dim,
                            std::int64_t slot,
                            std::int64_t head,
                            std::int64_t d) {
  return ((slot / kKvBlock * kv_heads + head) * kKvBlock + slot % kKvBlock) * head_dim + d;
}

// The keys and values of one kv head of one segment.
class KvView {
 public:
  KvView(const Attention& a, const Segment& segment, std::int64_t kv_head)
      : a_(a), table_(a.block_table + segment.table), head_(kv_head) {}

  std::int64_t slot(std::int64_t position) const {
    return table_[position / kKvBlock] * kKvBlock + position % kKvBlock;
  }
  std::int64_t k_at(std::int64_t position, std::int64_t d) const {
    return k_index(a_.kv_heads, a_.head_dim, slot(position), head_, d);
  }
  std::int64_t v_at(std::int64_t position, std::int64_t d) const {
    return v_index(a_.kv_heads, a_.head_dim, slot(position), head_, d);
  }
  float k(std::int64_t position, std::int64_t d) const {
    return a_.k_pool.f32()[k_at(position, d)];
  }
  float v(std::int64_t position, std::int64_t d) const {
    return a_.v_pool.f32()[v_at(position, d)];
  }

 private:
  const Attention& a_;
  const std::int32_t* table_;
  std::int64_t head_;
};

}  // namespace troupe::kernels::reference

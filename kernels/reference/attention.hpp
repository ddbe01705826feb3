// Paged attention, one query row and head at a time. The running softmax takes 64 keys at a time,
// counted from position 0; keys before a row's window are skipped. Also the copies between rows and
// KV slots.
#pragma once

#include "kernels/reference/kv.hpp"
#include "kernels/reference/lanes.hpp"
#include "kernels/scalar.hpp"
#include "kernels/shapes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace troupe::kernels::reference {
namespace {

// Merges the keys [begin, end) that a row sees, within the 64 keys from `block` on, into the row's
// running softmax (max, sum, out).
void merge_block(const Attention& a,
                 const KvView& kv,
                 const float* q,
                 std::int64_t block,
                 std::int64_t begin,
                 std::int64_t end,
                 float& max,
                 float& sum,
                 float* out) {
  std::array<float, kAttentionBlock> p{};
  LaneMax block_max;
  for (std::int64_t key = begin; key < end; ++key) {
    float dot = 0.0f;
    for (std::int64_t d = 0; d < a.head_dim; ++d)
      dot = std::fma(q[d], kv.k(key, d), dot);
    const float score = capped(a, dot * a.scale);
    p[static_cast<std::size_t>(key - block)] = score;
    block_max.take(key - block, score);
  }
  const float new_max = larger(block_max.total(), max);
  const float alpha = exp_f32(max - new_max);
  LaneSum<float> block_sum;
  for (std::int64_t i = 0; i < kAttentionBlock; ++i) {  // unseen keys get weight 0
    float& weight = p[static_cast<std::size_t>(i)];
    weight = block + i >= begin && block + i < end ? exp_f32(weight - new_max) : 0.0f;
    block_sum[i] = block_sum[i] + weight;
  }
  sum = std::fma(sum, alpha, block_sum.total());
  for (std::int64_t d = 0; d < a.head_dim; ++d) {
    float value = out[d] * alpha;
    for (std::int64_t key = begin; key < end; ++key)
      value = std::fma(p[static_cast<std::size_t>(key - block)], kv.v(key, d), value);
    out[d] = value;
  }
  max = new_max;
}

void attention_item(const Attention& a, const AttentionItem& item, const AttentionItem*) {
  const Segment& segment = a.segments[item.segment];
  const KvView kv(a, segment, item.kv_head);
  const std::int64_t group = a.heads / a.kv_heads;
  const std::int64_t first_head = item.kv_head * group + item.head_begin;
  const std::int64_t last_head = item.kv_head * group + (item.head_end > 0 ? item.head_end : group);
  for (std::int64_t i = item.row_begin; i < item.row_end; ++i) {
    const std::int64_t row = segment.first_row + i;
    const std::int64_t keys = segment.first_position + i + 1;
    for (std::int64_t head = first_head; head < last_head; ++head) {
      const float* q = a.q + row * a.ldq + head * a.head_dim;
      float* out = a.out + row * a.ldo + head * a.head_dim;
      for (std::int64_t d = 0; d < a.head_dim; ++d)
        out[d] = 0.0f;
      float max = -std::numeric_limits<float>::infinity();
      float sum = 0.0f;
      const std::int64_t seen = first_key(keys, a.window);
      for (std::int64_t block = seen / kAttentionBlock * kAttentionBlock; block < keys;
           block += kAttentionBlock)
        merge_block(a, kv, q, block, std::max(block, seen), std::min(block + kAttentionBlock, keys),
                    max, sum, out);
      const float inverse = 1.0f / sum;
      for (std::int64_t d = 0; d < a.head_dim; ++d)
        out[d] = out[d] * inverse;
      if (a.lse != nullptr) a.lse[row * a.heads + head] = max + log_f32(sum);
    }
  }
}

void kv_write(const KvWrite& w, Range rows) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row)
    for (std::int32_t s = w.slot_begin[row]; s < w.slot_begin[row + 1]; ++s)
      for (std::int64_t head = 0; head < w.kv_heads; ++head)
        for (std::int64_t d = 0; d < w.head_dim; ++d) {
          const std::int64_t column = head * w.head_dim + d;
          w.k_pool.f32()[k_index(w.kv_heads, w.head_dim, w.slots[s], head, d)] =
              w.k[row * w.ldk + column];
          w.v_pool.f32()[v_index(w.kv_heads, w.head_dim, w.slots[s], head, d)] =
              w.v[row * w.ldv + column];
        }
}

void kv_gather(const KvWrite& w, Range rows) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row)
    for (std::int64_t head = 0; head < w.kv_heads; ++head)
      for (std::int64_t d = 0; d < w.head_dim; ++d) {
        float k = 0.0f;
        float v = 0.0f;
        for (std::int32_t s = w.slot_begin[row]; s < w.slot_begin[row + 1]; ++s) {
          k = k + w.k_pool.f32()[k_index(w.kv_heads, w.head_dim, w.slots[s], head, d)];
          v = v + w.v_pool.f32()[v_index(w.kv_heads, w.head_dim, w.slots[s], head, d)];
        }
        w.k[row * w.ldk + head * w.head_dim + d] = k;
        w.v[row * w.ldv + head * w.head_dim + d] = v;
      }
}

}  // namespace
}  // namespace troupe::kernels::reference

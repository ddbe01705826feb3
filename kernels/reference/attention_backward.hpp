// The gradient of attention, one query row and head at a time. The softmax weights are recomputed
// from the stored log-sum-exp, so the order in which the forward pass merged blocks does not
// matter.
#pragma once

#include "kernels/reference/kv.hpp"
#include "kernels/reference/lanes.hpp"
#include "kernels/scalar.hpp"
#include "kernels/shapes.hpp"

#include <cmath>

namespace troupe::kernels::reference {
namespace {

struct QueryHead {
  const float* q;
  const float* out;
  const float* dout;
  float* dq;
  float lse;
};

// Adds the gradients of one query row over one KV block: the 16 keys from `first` on, of which the
// row sees [begin, end). For the other keys zeros are added to dk and dv, because the AVX kernels
// compute all 16 keys of a block at once and the bits must be the same.
void block_gradient(const AttentionBackward& b,
                    const KvView& kv,
                    const QueryHead& row,
                    float delta,
                    std::int64_t first,
                    std::int64_t begin,
                    std::int64_t end) {
  const Attention& a = b.forward;
  for (std::int64_t key = first; key < first + kKvBlock; ++key) {
    float p = 0.0f;
    float ds = 0.0f;
    if (key >= begin && key < end) {
      float dot = 0.0f;
      float dp = 0.0f;
      for (std::int64_t d = 0; d < a.head_dim; ++d) {
        dot = std::fma(row.q[d], kv.k(key, d), dot);
        dp = std::fma(row.dout[d], kv.v(key, d), dp);
      }
      const float score = dot * a.scale;
      ds = dp - delta;
      if (a.softcap > 0.0f) {
        const float t = tanh_f32(score / a.softcap);
        p = exp_f32(a.softcap * t - row.lse);
        ds = ((p * ds) * std::fma(-t, t, 1.0f)) * a.scale;
      } else {
        p = exp_f32(score - row.lse);
        ds = (p * ds) * a.scale;
      }
      for (std::int64_t d = 0; d < a.head_dim; ++d)
        row.dq[d] = std::fma(ds, kv.k(key, d), row.dq[d]);
    }
    for (std::int64_t d = 0; d < a.head_dim; ++d) {
      float& dk = b.dk_pool[kv.k_at(key, d)];
      float& dv = b.dv_pool[kv.v_at(key, d)];
      dk = std::fma(ds, row.q[d], dk);
      dv = std::fma(p, row.dout[d], dv);
    }
  }
}

void attention_gradient(const AttentionBackward& b,
                        std::int64_t segment_index,
                        std::int64_t kv_head) {
  const Attention& a = b.forward;
  const Segment& segment = a.segments[segment_index];
  const KvView kv(a, segment, kv_head);
  const std::int64_t group = a.heads / a.kv_heads;
  for (std::int64_t i = 0; i < segment.rows; ++i) {
    const std::int64_t row = segment.first_row + i;
    const std::int64_t keys = segment.first_position + i + 1;
    for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      const std::int64_t column = head * a.head_dim;
      const QueryHead query{a.q + row * a.ldq + column, a.out + row * a.ldo + column,
                            b.dout + row * b.lddo + column, b.dq + row * b.lddq + column,
                            a.lse[row * a.heads + head]};
      LaneSum<float> delta;
      for (std::int64_t d = 0; d < a.head_dim; ++d)
        delta[d] = std::fma(query.dout[d], query.out[d], delta[d]);
      const float delta_total = delta.total();
      for (std::int64_t d = 0; d < a.head_dim; ++d)
        query.dq[d] = 0.0f;
      const std::int64_t begin = first_key(keys, a.window);
      for (std::int64_t first = begin / kKvBlock * kKvBlock; first < keys; first += kKvBlock)
        block_gradient(b, kv, query, delta_total, first, begin, keys);
    }
  }
}

}  // namespace
}  // namespace troupe::kernels::reference

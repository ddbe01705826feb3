// Attention in splits (docs/adr/0019) straight from its definition, one query at a time on the
// host: what the device is held against. An mma is what kernels/tensor_core.hpp says.
#pragma once

#include "kernels/scalar.hpp"
#include "kernels/tensor_core.hpp"
#include "tests/unit/kernels/attention_case.hpp"

#include <array>
#include <limits>
#include <vector>

namespace troupe::kernels::cuda::test {

inline float rounded(float x) {
  return std::abs(x) < std::numeric_limits<float>::min() ? 0.0f : from_bf16(to_bf16(x));
}

// Rounds a case's queries, keys and values as the device does.
inline void round_case(kernels::test::AttentionCase& c) {
  for (kernels::test::Guarded* numbers : {&c.q, &c.k_pool, &c.v_pool})
    for (std::int64_t i = 0; i < numbers->size(); ++i)
      (*numbers)[i] = rounded((*numbers)[i]);
}

class SplitQuery {
 public:
  std::vector<float> out;
  float lse = 0.0f;

  // The case is rounded.
  SplitQuery(const TensorCore& core,
             const kernels::test::AttentionCase& c,
             const Segment& segment,
             std::int64_t i,
             std::int64_t head)
      : core_(core),
        case_(c),
        segment_(segment),
        kv_head_(head / (c.shape.heads / c.shape.kv_heads)),
        q_(c.q.data() + (segment.first_row + i) * c.ldq() + head * c.shape.head_dim),
        dim_(static_cast<std::size_t>(c.shape.head_dim)),
        end_(segment.first_position + i + 1),
        first_(first_key(end_, c.variant.window)) {
    State all;
    for (std::int64_t split = first_ / kSplitKeys; split <= (end_ - 1) / kSplitKeys; ++split) {
      const State next = split_of(split);
      all = split == first_ / kSplitKeys ? next : merged(all, next);
    }
    for (const float sum : all.out)
      out.push_back(sum * (1.0f / all.sum) + 0.0f);
    lse = all.max + log_f32(all.sum);
  }

 private:
  struct State {
    float max = -std::numeric_limits<float>::infinity(), sum = 0.0f;
    std::vector<float> out;
  };
  static float larger(float x, float y) { return x > y ? x : y; }

  // Continues a chain by 16 products a(i) * b(i) of rounded numbers.
  template <class A, class B>
  float chain(float sum, const A& a, const B& b) const {
    std::array<std::uint16_t, kTensorDepth> left, right;
    for (std::size_t i = 0; i < kTensorDepth; ++i) {
      left[i] = to_bf16(a(static_cast<std::int64_t>(i)));
      right[i] = to_bf16(b(static_cast<std::int64_t>(i)));
    }
    return std::bit_cast<float>(tensor_core_sum(core_, std::bit_cast<std::uint32_t>(sum),
                                                TensorFactors(left), TensorFactors(right)));
  }
  bool seen(std::int64_t key) const { return key >= first_ && key < end_; }

  float score(std::int64_t key) const {
    float dot = 0.0f;
    for (std::int64_t d = 0; d < case_.shape.head_dim; d += 16)
      dot = chain(
          dot, [&](std::int64_t i) { return d + i < case_.shape.head_dim ? q_[d + i] : 0.0f; },
          [&](std::int64_t i) {
            if (d + i >= case_.shape.head_dim) return 0.0f;
            return case_.k_pool[case_.k_at(segment_, key, kv_head_, d + i)];
          });
    const float scaled = dot * (1.0f / std::sqrt(static_cast<float>(case_.shape.head_dim)));
    const float cap = case_.variant.softcap;
    return cap > 0.0f ? cap * tanh_f32(scaled / cap) : scaled;
  }

  State split_of(std::int64_t split) const {
    State state;
    state.out.assign(dim_, 0.0f);
    const std::int64_t begin =
        std::max(split * kSplitKeys, first_ / kAttentionBlock * kAttentionBlock);
    const std::int64_t end = std::min((split + 1) * kSplitKeys, end_);
    for (std::int64_t tile = begin; tile < end; tile += kAttentionBlock)
      add_tile(tile, state);
    return state;
  }
  void add_tile(std::int64_t tile, State& state) const {
    std::array<float, kAttentionBlock> scores{}, weights{};
    float max = state.max;
    for (std::int64_t i = 0; i < kAttentionBlock; ++i) {
      if (!seen(tile + i)) continue;
      scores[static_cast<std::size_t>(i)] = score(tile + i);
      max = larger(scores[static_cast<std::size_t>(i)], max);
    }
    const float alpha = exp_f32(state.max - max);
    state.max = max;
    for (std::int64_t i = 0; i < kAttentionBlock; ++i)
      if (seen(tile + i))
        weights[static_cast<std::size_t>(i)] =
            rounded(exp_f32(scores[static_cast<std::size_t>(i)] - max));
    state.sum = state.sum * alpha;
    for (float& x : state.out)
      x = x * alpha;
    for (std::int64_t step = 0; step < kAttentionBlock; step += 16) {
      const auto weight = [&](std::int64_t i) {
        return weights[static_cast<std::size_t>(step + i)];
      };
      state.sum = chain(state.sum, weight, [](std::int64_t) { return 1.0f; });
      for (std::size_t d = 0; d < dim_; ++d)
        state.out[d] = chain(state.out[d], weight, [&](std::int64_t i) {
          const std::int64_t key = tile + step + i;
          if (!seen(key)) return 0.0f;
          return case_.v_pool[case_.v_at(segment_, key, kv_head_, static_cast<std::int64_t>(d))];
        });
    }
  }
  static State merged(const State& all, const State& next) {
    State out;
    out.max = larger(next.max, all.max);
    const float earlier = exp_f32(all.max - out.max), later = exp_f32(next.max - out.max);
    out.sum = std::fma(all.sum, earlier, next.sum * later);
    for (std::size_t d = 0; d < all.out.size(); ++d)
      out.out.push_back(std::fma(all.out[d], earlier, next.out[d] * later));
    return out;
  }

  const TensorCore& core_;
  const kernels::test::AttentionCase& case_;
  const Segment& segment_;
  const std::int64_t kv_head_;
  const float* const q_;
  const std::size_t dim_;
  const std::int64_t end_, first_;
};

}  // namespace troupe::kernels::cuda::test

#include "runtime/model/moe_routing.hpp"

#include "kernels/ops.hpp"
#include "kernels/scalar.hpp"

#include <algorithm>

namespace troupe::model {
namespace {

void softmax(float* x, std::int64_t count) {
  float largest = x[0];
  for (std::int64_t i = 1; i < count; ++i)
    largest = x[i] > largest ? x[i] : largest;
  for (std::int64_t i = 0; i < count; ++i)
    x[i] = x[i] - largest;
  kernels::ops().exp(x, x, count);
  const float sum = lane_sum(count, [&](std::int64_t i) { return x[i]; });
  for (std::int64_t i = 0; i < count; ++i)
    x[i] = x[i] / sum;
}

// Chooses the k largest of p, the largest first; on a tie the lower index wins. NaN compares as not
// larger, but the result is still k different experts.
void choose(const float* p, std::int64_t count, std::int64_t k, std::int32_t* chosen) {
  for (std::int64_t i = 0; i < k; ++i) {
    std::int32_t best = -1;
    for (std::int32_t e = 0; e < count; ++e) {
      if (best >= 0 && !(p[e] > p[best])) continue;
      if (std::find(chosen, chosen + i, e) == chosen + i) best = e;
    }
    chosen[i] = best;
  }
}

}  // namespace

void route_rows(const MoeSpec& spec, const Routing& routing, std::int64_t begin, std::int64_t end) {
  const std::int64_t k = spec.experts_per_token;
  for (std::int64_t row = begin; row < end; ++row) {
    float* p = routing.scores + row * routing.lds;
    std::int32_t* chosen = routing.expert + row * k;
    softmax(p, spec.experts);
    choose(p, spec.experts, k, chosen);
    float divisor = 1.0f;
    if (spec.norm_topk) {
      divisor = 0.0f;
      for (std::int64_t i = 0; i < k; ++i)
        divisor += p[chosen[i]];
    }
    std::sort(chosen, chosen + k);
    for (std::int64_t i = 0; i < k; ++i)
      routing.weight[row * k + i] = p[chosen[i]] / divisor;
    if (spec.has_shared()) {
      float& gate = p[spec.experts];
      gate = 1.0f / (1.0f + kernels::exp_f32(-gate));
    }
  }
}

void place_rows(const MoeSpec& spec,
                const Routing& routing,
                std::int64_t rows,
                std::int64_t begin,
                std::int64_t end,
                ExpertRanges& ranges) {
  const std::int64_t k = spec.experts_per_token;
  const auto experts = static_cast<std::size_t>(spec.experts);
  std::array<std::int32_t, kExperts_max> next{};
  std::fill_n(ranges.begin.begin(), experts + 1, 0);
  for (std::int64_t i = 0; i < rows * k; ++i) {
    const auto e = static_cast<std::size_t>(routing.expert[i]);
    if (i < begin * k) ++next[e];
    ++ranges.begin[e + 1];
  }
  for (std::size_t e = 0; e < experts; ++e) {
    ranges.begin[e + 1] += ranges.begin[e];
    next[e] += ranges.begin[e];
  }
  for (std::int64_t i = begin * k; i < end * k; ++i)
    routing.place[i] = next[static_cast<std::size_t>(routing.expert[i])]++;
}

}  // namespace troupe::model

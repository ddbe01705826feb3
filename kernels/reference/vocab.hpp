// Partial sums and gradients over the vocabulary columns of one row of logits.
#pragma once

#include "kernels/reference/lanes.hpp"
#include "kernels/row_shapes.hpp"
#include "kernels/scalar.hpp"

#include <cmath>
#include <limits>

namespace troupe::kernels::reference {
namespace {

void vocab_stats(
    const float* logits, std::int64_t count, float inv_temperature, float* max, float* sum) {
  LaneMax largest;
  for (std::int64_t i = 0; i < count; ++i)
    largest.take(i, logits[i] * inv_temperature);
  *max = largest.total();
  // A block that is all -inf sums to zero.
  const float shift = *max == -std::numeric_limits<float>::infinity() ? 0.0f : *max;
  LaneSum<float> total;
  for (std::int64_t i = 0; i < round_up_to_lanes(count); ++i)
    total[i] = total[i] + (i < count ? exp_f32(logits[i] * inv_temperature - shift) : 0.0f);
  *sum = total.total();
}

float vocab_weighted(const float* logits, std::int64_t count, float inv_temperature, float lse) {
  LaneSum<float> total;
  for (std::int64_t i = 0; i < count; ++i) {
    const float s = logits[i] * inv_temperature;
    const float p = exp_f32(s - lse);
    total[i] = std::fma(p, p == 0.0f ? 0.0f : s, total[i]);  // avoids 0 * infinity
  }
  return total.total();
}

void vocab_grad_row(float* logits,
                    std::int64_t count,
                    float inv_temperature,
                    float lse,
                    float grad_logprob,
                    float grad_entropy,
                    float entropy) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float centred = logits[i] * inv_temperature - lse;
    const float p = exp_f32(centred);
    const float spread = p == 0.0f ? 0.0f : centred + entropy;
    const float grad = std::fma(-(grad_entropy * p), spread, grad_logprob * (0.0f - p));
    logits[i] = grad * inv_temperature;
  }
}

}  // namespace
}  // namespace troupe::kernels::reference

// Weighted sums of rows gathered by index: the last step of a mixture-of-experts layer.
#pragma once

#include "kernels/shapes.hpp"

#include <cmath>

namespace troupe::kernels::reference {
namespace {

void mix_rows(const MixRows& mix, Range rows) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const std::int32_t* places = mix.place + row * mix.choices;
    for (std::int64_t i = 0; i < mix.n; ++i) {
      float sum = 0.0f;
      for (std::int64_t c = 0; c < mix.choices; ++c) {
        const float weight = mix.weight == nullptr ? 1.0f : mix.weight[row * mix.choices + c];
        sum = std::fma(weight, mix.y[places[c] * mix.ldy + i], sum);
      }
      if (mix.extra != nullptr) {
        const float weight = mix.extra_weight == nullptr ? 1.0f : mix.extra_weight[row * mix.ldw];
        sum = std::fma(weight, mix.extra[row * mix.ldx + i], sum);
      }
      mix.out[row * mix.ldo + i] = mix.residual[row * mix.ldr + i] + sum;
    }
  }
}

}  // namespace
}  // namespace troupe::kernels::reference

// Weighted sums of rows gathered by index (the outputs of experts), sixteen columns at a time in
// the order of kernels/reference/mix_rows.hpp. Several chains run at once to hide the latency of
// each.
#pragma once

#include "kernels/cpu/math.hpp"
#include "kernels/shapes.hpp"

namespace troupe::kernels::TROUPE_KERNEL_LEVEL {
namespace {

// Computes `Chunks` times 16 columns of one row from column `i` on; `mask` selects the valid lanes.
template <int Chunks, class MaskType>
inline void mix_columns(const MixRows& mix, std::int64_t row, std::int64_t i, MaskType mask) {
  const std::int32_t* places = mix.place + row * mix.choices;
  Vec sums[Chunks];
  for (Vec& sum : sums)
    sum = Vec::zero();
  const auto add = [&](const float* from, float weight) {
    for (int c = 0; c < Chunks; ++c)
      sums[c] = fma(Vec::all(weight), load(from + c * 16, mask), sums[c]);
  };
  for (std::int64_t c = 0; c < mix.choices; ++c) {
    add(mix.y + places[c] * mix.ldy + i,
        mix.weight == nullptr ? 1.0f : mix.weight[row * mix.choices + c]);
  }
  if (mix.extra != nullptr) {
    add(mix.extra + row * mix.ldx + i,
        mix.extra_weight == nullptr ? 1.0f : mix.extra_weight[row * mix.ldw]);
  }
  const float* residual = mix.residual + row * mix.ldr + i;
  float* out = mix.out + row * mix.ldo + i;
  for (int c = 0; c < Chunks; ++c)
    store(out + c * 16, load(residual + c * 16, mask) + sums[c], mask);
}

void mix_rows(const MixRows& mix, Range rows) {
  constexpr std::int64_t kWide = 4 * 16;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const std::int64_t wide = mix.n / kWide * kWide;
    for (std::int64_t i = 0; i < wide; i += kWide)
      mix_columns<4>(mix, row, i, Full{});
    for_lanes(mix.n - wide,
              [&](std::int64_t i, auto mask) { mix_columns<1>(mix, row, wide + i, mask); });
  }
}

}  // namespace
}  // namespace troupe::kernels::TROUPE_KERNEL_LEVEL

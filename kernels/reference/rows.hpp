// RMSNorm, rotary positions and exp, one number at a time.
#pragma once

#include "kernels/reference/lanes.hpp"
#include "kernels/row_shapes.hpp"
#include "kernels/scalar.hpp"

#include <cmath>

namespace troupe::kernels::reference {
namespace {

void rmsnorm(const RmsNorm& n, Range rows) {
  for (std::int64_t head = 0; head < n.heads; ++head) {
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      const float* in = n.x + row * n.ldx + head * n.d;
      float* out = n.y + row * n.ldy + head * n.d;
      LaneSum<float> squares;
      for (std::int64_t i = 0; i < n.d; ++i)
        squares[i] = std::fma(in[i], in[i], squares[i]);
      const float mean = squares.total() / static_cast<float>(n.d);
      const float r = 1.0f / std::sqrt(mean + n.eps);
      for (std::int64_t i = 0; i < n.d; ++i)
        out[i] = (in[i] * r) * n.weight[i];
      if (n.inv_rms != nullptr) n.inv_rms[head * n.ldi + row] = r;
    }
  }
}

void rope(const Rope& r, Range rows) {
  const std::int64_t half = r.rotary / 2;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* c_row = r.cos + r.positions[row] * half;
    const float* s_row = r.sin + r.positions[row] * half;
    for (std::int64_t head = 0; head < r.heads; ++head) {
      float* first = r.x + row * r.ldx + head * r.head_dim;
      float* second = first + half;
      for (std::int64_t i = 0; i < half; ++i) {
        const float c = c_row[i];
        const float s = r.inverse ? -s_row[i] : s_row[i];
        const float x1 = first[i];
        const float x2 = second[i];
        first[i] = std::fma(x1, c, -(x2 * s));
        second[i] = std::fma(x2, c, x1 * s);
      }
    }
  }
}

void exp(const float* x, float* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    y[i] = exp_f32(x[i]);
}

}  // namespace
}  // namespace troupe::kernels::reference

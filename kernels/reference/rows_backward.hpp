// Gradients of RMSNorm (input and weight) and of a bias.
#pragma once

#include "kernels/reference/lanes.hpp"
#include "kernels/row_shapes.hpp"
#include "kernels/scalar.hpp"

#include <cmath>

namespace troupe::kernels::reference {
namespace {

// With r = inv_rms and t_i = (dy_i w_i): dx_i += t_i r - x_i * (sum_j t_j x_j / d) r^3.
void rmsnorm_backward(const RmsNormBackward& n, Range rows) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* in = n.x + row * n.ldx;
    const float* grad = n.dy + row * n.ldy;
    const float r = n.inv_rms[row];
    LaneSum<float> dot;
    for (std::int64_t i = 0; i < n.d; ++i)
      dot[i] = std::fma(grad[i] * n.weight[i], in[i], dot[i]);
    const float mean = dot.total() / static_cast<float>(n.d);
    const float pull = (mean * r) * (r * r);
    for (std::int64_t i = 0; i < n.d; ++i) {
      const float direct = (grad[i] * n.weight[i]) * r;
      float& out = n.dx[row * n.lddx + i];
      out = out + std::fma(-pull, in[i], direct);
    }
  }
}

void rmsnorm_weight_grad(const RmsNormWeightGrad& n, Range columns) {
  for (std::int64_t i = columns.begin; i < columns.end; ++i)
    for (std::int64_t row = 0; row < n.rows; ++row)
      n.dweight[i] =
          std::fma(n.dy[row * n.ldy + i], n.x[row * n.ldx + i] * n.inv_rms[row], n.dweight[i]);
}

void column_sum(const ColumnSum& c, Range columns) {
  for (std::int64_t i = columns.begin; i < columns.end; ++i)
    for (std::int64_t row = 0; row < c.rows; ++row)
      c.sums[i] = c.sums[i] + c.dy[row * c.ldy + i];
}

}  // namespace
}  // namespace troupe::kernels::reference

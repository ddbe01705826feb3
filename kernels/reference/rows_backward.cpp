// Gradients of the row functions and of a bias.
#include "kernels/reference/lanes.hpp"
#include "kernels/reference/reference.hpp"
#include "kernels/scalar.hpp"

#include <cmath>

namespace troupe::kernels::reference {

// With r = inv_rms and t_i = (dy_i w_i): dx_i += t_i r - x_i * (sum_j t_j x_j / d) r^3.
void rmsnorm_backward(const float* x,
                      std::int64_t ldx,
                      const float* weight,
                      const float* inv_rms,
                      const float* dy,
                      std::int64_t ldy,
                      std::int64_t d,
                      float* dx,
                      std::int64_t lddx,
                      std::int64_t row_begin,
                      std::int64_t row_end) {
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    const float* in = x + row * ldx;
    const float* grad = dy + row * ldy;
    const float r = inv_rms[row];
    LaneSum<float> dot;
    for (std::int64_t i = 0; i < d; ++i)
      dot[i] = std::fma(grad[i] * weight[i], in[i], dot[i]);
    const float mean = dot.total() / static_cast<float>(d);
    const float pull = (mean * r) * (r * r);
    for (std::int64_t i = 0; i < d; ++i) {
      const float direct = (grad[i] * weight[i]) * r;
      float& out = dx[row * lddx + i];
      out = out + std::fma(-pull, in[i], direct);
    }
  }
}

void rmsnorm_weight_grad(const float* x,
                         std::int64_t ldx,
                         const float* inv_rms,
                         const float* dy,
                         std::int64_t ldy,
                         std::int64_t rows,
                         float* dweight,
                         std::int64_t d_begin,
                         std::int64_t d_end) {
  for (std::int64_t i = d_begin; i < d_end; ++i)
    for (std::int64_t row = 0; row < rows; ++row)
      dweight[i] = std::fma(dy[row * ldy + i], x[row * ldx + i] * inv_rms[row], dweight[i]);
}

void column_sum(const float* dy,
                std::int64_t ldy,
                std::int64_t rows,
                float* dbias,
                std::int64_t begin,
                std::int64_t end) {
  for (std::int64_t c = begin; c < end; ++c)
    for (std::int64_t row = 0; row < rows; ++row)
      dbias[c] = dbias[c] + dy[row * ldy + c];
}

}  // namespace troupe::kernels::reference

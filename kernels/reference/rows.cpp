// Functions of single rows, forward: RMSNorm, rotary positions, exp.
#include "kernels/reference/lanes.hpp"
#include "kernels/reference/reference.hpp"
#include "kernels/scalar.hpp"

#include <cmath>

namespace troupe::kernels::reference {

void rmsnorm(const float* x,
             std::int64_t ldx,
             const float* weight,
             float eps,
             std::int64_t d,
             float* y,
             std::int64_t ldy,
             float* inv_rms,
             std::int64_t row_begin,
             std::int64_t row_end) {
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    const float* in = x + row * ldx;
    LaneSum<float> squares;
    for (std::int64_t i = 0; i < d; ++i)
      squares[i] = std::fma(in[i], in[i], squares[i]);
    const float mean = squares.total() / static_cast<float>(d);
    const float r = 1.0f / std::sqrt(mean + eps);
    for (std::int64_t i = 0; i < d; ++i)
      y[row * ldy + i] = (in[i] * r) * weight[i];
    if (inv_rms != nullptr) inv_rms[row] = r;
  }
}

void rope(float* x,
          std::int64_t ldx,
          std::int64_t heads,
          std::int64_t head_dim,
          std::int64_t rotary,
          const std::int32_t* positions,
          const float* cos,
          const float* sin,
          bool inverse,
          std::int64_t row_begin,
          std::int64_t row_end) {
  const std::int64_t half = rotary / 2;
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    for (std::int64_t head = 0; head < heads; ++head) {
      float* first = x + row * ldx + head * head_dim;
      float* second = first + half;
      for (std::int64_t i = 0; i < half; ++i) {
        const float c = cos[positions[row] * half + i];
        const float s = inverse ? -sin[positions[row] * half + i] : sin[positions[row] * half + i];
        const float x1 = first[i];
        const float x2 = second[i];
        first[i] = std::fma(x1, c, -(x2 * s));
        second[i] = std::fma(x2, c, x1 * s);
      }
    }
  }
}

void exp_row(const float* x, float* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    y[i] = exp_f32(x[i]);
}

}  // namespace troupe::kernels::reference

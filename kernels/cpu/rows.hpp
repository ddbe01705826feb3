// Functions of single rows and their gradients, sixteen lanes at a time in the order of
// kernels/reference/rows.cpp and rows_backward.cpp.
#pragma once

#include "kernels/cpu/math.hpp"

namespace troupe::kernels::TROUPE_KERNEL_LEVEL {
namespace {

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
    float* out = y + row * ldy;
    Vec squares = Vec::zero();
    for_lanes(d, [&](std::int64_t i, auto mask) {
      const Vec value = load(in + i, mask);
      squares = fma(value, value, squares);
    });
    const float mean = squares.sum() / static_cast<float>(d);
    const float r = 1.0f / __builtin_sqrtf(mean + eps);
    for_lanes(d, [&](std::int64_t i, auto mask) {
      store(out + i, (load(in + i, mask) * Vec::all(r)) * load(weight + i, mask), mask);
    });
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
    const float* c_row = cos + positions[row] * half;
    const float* s_row = sin + positions[row] * half;
    for_lanes(half, [&](std::int64_t i, auto mask) {
      const Vec c = load(c_row + i, mask);
      const Vec s = inverse ? -load(s_row + i, mask) : load(s_row + i, mask);
      for (std::int64_t head = 0; head < heads; ++head) {
        float* first = x + row * ldx + head * head_dim + i;
        const Vec x1 = load(first, mask);
        const Vec x2 = load(first + half, mask);
        store(first, fma(x1, c, -(x2 * s)), mask);
        store(first + half, fma(x2, c, x1 * s), mask);
      }
    });
  }
}

void exp_row(const float* x, float* y, std::int64_t count) {
  for_lanes(count, [&](std::int64_t i, auto mask) { store(y + i, exp(load(x + i, mask)), mask); });
}

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
    float* out = dx + row * lddx;
    const float r = inv_rms[row];
    Vec dot = Vec::zero();
    for_lanes(d, [&](std::int64_t i, auto mask) {
      dot = fma(load(grad + i, mask) * load(weight + i, mask), load(in + i, mask), dot);
    });
    const float mean = dot.sum() / static_cast<float>(d);
    const Vec pull = Vec::all(-((mean * r) * (r * r)));
    for_lanes(d, [&](std::int64_t i, auto mask) {
      const Vec direct = (load(grad + i, mask) * load(weight + i, mask)) * Vec::all(r);
      store(out + i, load(out + i, mask) + fma(pull, load(in + i, mask), direct), mask);
    });
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
  for_lanes(d_end - d_begin, [&](std::int64_t offset, auto mask) {
    const std::int64_t i = d_begin + offset;
    Vec sum = load(dweight + i, mask);
    for (std::int64_t row = 0; row < rows; ++row)
      sum = fma(load(dy + row * ldy + i, mask),
                load(x + row * ldx + i, mask) * Vec::all(inv_rms[row]), sum);
    store(dweight + i, sum, mask);
  });
}

void column_sum(const float* dy,
                std::int64_t ldy,
                std::int64_t rows,
                float* dbias,
                std::int64_t begin,
                std::int64_t end) {
  for_lanes(end - begin, [&](std::int64_t offset, auto mask) {
    const std::int64_t c = begin + offset;
    Vec sum = load(dbias + c, mask);
    for (std::int64_t row = 0; row < rows; ++row)
      sum = sum + load(dy + row * ldy + c, mask);
    store(dbias + c, sum, mask);
  });
}

}  // namespace
}  // namespace troupe::kernels::TROUPE_KERNEL_LEVEL

// RMSNorm, rotary positions, exp, and the gradients of RMSNorm and of a bias, sixteen lanes at a
// time, in the order of kernels/reference/rows.hpp and rows_backward.hpp.
#pragma once

#include "kernels/cpu/math.hpp"
#include "kernels/row_shapes.hpp"

namespace troupe::kernels::TROUPE_KERNEL_LEVEL {
namespace {

void rmsnorm(const RmsNorm& n, Range rows) {
  const float* const weight = n.weight;
  const float eps = n.eps;
  const std::int64_t d = n.d;
  for (std::int64_t head = 0; head < n.heads; ++head) {
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      const float* in = n.x + row * n.ldx + head * d;
      float* out = n.y + row * n.ldy + head * d;
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
      if (n.inv_rms != nullptr) n.inv_rms[head * n.ldi + row] = r;
    }
  }
}

void rope(const Rope& rope, Range rows) {
  const std::int64_t half = rope.rotary / 2, heads = rope.heads, head_dim = rope.head_dim;
  const bool inverse = rope.inverse;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* c_row = rope.cos + rope.positions[row] * half;
    const float* s_row = rope.sin + rope.positions[row] * half;
    float* x = rope.x + row * rope.ldx;
    for_lanes(half, [&](std::int64_t i, auto mask) {
      const Vec c = load(c_row + i, mask);
      const Vec s = inverse ? -load(s_row + i, mask) : load(s_row + i, mask);
      for (std::int64_t head = 0; head < heads; ++head) {
        float* first = x + head * head_dim + i;
        const Vec x1 = load(first, mask);
        const Vec x2 = load(first + half, mask);
        store(first, fma(x1, c, -(x2 * s)), mask);
        store(first + half, fma(x2, c, x1 * s), mask);
      }
    });
  }
}

void exp(const float* x, float* y, std::int64_t count) {
  for_lanes(count, [&](std::int64_t i, auto mask) { store(y + i, exp(load(x + i, mask)), mask); });
}

void rmsnorm_backward(const RmsNormBackward& n, Range rows) {
  const float* const weight = n.weight;
  const std::int64_t d = n.d;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* in = n.x + row * n.ldx;
    const float* grad = n.dy + row * n.ldy;
    float* out = n.dx + row * n.lddx;
    const float r = n.inv_rms[row];
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

void rmsnorm_weight_grad(const RmsNormWeightGrad& n, Range columns) {
  const float *const x = n.x, *const dy = n.dy, *const inv_rms = n.inv_rms;
  const std::int64_t rows = n.rows, ldx = n.ldx, ldy = n.ldy;
  float* const dweight = n.dweight;
  for_lanes(columns.size(), [&](std::int64_t offset, auto mask) {
    const std::int64_t i = columns.begin + offset;
    Vec sum = load(dweight + i, mask);
    for (std::int64_t row = 0; row < rows; ++row)
      sum = fma(load(dy + row * ldy + i, mask),
                load(x + row * ldx + i, mask) * Vec::all(inv_rms[row]), sum);
    store(dweight + i, sum, mask);
  });
}

void column_sum(const ColumnSum& c, Range columns) {
  const float* const dy = c.dy;
  const std::int64_t rows = c.rows, ldy = c.ldy;
  float* const sums = c.sums;
  for_lanes(columns.size(), [&](std::int64_t offset, auto mask) {
    const std::int64_t i = columns.begin + offset;
    Vec sum = load(sums + i, mask);
    for (std::int64_t row = 0; row < rows; ++row)
      sum = sum + load(dy + row * ldy + i, mask);
    store(sums + i, sum, mask);
  });
}

}  // namespace
}  // namespace troupe::kernels::TROUPE_KERNEL_LEVEL

// Matrix products, and the packing of matrices into panels, one number at a time.
#pragma once

#include "kernels/shapes.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace troupe::kernels::reference {
namespace {

// A number of A as a kBf16Compute product uses it: rounded to bfloat16, denormals to zero.
float rounded(float x) {
  const bool denormal = (std::bit_cast<std::uint32_t>(x) & 0x7f800000u) == 0;
  return denormal ? 0.0f : from_bf16(to_bf16(x));
}

float a_value(const Gemm& g, std::int64_t m, std::int64_t k) {
  return g.a[g.a_by_columns ? k * g.lda + m : m * g.lda + k];
}

float b_value(const Gemm& g, std::int64_t k, std::int64_t n) {
  return g.ldb > 0 ? g.b.f32()[k * g.ldb + n] : panel_value(g.b, g.k, n, k);
}

// The chain of a kBf16Compute product: over k in pairs, the second number of each pair first. An
// odd k is padded with zeros.
float dot_of_pairs(const Gemm& g, std::int64_t m, std::int64_t n, float sum) {
  for (std::int64_t k = 0; k < g.k; k += 2) {
    const bool pair = k + 1 < g.k;
    sum = std::fma(pair ? rounded(a_value(g, m, k + 1)) : 0.0f, pair ? b_value(g, k + 1, n) : 0.0f,
                   sum);
    sum = std::fma(rounded(a_value(g, m, k)), b_value(g, k, n), sum);
  }
  return sum;
}

// Sets the scale of one column and returns the factor for its weights before rounding.
float choose_scale(const float* w, std::int64_t k, float& scale) {
  std::uint32_t largest = 0;
  for (std::int64_t i = 0; i < k; ++i)
    largest = std::max(largest, std::bit_cast<std::uint32_t>(w[i]) & 0x7fffffffu);
  if (largest >= 0x7f800000u) {
    scale = std::numeric_limits<float>::quiet_NaN();
    return 0.0f;
  }
  const auto magnitude = std::bit_cast<float>(largest);
  if (magnitude < kInt8Least) return scale = 0.0f;
  scale = magnitude / 127.0f;
  return 127.0f / magnitude;
}

void pack_column(const float* w, std::int64_t k, std::int64_t column, const PanelRoom& to) {
  auto* const panel =
      static_cast<unsigned char*>(to.data) + column / kPanel * panel_bytes(to.dtype, k);
  const std::int64_t c = column % kPanel, padded = (k + line_depth(to.dtype) - 1) /
                                                   line_depth(to.dtype) * line_depth(to.dtype);
  float inverse = 0.0f;
  if (to.dtype == PanelDtype::kInt8)
    inverse = choose_scale(w, w == nullptr ? 0 : k, to.scale[column]);
  for (std::int64_t i = 0; i < padded; ++i) {
    const float x = w != nullptr && i < k ? w[i] : 0.0f;
    switch (to.dtype) {
      case PanelDtype::kF32:
        reinterpret_cast<float*>(panel)[i * kPanel + c] = x;
        break;
      case PanelDtype::kBf16:
      case PanelDtype::kBf16Compute:
        reinterpret_cast<std::uint16_t*>(panel)[i / 2 * 2 * kPanel + 2 * c + i % 2] = to_bf16(x);
        break;
      case PanelDtype::kInt8:
        reinterpret_cast<signed char*>(panel)[i * kPanel + c] =
            inverse == 0.0f ? 0 : static_cast<signed char>(std::nearbyint(x * inverse));
        break;
    }
  }
}

void gemm(const Gemm& g, Range rows, Range panels) {
  const std::int64_t n_end = panels.end * kPanel < g.n ? panels.end * kPanel : g.n;
  for (std::int64_t m = rows.begin; m < rows.end; ++m) {
    for (std::int64_t n = panels.begin * kPanel; n < n_end; ++n) {
      float sum = g.accumulate ? g.c[m * g.ldc + n] : 0.0f;
      if (g.b.dtype == PanelDtype::kBf16Compute) {
        sum = dot_of_pairs(g, m, n, sum);
      } else {
        for (std::int64_t k = 0; k < g.k; ++k)
          sum = std::fma(a_value(g, m, k), b_value(g, k, n), sum);
      }
      if (g.b.scale != nullptr) sum = sum * g.b.scale[n];
      if (g.bias != nullptr) sum = sum + g.bias[n];
      if (g.residual != nullptr) sum = sum + g.residual[m * g.ldr + n];
      g.c[m * g.ldc + n] = sum;
    }
  }
}

void pack_transposed(const Pack& p, Range panels) {
  for (std::int64_t column = panels.begin * kPanel; column < panels.end * kPanel; ++column)
    pack_column(column < p.n ? p.from + column * p.ldf : nullptr, p.k, column, p.to);
}

void pack_plain(const Pack& p, Range panels) {
  for (std::int64_t panel = panels.begin; panel < panels.end; ++panel)
    for (std::int64_t i = 0; i < p.k; ++i)
      for (std::int64_t c = 0; c < kPanel; ++c) {
        const std::int64_t column = panel * kPanel + c;
        p.to.f32()[(panel * p.k + i) * kPanel + c] =
            column < p.n ? p.from[i * p.ldf + column] : 0.0f;
      }
}

}  // namespace
}  // namespace troupe::kernels::reference

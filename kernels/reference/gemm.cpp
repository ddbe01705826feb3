// Products and packing, one output at a time.
#include "kernels/reference/reference.hpp"

#include <cmath>

namespace troupe::kernels::reference {

void gemm(const Gemm& g,
          std::int64_t m_begin,
          std::int64_t m_end,
          std::int64_t panel_begin,
          std::int64_t panel_end) {
  const std::int64_t n_end = panel_end * kPanel < g.n ? panel_end * kPanel : g.n;
  for (std::int64_t m = m_begin; m < m_end; ++m) {
    for (std::int64_t n = panel_begin * kPanel; n < n_end; ++n) {
      const bool packed = g.ldb == 0;
      const float* b = packed ? g.b + n / kPanel * kPanel * g.k + n % kPanel : g.b + n;
      const std::int64_t ldb = packed ? kPanel : g.ldb;
      float sum = g.accumulate ? g.c[m * g.ldc + n] : 0.0f;
      for (std::int64_t k = 0; k < g.k; ++k)
        sum = std::fma(g.a[g.a_by_columns ? k * g.lda + m : m * g.lda + k], b[k * ldb], sum);
      if (g.bias != nullptr) sum = sum + g.bias[n];
      if (g.residual != nullptr) sum = sum + g.residual[m * g.ldr + n];
      g.c[m * g.ldc + n] = sum;
    }
  }
}

void pack_transposed(const float* w,
                     std::int64_t ldw,
                     std::int64_t n,
                     std::int64_t k,
                     float* panels,
                     std::int64_t panel_begin,
                     std::int64_t panel_end) {
  for (std::int64_t panel = panel_begin; panel < panel_end; ++panel)
    for (std::int64_t i = 0; i < k; ++i)
      for (std::int64_t c = 0; c < kPanel; ++c) {
        const std::int64_t column = panel * kPanel + c;
        panels[(panel * k + i) * kPanel + c] = column < n ? w[column * ldw + i] : 0.0f;
      }
}

void pack_plain(const float* x,
                std::int64_t ldx,
                std::int64_t n,
                std::int64_t k,
                float* panels,
                std::int64_t panel_begin,
                std::int64_t panel_end) {
  for (std::int64_t panel = panel_begin; panel < panel_end; ++panel)
    for (std::int64_t i = 0; i < k; ++i)
      for (std::int64_t c = 0; c < kPanel; ++c) {
        const std::int64_t column = panel * kPanel + c;
        panels[(panel * k + i) * kPanel + c] = column < n ? x[i * ldx + column] : 0.0f;
      }
}

}  // namespace troupe::kernels::reference

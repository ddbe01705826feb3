// The product of a level: picks the form of the panels and whether operands are packed at all.
// Any thread; nothing is kept.
#pragma once

#include "kernels/cpu/gemm.hpp"

namespace troupe::kernels::TROUPE_KERNEL_LEVEL {
namespace {

void gemm(const Gemm& g,
          std::int64_t m_begin,
          std::int64_t m_end,
          std::int64_t panel_begin,
          std::int64_t panel_end) {
  if (m_begin >= m_end || panel_begin >= panel_end) return;
  if (g.a_by_columns) return blocked<F32Lines, true>(g, m_begin, m_end, panel_begin, panel_end);
  if (g.ldb > 0) return blocked<F32Lines, false>(g, m_begin, m_end, panel_begin, panel_end);
  switch (g.b.dtype) {
    case PanelDtype::kF32:
      return packed_gemm<F32Lines>(g, m_begin, m_end, panel_begin, panel_end);
    case PanelDtype::kBf16:
      return packed_gemm<Bf16Lines>(g, m_begin, m_end, panel_begin, panel_end);
    case PanelDtype::kInt8:
      return packed_gemm<Int8Lines>(g, m_begin, m_end, panel_begin, panel_end);
    case PanelDtype::kBf16Compute:
      return dot_gemm(g, m_begin, m_end, panel_begin, panel_end);
  }
}

}  // namespace
}  // namespace troupe::kernels::TROUPE_KERNEL_LEVEL

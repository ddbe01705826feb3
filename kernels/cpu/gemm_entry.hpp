// Ops::gemm of a vector level: picks the code for the panels' storage dtype, or for operands that
// are not packed. Any thread; no state.
#pragma once

#include "kernels/cpu/gemm.hpp"

namespace troupe::kernels::TROUPE_KERNEL_LEVEL {
namespace {

void gemm(const Gemm& g, Range rows, Range panels) {
  if (rows.empty() || panels.empty()) return;
  if (g.a_by_columns) return blocked<F32Lines, true>(g, rows, panels);
  if (g.ldb > 0) return blocked<F32Lines, false>(g, rows, panels);
  switch (g.b.dtype) {
    case PanelDtype::kF32:
      return packed_gemm<F32Lines>(g, rows, panels);
    case PanelDtype::kBf16:
      return packed_gemm<Bf16Lines>(g, rows, panels);
    case PanelDtype::kInt8:
      return packed_gemm<Int8Lines>(g, rows, panels);
    case PanelDtype::kBf16Compute:
      return dot_gemm(g, rows, panels);
  }
}

}  // namespace
}  // namespace troupe::kernels::TROUPE_KERNEL_LEVEL

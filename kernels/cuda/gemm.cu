// Chooses the kernel for a product. All kernels of one class of arithmetic give the same bits, so
// the choice only affects speed.
#include "kernels/cuda/gemm.cuh"

namespace troupe::kernels::cuda {
namespace {

bool in_fours(const float* p, std::int64_t ld) {
  return reinterpret_cast<std::uintptr_t>(p) % 16 == 0 && ld % 4 == 0;
}

}  // namespace

void gemm(const Gemm& g, Range rows, Range panels) {
  const std::int64_t all = panels_of(g.n);
  GemmPart part{g, rows.begin, rows.end, panels.begin, panels.end < all ? panels.end : all};
  if (part.rows() <= 0 || part.panels() <= 0) return;
  part.a_vectors = in_fours(g.a_by_columns ? g.a + rows.begin : g.a, g.lda);
  part.b_vectors = g.ldb > 0 && in_fours(g.b.f32(), g.ldb);
  part.c_vectors = in_fours(g.c, g.ldc) && in_fours(g.bias, 0) && in_fours(g.residual, g.ldr);
  const bool as_packed = !g.a_by_columns && g.ldb == 0;
  const bool large = enough_tiles(part.rows(), part.panels() * kPanel, 128, 128);
  if (g.ldb == 0 && g.b.dtype == PanelDtype::kBf16Compute) {
    gemm_bf16(part);
  } else if (as_packed && part.rows() <= (large ? kFewRows : kFewRowsOfSmall)) {
    gemm_few_rows(part);
  } else {
    gemm_tiles(part);
  }
}

}  // namespace troupe::kernels::cuda

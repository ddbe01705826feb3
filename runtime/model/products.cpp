#include "runtime/model/products.hpp"

#include "kernels/ops.hpp"

#include <algorithm>

namespace troupe::model {
namespace {

using kernels::kPanel;
using kernels::ops;

// input_grad sums dX in pieces of this many rows of W, each with its own chain of additions. One
// long chain over a vocabulary would lose digits, because the terms of a softmax's gradient cancel
// (their coefficients add up to zero). The value determines the bits of the result.
constexpr std::int64_t kPiece = 1024;

}  // namespace

void ProductScratch::reserve(core::Memory& memory,
                             std::int64_t rows,
                             std::int64_t n,
                             std::int64_t columns) {
  if (n > kPiece) sums_.reserve_discard(std::min(rows, kernels::kPieceRows) * columns, memory);
}

void input_grad(
    core::Team team, Matrix dy, Matrix w, float* dx, std::int64_t lddx, ProductScratch& scratch) {
  const core::Range columns = team.share(w.columns, kPanel);
  if (columns.empty()) return;
  const kernels::PieceGemm gemm{.m = dy.rows,
                                .n = w.columns,
                                .k = dy.columns,
                                .piece = kPiece,
                                .a = dy.data,
                                .lda = dy.ld,
                                .b = w.data,
                                .ldb = w.ld,
                                .c = dx,
                                .ldc = lddx,
                                .sums = scratch.sums()};
  ops().gemm_in_pieces(gemm, {0, dy.rows}, columns);
}

void pack_input(core::Team team, Matrix x, float* packed) {
  const core::Range panels = team.share(kernels::panels_of(x.columns));
  if (panels.empty()) return;
  ops().pack_plain({.from = x.data, .ldf = x.ld, .n = x.columns, .k = x.rows, .to = packed},
                   panels);
}

void weight_grad(
    core::Team team, Matrix dy, const float* packed_x, std::int64_t columns, float* dw) {
  const kernels::Gemm gemm{.m = dy.columns,
                           .n = columns,
                           .k = dy.rows,
                           .a = dy.data,
                           .lda = dy.ld,
                           .b = packed_x,
                           .a_by_columns = true,
                           .c = dw,
                           .ldc = columns,
                           .accumulate = true};
  ops().gemm(gemm, team.share(dy.columns), {0, kernels::panels_of(columns)});
}

}  // namespace troupe::model

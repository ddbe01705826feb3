// dX = dY W and dW += dY^T X on the packed product.
#include "runtime/model/products.hpp"

#include "kernels/ops.hpp"

#include <algorithm>

namespace troupe::model {
namespace {

using kernels::kPanel;
using kernels::ops;

// dX is summed in pieces of this many rows of W, each a chain of its own: over a vocabulary one
// long chain would lose digits, because the terms of a softmax's gradient cancel (their
// coefficients add up to zero). Part of the arithmetic.
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
  const auto [first, last] = team.share(w.columns, kPanel);
  if (first >= last) return;
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
  ops().gemm_in_pieces(gemm, 0, dy.rows, first, last);
}

void pack_input(core::Team team, Matrix x, float* packed) {
  const auto [first, last] = team.share(kernels::panels_of(x.columns));
  if (first < last) {
    ops().pack_plain(x.data, x.ld, x.columns, x.rows, packed, first, last);
  }
}

void weight_grad(
    core::Team team, Matrix dy, const float* packed_x, std::int64_t columns, float* dw) {
  const auto [first, last] = team.share(dy.columns);
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
  ops().gemm(gemm, first, last, 0, kernels::panels_of(columns));
}

}  // namespace troupe::model

// dX = dY W and dW += dY^T X on the packed product.
#include "runtime/model/products.hpp"

#include "kernels/ops.hpp"

#include <algorithm>

namespace troupe::model {
namespace {

using kernels::kPanel;

// dX is summed in pieces of this many rows of W, each a chain of its own. A piece stays in the
// second-level cache; and over a vocabulary one long chain would lose digits, because the terms of
// a softmax's gradient cancel (their coefficients add up to zero). Part of the arithmetic.
constexpr std::int64_t kPieceRows = 1024;
constexpr std::int64_t kPieceColumns = 256;   // columns of dX at a time
constexpr std::int64_t kTransposedRows = 96;  // rows of dW at a time

std::int64_t transposed_ld(std::int64_t rows) {
  return (rows + 15) / 16 * 16 + 16;
}

// to[rows, columns] += from (ld `ld`).
void add(const float* from,
         std::int64_t ld,
         std::int64_t rows,
         std::int64_t columns,
         float* to,
         std::int64_t ldto) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < columns; ++i)
      to[row * ldto + i] += from[row * ld + i];
  }
}

}  // namespace

void ProductScratch::reserve(std::int64_t rows, std::int64_t n) {
  panels_.reserve_discard(kPieceColumns * std::min(n, kPieceRows));
  transposed_.reserve_discard(kTransposedRows * transposed_ld(rows));
  if (n > kPieceRows) sums_.reserve_discard(kPieceColumns * rows);
}

void input_grad(
    core::Team team, Matrix dy, Matrix w, float* dx, std::int64_t lddx, ProductScratch& scratch) {
  const auto [first, last] = team.share(kernels::panels_of(w.columns));
  for (std::int64_t panel = first; panel < last; panel += kPieceColumns / kPanel) {
    const std::int64_t panels = std::min(kPieceColumns / kPanel, last - panel);
    const std::int64_t column = panel * kPanel;
    const std::int64_t columns = std::min(panels * kPanel, w.columns - column);
    for (std::int64_t k = 0; k < dy.columns; k += kPieceRows) {
      const std::int64_t piece = std::min(kPieceRows, dy.columns - k);
      kernels::ops().pack_plain(w.data + k * w.ld + column, w.ld, columns, piece, scratch.panels(),
                                0, panels);
      kernels::Gemm gemm{.m = dy.rows,
                         .n = columns,
                         .k = piece,
                         .a = dy.data + k,
                         .lda = dy.ld,
                         .b = scratch.panels(),
                         .c = dx + column,
                         .ldc = lddx};
      if (k > 0) {
        gemm.c = scratch.sums();
        gemm.ldc = kPieceColumns;
      }
      kernels::ops().gemm(gemm, 0, dy.rows, 0, panels);
      if (k > 0) add(scratch.sums(), kPieceColumns, dy.rows, columns, dx + column, lddx);
    }
  }
}

void pack_input(core::Team team, Matrix x, float* packed) {
  const auto [first, last] = team.share(kernels::panels_of(x.columns));
  if (first < last) {
    kernels::ops().pack_plain(x.data, x.ld, x.columns, x.rows, packed, first, last);
  }
}

void weight_grad(core::Team team,
                 Matrix dy,
                 const float* packed_x,
                 std::int64_t columns,
                 float* dw,
                 ProductScratch& scratch) {
  const std::int64_t ld = transposed_ld(dy.rows);
  const auto [first, last] = team.share(dy.columns);
  for (std::int64_t row = first; row < last; row += kTransposedRows) {
    const std::int64_t rows = std::min(kTransposedRows, last - row);
    kernels::ops().transpose(dy.data + row, dy.ld, dy.rows, scratch.transposed(), ld, 0, rows);
    const kernels::Gemm gemm{.m = rows,
                             .n = columns,
                             .k = dy.rows,
                             .a = scratch.transposed(),
                             .lda = ld,
                             .b = packed_x,
                             .c = dw + row * columns,
                             .ldc = columns,
                             .accumulate = true};
    kernels::ops().gemm(gemm, 0, rows, 0, kernels::panels_of(columns));
  }
}

}  // namespace troupe::model

// dX = dY W and dW += dY^T X on the packed product.
#include "runtime/model/products.hpp"

#include "kernels/ops.hpp"

#include <algorithm>

namespace troupe::model {
namespace {

using kernels::kPanel;
using kernels::ops;

// dX is summed in pieces of this many rows of W, each a chain of its own: over a vocabulary one long
// chain would lose digits, because the terms of a softmax's gradient cancel (their coefficients add
// up to zero). Part of the arithmetic.
constexpr std::int64_t kPieceRows = 1024;
constexpr std::int64_t kSumRows = 672;  // rows of dX whose sums are kept beside it; whole tiles

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

void ProductScratch::reserve(std::int64_t rows, std::int64_t n, std::int64_t columns) {
  if (n > kPieceRows) sums_.reserve_discard(std::min(rows, kSumRows) * columns);
}

void input_grad(
    core::Team team, Matrix dy, Matrix w, float* dx, std::int64_t lddx, ProductScratch& scratch) {
  const auto [first, last] = team.share(w.columns, kPanel);
  if (first >= last) return;
  const std::int64_t columns = last - first;
  const std::int64_t chunks = (dy.rows + kSumRows - 1) / kSumRows;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const std::int64_t row = dy.rows * chunk / chunks;
    const std::int64_t rows = dy.rows * (chunk + 1) / chunks - row;
    float* const out = dx + row * lddx + first;
    for (std::int64_t k = 0; k < dy.columns; k += kPieceRows) {
      kernels::Gemm gemm{.m = rows,
                         .n = columns,
                         .k = std::min(kPieceRows, dy.columns - k),
                         .a = dy.data + row * dy.ld + k,
                         .lda = dy.ld,
                         .b = w.data + k * w.ld + first,
                         .ldb = w.ld,
                         .c = k == 0 ? out : scratch.sums(),
                         .ldc = k == 0 ? lddx : columns};
      ops().gemm(gemm, 0, rows, 0, kernels::panels_of(columns));
      if (k > 0) add(scratch.sums(), columns, rows, columns, out, lddx);
    }
  }
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

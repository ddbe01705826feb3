#include "runtime/learn/optim/orthogonal.hpp"

#include "kernels/ops.hpp"
#include "runtime/learn/optim/optimizer.hpp"

#include <algorithm>

namespace troupe::learn {
namespace {

// The constants of torch.optim.Muon.
constexpr float kA = 3.4445f, kB = -4.775f, kC = 2.0315f;
constexpr double kLeastNorm = 1e-7;

constexpr std::int64_t kOrthogonalGrain = 64;

}  // namespace

struct Orthogonalizer::Product {
  const float* a = nullptr;  // [m, k], or [k, m] by columns
  bool a_by_columns = false;
  const float* b = nullptr;  // [k, n], or [n, k] if it is transposed
  bool transpose_b = false;
  float* c = nullptr;  // [m, n]
  std::int64_t m = 0, n = 0, k = 0;
  bool accumulate = false;
};

void Orthogonalizer::multiply(const Product& product) {
  panels_.reserve_discard(kernels::packed_size(product.n, product.k), team_.memory());
  const kernels::Pack pack{.from = product.b,
                           .ldf = product.transpose_b ? product.k : product.n,
                           .n = product.n,
                           .k = product.k,
                           .to = panels_.data()};
  team_.run([&](core::Team member) {
    const core::Range own = member.share(kernels::panels_of(product.n));
    if (own.empty()) return;
    if (product.transpose_b)
      kernels::ops().pack_transposed(pack, own);
    else
      kernels::ops().pack_plain(pack, own);
  });
  const kernels::Gemm gemm{.m = product.m,
                           .n = product.n,
                           .k = product.k,
                           .a = product.a,
                           .lda = product.a_by_columns ? product.m : product.k,
                           .b = panels_.data(),
                           .a_by_columns = product.a_by_columns,
                           .c = product.c,
                           .ldc = product.n,
                           .accumulate = product.accumulate};
  team_.run([&](core::Team member) {
    const core::Range own = member.share(product.m);
    if (!own.empty()) kernels::ops().gemm(gemm, own, {0, kernels::panels_of(product.n)});
  });
}

void Orthogonalizer::scale(const float* from, float by, float* to, std::int64_t count) {
  team_.run([&](core::Team member) {
    const core::Range own = member.share(count, kOrthogonalGrain);
    if (!own.empty()) kernels::ops().scale(from, by, to, own);
  });
}

void Orthogonalizer::step(float* x, std::int64_t rows, std::int64_t columns) {
  const bool wide = rows <= columns;
  const std::int64_t side = std::min(rows, columns), depth = std::max(rows, columns);
  float *const square = square_.data(), *const scaled = scaled_.data();
  // A, then square = b A + c A A. A is symmetric to the bit.
  multiply({.a = x,
            .a_by_columns = !wide,
            .b = x,
            .transpose_b = wide,
            .c = square,
            .m = side,
            .n = side,
            .k = depth});
  scale(square, kC, scaled, side * side);
  scale(square, kB, next_.data(), side * side);
  multiply({.a = scaled,
            .b = square,
            .c = next_.data(),
            .m = side,
            .n = side,
            .k = side,
            .accumulate = true});
  scale(next_.data(), 1.0f, square, side * side);
  // next = a X + square X, or a X + X square.
  scale(x, kA, next_.data(), rows * columns);
  multiply({.a = wide ? square : x,
            .b = wide ? x : square,
            .c = next_.data(),
            .m = rows,
            .n = columns,
            .k = side,
            .accumulate = true});
  scale(next_.data(), 1.0f, x, rows * columns);
}

void Orthogonalizer::run(float* x, std::int64_t rows, std::int64_t columns, std::int64_t steps) {
  const std::int64_t side = std::min(rows, columns);
  core::Memory& memory = team_.memory();
  square_.reserve_discard(side * side, memory);
  scaled_.reserve_discard(side * side, memory);
  next_.reserve_discard(rows * columns, memory);
  const double norm = global_norm(team_, x, rows * columns);
  scale(x, static_cast<float>(1.0 / (norm + kLeastNorm)), x, rows * columns);
  for (std::int64_t i = 0; i < steps; ++i)
    step(x, rows, columns);
}

}  // namespace troupe::learn

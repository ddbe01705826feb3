#include "runtime/model/value_head.hpp"

#include "kernels/ops.hpp"
#include "runtime/core/check.hpp"

#include <algorithm>

namespace troupe::model {

using core::Team;

void value_forward(Team team,
                   const PackedWeights& weights,
                   const float* head_in,
                   std::int64_t rows,
                   float* values) {
  const ModelSpec& spec = weights.spec();
  TROUPE_CHECK(spec.head == HeadKind::kScore, "values of a language model");
  kernels::flush_denormals();
  const kernels::Gemm gemm{.m = rows,
                           .n = 1,
                           .k = spec.hidden,
                           .a = head_in,
                           .lda = spec.hidden,
                           .b = weights.head(),
                           .c = values,
                           .ldc = 1};
  const core::Range own = team.share(rows);
  if (!own.empty()) kernels::ops().gemm(gemm, own, {0, 1});
  team.barrier();
}

void ValueScratch::prepare(core::TeamRunner& team,
                           const ModelSpec& spec,
                           std::int64_t rows,
                           bool backward) {
  core::Memory& memory = team.memory();
  const std::int64_t chunk = std::min(rows, kValueRows_max);
  values.reserve_discard(rows, memory);
  if (!backward) return;
  dvalues.reserve_discard(rows, memory);
  packed_rows.reserve_discard(kernels::packed_size(spec.hidden, chunk), memory);
  products.resize(static_cast<std::size_t>(team.size()));
  for (ProductScratch& product : products)
    product.reserve(memory, chunk, 1, spec.hidden);
}

void value_backward(Team team, const ValueGrad& grad, ValueScratch& scratch) {
  kernels::flush_denormals();
  const std::int64_t hidden = grad.master.spec().hidden;
  const std::int64_t head = grad.master.layout().head, trained = grad.grads.layout().head;
  ProductScratch& products = scratch.products[static_cast<std::size_t>(team.rank)];
  for (std::int64_t begin = 0; begin < grad.rows; begin += kValueRows_max) {
    const std::int64_t rows = std::min(kValueRows_max, grad.rows - begin);
    const Matrix dvalues{grad.dvalues + begin, rows, 1, 1};
    pack_input(team, {grad.head_in + begin * hidden, rows, hidden, hidden},
               scratch.packed_rows.data());
    team.barrier();
    if (trained >= 0) {
      weight_grad(team, dvalues, scratch.packed_rows.data(), hidden, grad.grads.data() + trained);
    }
    input_grad(team, dvalues, {grad.master.data() + head, 1, hidden, hidden},
               grad.dhead_in + begin * hidden, hidden, products);
    team.barrier();
  }
}

}  // namespace troupe::model

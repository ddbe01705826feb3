// The table of one vector level.
#pragma once

#include "kernels/cpu/activations.hpp"
#include "kernels/cpu/attention.hpp"
#include "kernels/cpu/attention_backward.hpp"
#include "kernels/cpu/gemm_entry.hpp"
#include "kernels/cpu/mix_rows.hpp"
#include "kernels/cpu/optimizer.hpp"
#include "kernels/cpu/pack_weights.hpp"
#include "kernels/cpu/rows.hpp"
#include "kernels/cpu/vocab.hpp"
#include "kernels/ops.hpp"

namespace troupe::kernels::TROUPE_KERNEL_LEVEL {
namespace {

constexpr Ops make_table(const char* name) {
  return Ops{
      .name = name,
      .gemm = gemm,
      .pack_transposed = pack_transposed,
      .pack_plain = pack_plain,
      .rmsnorm = rmsnorm,
      .rope = rope,
      .silu_mul = gate_mul<Silu>,
      .gelu_mul = gate_mul<GeluTanh>,
      .mix_rows = mix_rows,
      .exp = exp_row,
      .kv_write = kv_write,
      .attention = attention,
      .attention_backward = attention_backward,
      .kv_gather = kv_gather,
      .softcap = softcap,
      .softcap_backward = softcap_backward,
      .vocab_stats = vocab_stats,
      .vocab_weighted = vocab_weighted,
      .vocab_grad = vocab_grad,
      .rmsnorm_backward = rmsnorm_backward,
      .rmsnorm_weight_grad = rmsnorm_weight_grad,
      .silu_mul_backward = gate_mul_backward<Silu>,
      .gelu_mul_backward = gate_mul_backward<GeluTanh>,
      .column_sum = column_sum,
      .adamw = adamw,
      .sum_squares = sum_squares,
      .all_finite = is_all_finite,
      .fma_probe = fma_probe,
      .read_probe = read_probe,
  };
}

}  // namespace
}  // namespace troupe::kernels::TROUPE_KERNEL_LEVEL

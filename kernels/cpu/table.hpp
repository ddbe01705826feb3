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
// After the functions that its loops call.
#include "kernels/batches.hpp"

namespace troupe::kernels::TROUPE_KERNEL_LEVEL {
namespace {

constexpr Ops make_table(const char* name) {
  return Ops{
      .name = name,
      .head_blocks = 1,
      .gemm = gemm,
      .gemm_in_pieces = gemm_in_pieces,
      .pack_transposed = pack_transposed,
      .pack_plain = pack_plain,
      .copy_rows = plain::copy_rows,
      .add_rows = plain::add_rows,
      .zero = plain::zero,
      .embed_rows = plain::embed_rows,
      .embed_grad = plain::embed_grad,
      .rmsnorm = rmsnorm,
      .rmsnorm_heads = rmsnorm_heads,
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
      .vocab_stats = vocab_stats,
      .vocab_weighted = vocab_weighted,
      .vocab_sums = vocab_sums,
      .vocab_finish = vocab_finish,
      .vocab_grad = vocab_grad,
      .draw = nullptr,
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

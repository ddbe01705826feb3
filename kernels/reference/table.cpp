// The reference level as a table.
#define TROUPE_KERNEL_LEVEL reference

#include "kernels/reference/reference.hpp"
// After the functions that its loops call.
#include "kernels/batches.hpp"

namespace troupe::kernels::reference {

constinit const Ops kOps{
    .name = "reference",
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
    .all_finite = all_finite,
    .fma_probe = fma_probe,
    .read_probe = read_probe,
};

}  // namespace troupe::kernels::reference

// The reference level as a table.
#include "kernels/reference/reference.hpp"

namespace troupe::kernels::reference {

constinit const Ops kOps{
    .name = "reference",
    .gemm = gemm,
    .pack_transposed = pack_transposed,
    .pack_plain = pack_plain,
    .rmsnorm = rmsnorm,
    .rope = rope,
    .silu_mul = gate_mul<Silu>,
    .gelu_mul = gate_mul<GeluTanh>,
    .mix_rows = mix_rows,
    .exp = exp,
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
    .all_finite = all_finite,
    .fma_probe = fma_probe,
    .read_probe = read_probe,
};

}  // namespace troupe::kernels::reference

// The device's table.
#include "kernels/cuda/activations.cuh"
#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/attention_backward.cuh"
#include "kernels/cuda/backward.cuh"
#include "kernels/cuda/draw.cuh"
#include "kernels/cuda/gemm.cuh"
#include "kernels/cuda/gemm_pieces.cuh"
#include "kernels/cuda/optimizer.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/positions.cuh"
#include "kernels/cuda/probes.cuh"
#include "kernels/cuda/rows.cuh"
#include "kernels/cuda/table.cuh"
#include "kernels/cuda/vocab.cuh"

#include <limits>

namespace troupe::kernels::cuda {
namespace {

constexpr Ops kTable{
    .name = "cuda",
    .head_blocks = std::numeric_limits<std::int64_t>::max(),
    .gemm = gemm,
    .gemm_in_pieces = gemm_in_pieces,
    .pack_transposed = pack_transposed,
    .pack_plain = pack_plain,
    .copy_rows = copy_rows,
    .add_rows = add_rows,
    .zero = zero,
    .embed_rows = embed_rows,
    .embed_grad = embed_grad,
    .rmsnorm = rmsnorm,
    .rmsnorm_heads = rmsnorm_heads,
    .rope = rope,
    .silu_mul = silu_mul,
    .gelu_mul = gelu_mul,
    .mix_rows = mix_rows,
    .exp = exp,
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
    .draw = draw_rows,
    .rmsnorm_backward = rmsnorm_backward,
    .rmsnorm_weight_grad = rmsnorm_weight_grad,
    .silu_mul_backward = silu_mul_backward,
    .gelu_mul_backward = gelu_mul_backward,
    .column_sum = column_sum,
    .adamw = adamw,
    .sum_squares = sum_squares,
    .all_finite = all_finite,
    .fma_probe = fma_probe,
    .read_probe = read_probe,
};

}  // namespace

const Ops& table() {
  return kTable;
}

}  // namespace troupe::kernels::cuda

// The device's table.
#include "kernels/cuda/activations.cuh"
#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/draw.cuh"
#include "kernels/cuda/gemm.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/positions.cuh"
#include "kernels/cuda/rows.cuh"
#include "kernels/cuda/table.cuh"

#include <limits>

namespace troupe::kernels::cuda {
namespace {

constexpr Ops kTable{
    .name = "cuda",
    .head_blocks = std::numeric_limits<std::int64_t>::max(),
    .gemm = gemm,
    .pack_transposed = pack_transposed,
    .pack_plain = pack_plain,
    .copy_rows = copy_rows,
    .add_rows = add_rows,
    .zero = zero,
    .embed_rows = embed_rows,
    .rmsnorm = rmsnorm,
    .rmsnorm_heads = rmsnorm_heads,
    .rope = rope,
    .silu_mul = silu_mul,
    .gelu_mul = gelu_mul,
    .exp = exp,
    .kv_write = kv_write,
    .attention = attention,
    .draw = draw_rows,
};

}  // namespace

const Ops& table() {
  return kTable;
}

}  // namespace troupe::kernels::cuda

// The device's table.
#include "kernels/cuda/draw.cuh"
#include "kernels/cuda/rows.cuh"
#include "kernels/cuda/table.cuh"

#include <limits>

namespace troupe::kernels::cuda {
namespace {

constexpr Ops kTable{
    .name = "cuda",
    .head_blocks = std::numeric_limits<std::int64_t>::max(),
    .copy_rows = copy_rows,
    .add_rows = add_rows,
    .zero = zero,
    .rmsnorm = rmsnorm,
    .rmsnorm_heads = rmsnorm_heads,
    .draw = draw_rows,
};

}  // namespace

const Ops& table() {
  return kTable;
}

}  // namespace troupe::kernels::cuda

// The table of operations (Ops) of a device.
#include "kernels/cuda/ops.cuh"

#include <limits>

namespace troupe::kernels::cuda {
namespace {

#define TROUPE_OP(result, name, parameters) .name = name,
constexpr Ops kTable{
    .name = "cuda",
    .head_blocks = std::numeric_limits<std::int64_t>::max(),
#include "kernels/ops.def"
};

}  // namespace

const Ops& table() {
  return kTable;
}

}  // namespace troupe::kernels::cuda

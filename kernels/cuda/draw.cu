// One block for each draw.
#include "kernels/cuda/draw.cuh"
#include "kernels/cuda/launch.cuh"

namespace troupe::kernels::cuda {

void draw_rows(const Draws&, std::int64_t) {}

}  // namespace troupe::kernels::cuda

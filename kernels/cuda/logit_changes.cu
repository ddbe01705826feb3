// Penalties, biases and masks on single logits, a thread each.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ops.cuh"
#include "kernels/draw_shapes.hpp"

namespace troupe::kernels::cuda {
namespace {

constexpr int kThreads = 128;

__global__ void __launch_bounds__(kThreads) change_kernel(ChangeLogits c, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) return;
  const LogitChange change = c.change[i];
  float& logit = c.logits[change.row * c.ld + change.token];
  c.before[i] = logit;
  logit = changed_logit(logit, change, c.penalties[change.row]);
}

__global__ void __launch_bounds__(kThreads) restore_kernel(ChangeLogits c, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) return;
  c.logits[c.change[i].row * c.ld + c.change[i].token] = c.before[i];
}

}  // namespace

void change_logits(const ChangeLogits& c, std::int64_t count) {
  launch("change_logits", change_kernel, blocks_for(count, kThreads), kThreads, 0, c, count);
}

void restore_logits(const ChangeLogits& c, std::int64_t count) {
  launch("restore_logits", restore_kernel, blocks_for(count, kThreads), kThreads, 0, c, count);
}

}  // namespace troupe::kernels::cuda

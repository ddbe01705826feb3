#include "apps/session/roles/engine_settings.hpp"

namespace troupe::app {

kernels::PanelDtype forward_dtype(const config::TrainConfig& config) {
  constexpr kernels::PanelDtype kDtypes[] = {kernels::PanelDtype::kF32, kernels::PanelDtype::kBf16,
                                             kernels::PanelDtype::kBf16Compute};
  return kDtypes[static_cast<std::size_t>(config.actor.param_dtype)];
}

engine::EngineLimits engine_limits(const config::TrainConfig& config) {
  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
  engine::EngineLimits limits;
  limits.sequences_max = static_cast<std::int32_t>(config.rollout.max_num_seqs);
  limits.step_tokens_max = static_cast<std::int32_t>(config.rollout.max_num_batched_tokens);
  limits.kv_bytes_max = static_cast<std::uint64_t>(config.rollout.kv_cache_gb * kGiB);
  limits.prefix_cache = config.rollout.enable_prefix_caching;
  return limits;
}

}  // namespace troupe::app

// What a run's configuration says about forward passes and generation engines. Used by the company
// in one process and by node processes alike. Pure.
#pragma once

#include "kernels/panels.hpp"
#include "runtime/config/train_config.hpp"
#include "runtime/engine/types.hpp"

namespace troupe::app {

// actor.param_dtype, the same for policy, reference and engines, so that their log-probs agree.
kernels::PanelDtype forward_dtype(const config::TrainConfig& config);

// `kv_cache_gb` counts 2^30 bytes.
engine::EngineLimits engine_limits(const config::TrainConfig& config);

}  // namespace troupe::app

// Random prompts for benchmarks, and packed weights of a model. Pure functions.
#pragma once

#include "runtime/core/rng.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/packed.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::app {

std::vector<std::int32_t> random_tokens(core::Rng& rng, std::int64_t count, std::int64_t vocab);

// `length` tokens: the first `shared` of them from `family`, whose other prompts begin like this
// one, the rest from `own`.
std::vector<std::int32_t> random_prompt(core::Rng& family,
                                        std::int64_t shared,
                                        core::Rng& own,
                                        std::int64_t length,
                                        std::int64_t vocab);

// Panels of `params`, in the team's memory.
std::shared_ptr<const model::PackedWeights> packed_weights(
    const model::ParamStore& params,
    core::Version version,
    core::TeamRunner& team,
    kernels::PanelDtype dtype = kernels::PanelDtype::kF32);

}  // namespace troupe::app

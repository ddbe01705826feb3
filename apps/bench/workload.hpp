// Makes random prompts and packed weights for benchmarks. Pure functions.
#pragma once

#include "runtime/core/rng.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/packed.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::bench {

std::vector<std::int32_t> random_tokens(core::Rng& rng, std::int64_t count, std::int64_t vocab);

// A prompt of `length` tokens: the first `shared` ones drawn from `family`, the rest from `own`.
// Prompts made with equal copies of `family` begin alike.
std::vector<std::int32_t> random_prompt(core::Rng& family,
                                        std::int64_t shared,
                                        core::Rng& own,
                                        std::int64_t length,
                                        std::int64_t vocab);

// Packs `params` as weights of the given version, in the team's memory.
std::shared_ptr<const model::PackedWeights> packed_weights(
    const model::ParamStore& params,
    core::Version version,
    core::TeamRunner& team,
    kernels::PanelDtype dtype = kernels::PanelDtype::kF32);

}  // namespace troupe::bench

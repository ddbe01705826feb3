// What the samples of a run need of an engine's memory for keys and values. Pure functions.
#pragma once

#include "runtime/config/train_config.hpp"
#include "runtime/core/result.hpp"
#include "runtime/engine/cache_fit.hpp"

#include <cstdint>

namespace troupe::session {

// A group of the run: samples of a prompt of that many tokens.
engine::GroupSize longest_group(const config::TrainConfig& config,
                                std::uint64_t prompt,
                                std::int64_t samples);

// Whether the engines of the configuration compute on processors.
bool engines_on_host(const config::TrainConfig& config);

engine::CacheFit cache_fit_of(const config::TrainConfig& config,
                              const model::ModelSpec& spec,
                              const engine::GroupSize& group,
                              bool on_host);

// Refuses a cache that can never hold the group. kConfig, with the key and the bytes.
core::Result<void> check_cache(const config::TrainConfig& config,
                               const model::ModelSpec& spec,
                               const engine::GroupSize& group,
                               bool on_host);

}  // namespace troupe::session

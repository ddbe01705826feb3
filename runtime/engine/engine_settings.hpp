// Resolves EngineLimits for a model: replaces values of 0 by defaults, and refuses impossible ones.
// A pure function.
#pragma once

#include "kernels/shapes.hpp"
#include "runtime/core/result.hpp"
#include "runtime/engine/types.hpp"
#include "runtime/model/spec.hpp"

#include <cstdint>

namespace troupe::engine {

struct EngineSettings {
  std::int32_t context = 0;
  std::int32_t sequences_max = 0;
  std::int32_t step_tokens_max = 0;
  std::int32_t blocks = 0;
  bool prefix_cache = true;
  // The sliding window in tokens if every layer has one that is shorter than the context; else 0.
  std::int32_t window = 0;
};

// The keys and the flags that give an engine more memory for keys and values.
inline constexpr const char* kMoreCache = "raise rollout.kv_cache_gb (--kv-cache-memory-bytes)";

// Bytes of the keys and values of a block of tokens, and how many blocks the limits come to.
std::uint64_t block_bytes(const model::ModelSpec& spec, kernels::KvDtype kv);
std::uint64_t blocks_of(const model::ModelSpec& spec,
                        kernels::KvDtype kv,
                        const EngineLimits& limits);

// Errors: kInvalidArgument (a value out of range), kResources (kv_cache_gb holds no block).
core::Result<EngineSettings> settings_for(const model::ModelSpec& spec,
                                          kernels::KvDtype kv,
                                          const EngineLimits& limits);

}  // namespace troupe::engine

// Resolves EngineLimits for a model: fills in values that are 0, and refuses impossible ones. Pure
// functions.
#pragma once

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
  std::int32_t window = 0;  // behind which all layers forget; 0: none, or longer than the context
};

// Errors: kInvalidArgument, or kResources when kv_bytes_max holds no block.
core::Result<EngineSettings> settings_for(const model::ModelSpec& spec, const EngineLimits& limits);

}  // namespace troupe::engine

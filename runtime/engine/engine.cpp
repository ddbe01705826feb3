// Making an engine.
#include "runtime/engine/engine.hpp"

#include "runtime/core/check.hpp"
#include "runtime/engine/batching_engine.hpp"
#include "runtime/model/device_check.hpp"

#include <algorithm>
#include <string>

namespace troupe::engine {

using core::ErrorCode;
using core::fail;
using std::to_string;

core::Result<std::unique_ptr<Engine>> Engine::create(
    std::shared_ptr<const model::PackedWeights> weights,
    EngineLimits limits,
    std::vector<std::int32_t> eos,
    const TokenText* text,
    core::TeamRunner& team) {
  TROUPE_CHECK(weights != nullptr, "an engine without weights");
  TROUPE_TRY(model::check_memory(weights->spec(), false, team.memory(), "rollout"));
  if (&weights->memory() != &team.memory()) {
    return fail(ErrorCode::kInvalidArgument,
                "an engine whose weights lie in another memory than its team computes in");
  }
  const std::int64_t vocab = weights->spec().vocab;
  for (const std::int32_t token : eos) {
    if (token >= 0 && token < vocab) continue;
    return fail(ErrorCode::kData,
                "end token " + to_string(token) + " is outside the vocabulary of " +
                    to_string(vocab) +
                    "; see eos_token_id in config.json or generation_config.json");
  }
  std::sort(eos.begin(), eos.end());
  TROUPE_TRY_ASSIGN(settings, settings_for(weights->spec(), limits));
  return std::unique_ptr<Engine>(
      std::make_unique<BatchingEngine>(std::move(weights), settings, std::move(eos), text, team));
}

}  // namespace troupe::engine

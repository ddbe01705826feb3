// The rules of an engine's states (engine.hpp): what its parts must be for an event, and which
// weights may follow those that it has. Pure functions.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/engine/types.hpp"
#include "runtime/model/packed.hpp"

#include <string_view>

namespace troupe::engine {

// kClosed, for `what` that needs an engine all of which is awake.
core::Result<void> check_awake(const EngineState& state, std::string_view what);
// kInvalidArgument: the state, or the choice of parts, does not admit it.
core::Result<void> check_sleep(const EngineState& state, SleepParts parts);
core::Result<void> check_wake(const EngineState& state, SleepParts parts);
// kClosed.
core::Result<void> check_set_weights(const EngineState& state);

// What an engine has been made for.
struct EngineModel {
  const model::ModelSpec& spec;
  std::int64_t context = 0;
  const core::Memory& memory;
  kernels::KvDtype kv_dtype;
};
// kData for weights of another model, kInvalidArgument for those in another memory or packed
// otherwise.
core::Result<void> check_fits(const model::PackedWeights& weights, const EngineModel& engine);

}  // namespace troupe::engine

#include "runtime/engine/engine_states.hpp"

#include <string>

namespace troupe::engine {
namespace {

constexpr const char* kOrder =
    "; the order is wake of the weights, set_weights, wake of the KV blocks";

std::string names_of(SleepParts parts) {
  if (parts.weights && parts.kv) return "weights and KV blocks";
  return parts.weights ? "the weights" : "the KV blocks";
}

}  // namespace

core::Result<void> check_awake(const EngineState& state, std::string_view what) {
  if (state.awake()) return {};
  std::string why = "the engine's KV blocks sleep; wake them first";
  if (state.weights == WeightsState::kAsleep) {
    why = "the engine's weights sleep; wake them and set weights first";
  } else if (state.weights == WeightsState::kAwaited) {
    why = "the engine's weights were woken and not set; call set_weights first";
  }
  return fail(ErrorCode::kClosed, std::string(what) + ": " + why);
}

core::Result<void> check_sleep(const EngineState& state, SleepParts parts) {
  if (!parts.weights && !parts.kv) {
    return fail(ErrorCode::kInvalidArgument, "sleep: name the weights, the KV blocks or both");
  }
  if ((parts.weights && state.weights != WeightsState::kAwake) || (parts.kv && state.kv_asleep)) {
    return fail(ErrorCode::kInvalidArgument,
                "sleep of " + names_of(parts) + ": asleep already, or woken without weights");
  }
  return {};
}

core::Result<void> check_wake(const EngineState& state, SleepParts parts) {
  if (parts.weights == parts.kv) {
    return fail(ErrorCode::kInvalidArgument, std::string("wake: name one part at a time") + kOrder);
  }
  if (parts.weights && state.weights != WeightsState::kAsleep) {
    return fail(ErrorCode::kInvalidArgument, state.weights == WeightsState::kAwake
                                                 ? "wake: the weights do not sleep"
                                                 : "wake: the weights are awake; set them now");
  }
  if (parts.kv && !state.kv_asleep) {
    return fail(ErrorCode::kInvalidArgument, "wake: the KV blocks do not sleep");
  }
  if (parts.kv && state.weights != WeightsState::kAwake) {
    return fail(ErrorCode::kInvalidArgument,
                std::string("wake of the KV blocks while weights are missing") + kOrder);
  }
  return {};
}

core::Result<void> check_set_weights(const EngineState& state) {
  if (state.weights != WeightsState::kAsleep) return {};
  return fail(ErrorCode::kClosed,
              std::string("set_weights while the engine's weights sleep") + kOrder);
}

core::Result<void> check_fits(const model::PackedWeights& weights, const EngineModel& engine) {
  const model::ModelSpec& spec = weights.spec();
  const model::ModelSpec& its = engine.spec;
  if (spec.vocab != its.vocab || spec.hidden != its.hidden || spec.layers != its.layers ||
      spec.kv_width() != its.kv_width() || spec.context < engine.context ||
      spec.window_of_all() != its.window_of_all()) {
    return fail(ErrorCode::kData,
                "set_weights: these are weights of another model than the engine was made for");
  }
  if (&weights.memory() != &engine.memory) {
    return fail(ErrorCode::kInvalidArgument,
                "set_weights: these weights lie in another memory than the engine computes in");
  }
  if (weights.kv_dtype() != engine.kv_dtype) {
    return fail(ErrorCode::kInvalidArgument,
                std::string("set_weights: keys and values of weights stored as ") +
                    kernels::name_of(weights.dtype()) +
                    " have another type than those in the engine",
                "pack them as the first ones");
  }
  return {};
}

}  // namespace troupe::engine

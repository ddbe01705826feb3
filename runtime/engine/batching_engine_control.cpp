// Control calls: pause and resume, sleep and wake, new weights. The states are those of engine.hpp.
#include "runtime/core/check.hpp"
#include "runtime/engine/batching_engine.hpp"

#include <algorithm>
#include <string>

namespace troupe::engine {

using core::ErrorCode;
using core::fail;

namespace {

constexpr const char* kOrder =
    "; the order is wake of the weights, set_weights, wake of the KV blocks";

std::string names_of(SleepParts parts) {
  if (parts.weights && parts.kv) return "weights and KV blocks";
  return parts.weights ? "the weights" : "the KV blocks";
}

}  // namespace

core::Result<void> BatchingEngine::check_awake(std::string_view what) const {
  if (state_.awake()) return {};
  std::string why = "the engine's KV blocks sleep; wake them first";
  if (state_.weights == WeightsState::kAsleep) {
    why = "the engine's weights sleep; wake them and set weights first";
  } else if (state_.weights == WeightsState::kAwaited) {
    why = "the engine's weights were woken and not set; call set_weights first";
  }
  return fail(ErrorCode::kClosed, std::string(what) + ": " + why);
}

core::Result<std::vector<Sample>> BatchingEngine::pause(PauseMode mode) {
  std::vector<Sample> ended;
  if (mode == PauseMode::kAbort) {
    for (const core::GroupId group : scheduler_.groups()) {
      for (Sample& sample : abort(group))
        ended.push_back(std::move(sample));
    }
    std::sort(ended.begin(), ended.end(), [](const Sample& a, const Sample& b) {
      return a.group != b.group ? a.group < b.group : a.index < b.index;
    });
  } else if (mode == PauseMode::kRecompute) {
    scheduler_.release_all();
  }
  state_.paused = true;
  return ended;
}

core::Result<void> BatchingEngine::resume() {
  if (!state_.paused) {
    return fail(ErrorCode::kInvalidArgument, "resume: the engine is not paused");
  }
  state_.paused = false;
  return {};
}

core::Result<MemoryReport> BatchingEngine::sleep(SleepParts parts) {
  if (!parts.weights && !parts.kv) {
    return fail(ErrorCode::kInvalidArgument, "sleep: name the weights, the KV blocks or both");
  }
  if ((parts.weights && state_.weights != WeightsState::kAwake) || (parts.kv && state_.kv_asleep)) {
    return fail(ErrorCode::kInvalidArgument,
                "sleep of " + names_of(parts) + ": asleep already, or woken without weights");
  }
  MemoryReport report = report_before();
  scheduler_.release_all();
  runner_.forget_places();
  if (parts.weights) {
    report.weights_held_elsewhere = weights_.use_count() > 1;
    weights_.reset();
    state_.weights = WeightsState::kAsleep;
  }
  if (parts.kv) {
    scheduler_.forget_cached();
    pool_ = model::KvPool();
    state_.kv_asleep = true;
  }
  report_after(report);
  return report;
}

core::Result<MemoryReport> BatchingEngine::wake(SleepParts parts) {
  if (parts.weights == parts.kv) {
    return fail(ErrorCode::kInvalidArgument, std::string("wake: name one part at a time") + kOrder);
  }
  if (parts.weights && state_.weights != WeightsState::kAsleep) {
    return fail(ErrorCode::kInvalidArgument, state_.weights == WeightsState::kAwake
                                                 ? "wake: the weights do not sleep"
                                                 : "wake: the weights are awake; set them now");
  }
  if (parts.kv && !state_.kv_asleep) {
    return fail(ErrorCode::kInvalidArgument, "wake: the KV blocks do not sleep");
  }
  if (parts.kv && state_.weights != WeightsState::kAwake) {
    return fail(ErrorCode::kInvalidArgument,
                std::string("wake of the KV blocks while weights are missing") + kOrder);
  }
  MemoryReport report = report_before();
  if (parts.weights) {
    state_.weights = WeightsState::kAwaited;
  } else {
    pool_ = make_pool();
    state_.kv_asleep = false;
  }
  report_after(report);
  return report;
}

model::KvPool BatchingEngine::make_pool() const {
  return model::KvPool(spec_, spec_.layers, settings_.blocks + (memory_.on_host() ? 0 : 1),
                       memory_);
}

MemoryReport BatchingEngine::report_before() const {
  MemoryReport report;
  report.weights.before = weights_ == nullptr ? 0 : weights_->bytes();
  report.kv.before = pool_.bytes();
  return report;
}

void BatchingEngine::report_after(MemoryReport& report) const {
  report.weights.after = weights_ == nullptr ? 0 : weights_->bytes();
  report.kv.after = pool_.bytes();
}

core::Result<void> BatchingEngine::set_weights(std::shared_ptr<const model::PackedWeights> weights,
                                               KvAction action) {
  TROUPE_CHECK(weights != nullptr, "set_weights without weights");
  if (state_.weights == WeightsState::kAsleep) {
    return fail(ErrorCode::kClosed,
                std::string("set_weights while the engine's weights sleep") + kOrder);
  }
  const model::ModelSpec& spec = weights->spec();
  if (spec.vocab != spec_.vocab || spec.hidden != spec_.hidden || spec.layers != spec_.layers ||
      spec.kv_width() != spec_.kv_width() || spec.context < settings_.context ||
      spec.window_of_all() != spec_.window_of_all()) {
    return fail(ErrorCode::kData,
                "set_weights: these are weights of another model than the engine was made for");
  }
  if (&weights->memory() != &memory_) {
    return fail(ErrorCode::kInvalidArgument,
                "set_weights: these weights lie in another memory than the engine computes in");
  }
  if (weights == weights_) return {};
  weights_ = std::move(weights);
  state_.weights = WeightsState::kAwake;
  scheduler_.new_weights(action);
  return {};
}

const model::PackedWeights& BatchingEngine::weights() const {
  TROUPE_CHECK(weights_ != nullptr, "the engine's weights sleep");
  return *weights_;
}

}  // namespace troupe::engine

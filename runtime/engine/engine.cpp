#include "runtime/engine/engine.hpp"

#include "runtime/core/check.hpp"
#include "runtime/engine/engine_settings.hpp"
#include "runtime/engine/engine_states.hpp"
#include "runtime/engine/limits.hpp"
#include "runtime/engine/sample_writer.hpp"
#include "runtime/engine/scheduler.hpp"
#include "runtime/engine/step_runner.hpp"
#include "runtime/model/device_check.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace troupe::engine {

using std::to_string;

namespace {

void sort_samples(std::vector<Sample>& samples) {
  std::sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) {
    return a.group != b.group ? a.group < b.group : a.index < b.index;
  });
}

RequestBounds bounds_of(const model::ModelSpec& spec,
                        const EngineSettings& settings,
                        std::size_t end_tokens,
                        const TokenText* text) {
  return {.vocab = spec.vocab,
          .context = settings.context,
          .sequences_max = settings.sequences_max,
          .blocks = settings.blocks,
          .window = {settings.window, settings.step_tokens_max},
          .end_tokens = end_tokens,
          .has_text = text != nullptr,
          .has_experts = spec.moe.sparse_layers(spec.layers) > 0};
}

}  // namespace

core::Result<std::unique_ptr<Engine>> Engine::create(
    std::shared_ptr<const model::PackedWeights> weights,
    EngineLimits limits,
    std::vector<std::int32_t> eos,
    const TokenText* text,
    core::TeamRunner& team) {
  TROUPE_CHECK(weights != nullptr, "an engine without weights");
  TROUPE_TRY(model::check_memory(weights->spec(), team.memory(), "rollout"));
  if (&weights->memory() != &team.memory()) {
    return fail(ErrorCode::kInvalidArgument,
                "the weights lie in another memory than the engine's team computes in");
  }
  const std::int64_t vocab = weights->spec().vocab;
  for (const std::int32_t token : eos) {
    if (token >= 0 && token < vocab) continue;
    return fail(
        ErrorCode::kData,
        "end token " + to_string(token) + " is outside the vocabulary of " + to_string(vocab),
        "see eos_token_id in config.json or generation_config.json");
  }
  std::sort(eos.begin(), eos.end());
  TROUPE_TRY_ASSIGN(settings, settings_for(weights->spec(), weights->kv_dtype(), limits));
  return std::unique_ptr<Engine>(
      new Engine(std::move(weights), settings, std::move(eos), text, team));
}

Engine::Engine(std::shared_ptr<const model::PackedWeights> weights,
               const EngineSettings& settings,
               std::vector<std::int32_t> eos,
               const TokenText* text,
               core::TeamRunner& team)
    : spec_(weights->spec()),
      weights_(std::move(weights)),
      bounds_(bounds_of(spec_, settings, eos.size(), text)),
      members_(team.size()),
      memory_(team.memory()),
      kv_dtype_(weights_->kv_dtype()),
      writer_(std::make_unique<SampleWriter>(std::move(eos), text)),
      scheduler_(std::make_unique<Scheduler>(settings.blocks,
                                             settings.sequences_max,
                                             settings.step_tokens_max,
                                             settings.prefix_cache,
                                             settings.window)),
      plan_(std::make_unique<StepPlan>(
          settings.sequences_max,
          settings.step_tokens_max,
          std::int64_t{settings.sequences_max} * blocks_for(settings.context),
          spec_)),
      pool_(make_pool()),
      computer_(std::make_unique<StepRunner>(
          spec_, settings.sequences_max, settings.step_tokens_max, team)) {
  copies_.reserve(static_cast<std::size_t>(settings.sequences_max));
}

Engine::~Engine() = default;

void Engine::wrap_steps(const StepWrap& wrap) {
  computer_ = wrap(std::move(computer_));
}

core::Result<void> Engine::submit(GroupRequest request) {
  const std::string where = "group " + to_string(request.id.value);
  TROUPE_TRY(check_awake(state_, where));
  TROUPE_TRY(check_request(request, bounds_));
  if (scheduler_->find(request.id) != nullptr) {
    return fail(ErrorCode::kInvalidArgument, where + " is in the engine already");
  }
  if (scheduler_->queue_full()) {
    return fail(ErrorCode::kOverloaded,
                where + ": " + to_string(limits::kEngineQueue_groups_max) + " groups wait already",
                "submit it when some have finished");
  }
  TROUPE_TRY_ASSIGN(group, writer_->group_of(std::move(request)));
  const std::shared_ptr<SampleGuide>& guide = group->at(0).guide;
  if (guide != nullptr && guide->allowed().size() != mask_words(bounds_.vocab)) {
    return fail(ErrorCode::kInvalidArgument, where + ": its guide is of another vocabulary");
  }
  scheduler_->submit(std::move(group));
  return {};
}

std::vector<Sample> Engine::abort(core::GroupId group) {
  std::vector<Sample> partial;
  const std::unique_ptr<Group> removed = scheduler_->remove(group);
  if (removed == nullptr) return partial;
  if (broken_ == group) broken_.reset();
  for (SampleState& sample : removed->samples) {
    if (sample.status == SampleStatus::kFinished) continue;
    sample.out.finish = FinishReason::kAborted;
    partial.push_back(std::move(sample.out));
    ++counters_.aborted;
  }
  return partial;
}

bool Engine::idle() const {
  return scheduler_->idle();
}

const Sample* Engine::unfinished(core::GroupId group, std::int32_t index) const {
  const Group* const found = scheduler_->find(group);
  if (found == nullptr || index < 0 || index >= found->request.samples) return nullptr;
  const SampleState& state = found->at(index);
  return state.status == SampleStatus::kFinished ? nullptr : &state.out;
}

std::span<const std::int32_t> Engine::drawn(core::GroupId group, std::int32_t index) const {
  const Sample* const sample = unfinished(group, index);
  if (sample == nullptr) return {};
  return sample->tokens;
}

core::Result<std::vector<Sample>> Engine::step() {
  broken_.reset();
  TROUPE_TRY(check_awake(state_, "a step"));
  if (state_.paused) return std::vector<Sample>();
  const std::span<const Slice> slices = scheduler_->schedule();
  if (slices.empty()) return std::vector<Sample>();
  plan_->build(slices, members_, spare_block());
  TROUPE_TRY_ASSIGN(draws, computer_->run(*weights_, *plan_, pool_));
  ++counters_.steps;
  TROUPE_TRY(check_finite(draws));
  finished_.clear();
  commit(slices, draws);
  sort_samples(finished_);
  return std::move(finished_);
}

core::Result<void> Engine::check_finite(std::span<const Draw> draws) {
  for (std::size_t i = 0; i < draws.size(); ++i) {
    if (std::isfinite(draws[i].logprob)) continue;
    const DrawJob& job = plan_->jobs()[i];
    const Group& group = *job.group;
    broken_ = group.request.id;
    return fail(ErrorCode::kNumeric,
                "group " + to_string(group.request.id.value) + ", sample " + to_string(job.sample) +
                    ": the logits for position " + to_string(job.position) +
                    " are not finite under weights of version " + to_string(weights_->version()));
  }
  return {};
}

// Commits keys and values before the draws: the last prompt block of a new group must be copied
// before a sample that finishes releases it.
void Engine::commit(std::span<const Slice> slices, std::span<const Draw> draws) {
  copies_.clear();
  for (const Slice& slice : slices) {
    const bool newest = slice.draws && slice.group->forked;
    counters_.prefill_tokens += static_cast<std::uint64_t>(slice.count - (newest ? 1 : 0));
    scheduler_->commit(slice, copies_);
  }
  for (const BlockCopy& copy : copies_)
    pool_.copy_block(copy.from, copy.to);
  for (std::size_t i = 0; i < draws.size(); ++i) {
    const DrawJob& job = plan_->jobs()[i];
    counters_.decode_tokens += job.target < 0 ? 1 : 0;
    if (!writer_->write(job, draws[i], weights_->version())) continue;
    scheduler_->finish(*job.group, job.sample);
    ++counters_.finished;
    finished_.push_back(std::move(job.group->at(job.sample).out));
  }
  if (!finished_.empty()) scheduler_->sweep();
}

EngineCounters Engine::counters() const {
  EngineCounters counters = counters_;
  const BlockTables& tables = scheduler_->tables();
  counters.preempted = scheduler_->preempted();
  counters.replayed = computer_->replayed();
  counters.prefix_query_tokens = tables.prefix_query_tokens();
  counters.prefix_hit_tokens = tables.prefix_hit_tokens();
  counters.evicted = tables.evicted();
  counters.cached_blocks = tables.index().size();
  counters.waiting_groups = scheduler_->waiting_groups();
  counters.waiting_sequences = scheduler_->waiting();
  counters.running_sequences = scheduler_->running();
  counters.free_blocks = tables.pool().free_count();
  counters.total_blocks = tables.pool().total();
  return counters;
}

std::vector<Sample> Engine::pause(PauseMode mode) {
  std::vector<Sample> ended;
  if (mode == PauseMode::kAbort) {
    for (const core::GroupId group : scheduler_->groups()) {
      for (Sample& sample : abort(group))
        ended.push_back(std::move(sample));
    }
    sort_samples(ended);
  } else if (mode == PauseMode::kRecompute) {
    scheduler_->release_all();
  }
  state_.paused = true;
  return ended;
}

core::Result<void> Engine::resume() {
  if (!state_.paused) {
    return fail(ErrorCode::kInvalidArgument, "resume: the engine is not paused");
  }
  state_.paused = false;
  return {};
}

core::Result<MemoryReport> Engine::sleep(SleepParts parts) {
  TROUPE_TRY(check_sleep(state_, parts));
  MemoryReport report = report_before();
  scheduler_->release_all();
  computer_->forget_places();
  if (parts.weights) {
    report.weights_held_elsewhere = weights_.use_count() > 1;
    weights_.reset();
    state_.weights = WeightsState::kAsleep;
  }
  if (parts.kv) {
    scheduler_->forget_cached();
    pool_ = model::KvPool();
    state_.kv_asleep = true;
  }
  report_after(report);
  return report;
}

core::Result<MemoryReport> Engine::wake(SleepParts parts) {
  TROUPE_TRY(check_wake(state_, parts));
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

model::KvPool Engine::make_pool() const {
  return model::KvPool(spec_, spec_.layers, bounds_.blocks + (memory_.on_host() ? 0 : 1), memory_,
                       kv_dtype_);
}

MemoryReport Engine::report_before() const {
  MemoryReport report;
  report.weights.before = weights_ == nullptr ? 0 : weights_->bytes();
  report.kv.before = pool_.bytes();
  return report;
}

void Engine::report_after(MemoryReport& report) const {
  report.weights.after = weights_ == nullptr ? 0 : weights_->bytes();
  report.kv.after = pool_.bytes();
}

core::Result<void> Engine::set_weights(std::shared_ptr<const model::PackedWeights> weights,
                                       KvAction action) {
  TROUPE_CHECK(weights != nullptr, "set_weights without weights");
  TROUPE_TRY(check_set_weights(state_));
  TROUPE_TRY(check_fits(*weights, {spec_, bounds_.context, memory_, kv_dtype_}));
  if (weights == weights_) return {};
  weights_ = std::move(weights);
  state_.weights = WeightsState::kAwake;
  scheduler_->new_weights(action);
  return {};
}

const model::PackedWeights& Engine::weights() const {
  TROUPE_CHECK(weights_ != nullptr, "the engine's weights sleep");
  return *weights_;
}

}  // namespace troupe::engine

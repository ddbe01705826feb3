// The engine's loop: schedule, build the plan in place, run it on the team, commit what was drawn.
// A step whose logits are not finite commits nothing: after the named group is aborted the others
// go on.
#include "runtime/engine/engine.hpp"

#include "runtime/core/check.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/core/rng.hpp"
#include "runtime/engine/request_check.hpp"
#include "runtime/engine/scheduler.hpp"
#include "runtime/engine/step_plan.hpp"
#include "runtime/engine/step_runner.hpp"
#include "runtime/engine/stop_text.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace troupe::engine {
namespace {

using core::ErrorCode;
using core::fail;
using std::to_string;

constexpr std::uint64_t kBlocks_max = 1ull << 26;  // slot numbers fit into 32 bits

struct Settings {
  std::int32_t context = 0;
  std::int32_t sequences_max = 0;
  std::int32_t step_tokens_max = 0;
  std::int32_t blocks = 0;
};

core::Result<Settings> settings_for(const model::ModelSpec& spec, const EngineLimits& limits) {
  Settings settings;
  const std::int64_t context = limits.context == 0 ? spec.context : limits.context;
  if (context < 1 || context > spec.context) {
    return fail(ErrorCode::kInvalidArgument, "the engine's context is " + to_string(context) +
                                                 "; the model has positions for " +
                                                 to_string(spec.context));
  }
  if (limits.sequences_max < 1 || limits.step_tokens_max < 1) {
    return fail(ErrorCode::kInvalidArgument,
                "sequences_max and step_tokens_max must be at least 1; they are " +
                    to_string(limits.sequences_max) + " and " + to_string(limits.step_tokens_max));
  }
  const auto block_bytes =
      static_cast<std::uint64_t>(spec.layers * 2 * spec.kv_width() * kBlockTokens) * sizeof(float);
  std::uint64_t blocks = static_cast<std::uint64_t>(std::max<std::int64_t>(limits.kv_blocks, 0));
  if (blocks == 0) {
    const auto useful = static_cast<std::uint64_t>(limits.sequences_max) *
                        static_cast<std::uint64_t>(blocks_for(context));
    blocks = std::min(limits.kv_bytes_max / block_bytes, useful);
  }
  if (blocks == 0) {
    return fail(ErrorCode::kResources, "kv_bytes_max is " + to_string(limits.kv_bytes_max) +
                                           " and one KV block takes " + to_string(block_bytes) +
                                           " bytes; raise it");
  }
  settings.blocks = static_cast<std::int32_t>(std::min(blocks, kBlocks_max));
  settings.context = static_cast<std::int32_t>(context);
  settings.sequences_max = limits.sequences_max;
  settings.step_tokens_max = limits.step_tokens_max;
  return settings;
}

bool by_group_and_index(const Sample& a, const Sample& b) {
  return a.group != b.group ? a.group < b.group : a.index < b.index;
}

class BatchingEngine final : public Engine {
 public:
  BatchingEngine(std::shared_ptr<const model::PackedWeights> weights,
                 const Settings& settings,
                 std::vector<std::int32_t> eos,
                 const TokenText* text,
                 core::TeamRunner& team)
      : weights_(std::move(weights)),
        settings_(settings),
        eos_(std::move(eos)),
        text_(text),
        members_(team.size()),
        scheduler_(settings.blocks, settings.sequences_max, settings.step_tokens_max),
        plan_(settings.sequences_max,
              settings.step_tokens_max,
              std::int64_t{settings.sequences_max} * blocks_for(settings.context),
              weights_->spec().kv_heads),
        pool_(weights_->spec(), weights_->spec().layers, settings.blocks),
        runner_(weights_->spec(), settings.sequences_max, team) {
    copies_.reserve(static_cast<std::size_t>(settings.sequences_max));
  }

  core::Result<void> submit(GroupRequest request) override;
  std::vector<Sample> abort(core::GroupId group) override;
  core::Result<std::vector<Sample>> step() override;
  bool idle() const override { return scheduler_.idle(); }
  std::span<const std::int32_t> drawn(core::GroupId group, std::int32_t index) override;
  void set_weights(std::shared_ptr<const model::PackedWeights> weights, KvAction action) override;
  const model::PackedWeights& weights() const override { return *weights_; }
  EngineCounters counters() const override;

 private:
  std::unique_ptr<Group> make_group(GroupRequest request) const;
  core::Result<void> check_finite(std::span<const Draw> draws) const;
  void commit(std::span<const Slice> slices, std::span<const Draw> draws);
  void append(const DrawJob& job, const Draw& draw);
  bool finished(const Group& group, SampleState& sample) const;

  std::shared_ptr<const model::PackedWeights> weights_;
  const Settings settings_;
  const std::vector<std::int32_t> eos_;  // ascending
  const TokenText* const text_;
  const int members_;
  Scheduler scheduler_;
  StepPlan plan_;
  model::KvPool pool_;
  StepRunner runner_;
  std::vector<BlockCopy> copies_;
  std::vector<Sample> finished_;  // of the step in progress
  EngineCounters counters_;
};

std::unique_ptr<Group> BatchingEngine::make_group(GroupRequest request) const {
  auto group = std::make_unique<Group>();
  group->end_tokens = request.sampling.stop_tokens;
  if (!request.sampling.ignore_eos) {
    group->end_tokens.insert(group->end_tokens.end(), eos_.begin(), eos_.end());
  }
  std::sort(group->end_tokens.begin(), group->end_tokens.end());
  group->samples.resize(static_cast<std::size_t>(request.samples));
  for (std::int32_t i = 0; i < request.samples; ++i) {
    SampleState& sample = group->at(i);
    sample.out.group = request.id;
    sample.out.index = i;
    sample.seed = core::derive_seed(request.seed, static_cast<std::uint64_t>(i));
  }
  group->request = std::move(request);
  return group;
}

core::Result<void> BatchingEngine::submit(GroupRequest request) {
  RequestBounds bounds;
  bounds.vocab = weights_->spec().vocab;
  bounds.context = settings_.context;
  bounds.sequences_max = settings_.sequences_max;
  bounds.blocks = settings_.blocks;
  bounds.end_tokens = eos_.size();
  bounds.has_text = text_ != nullptr;
  TROUPE_TRY(check_request(request, bounds));
  const std::string where = "group " + to_string(request.id.value);
  if (scheduler_.find(request.id) != nullptr) {
    return fail(ErrorCode::kInvalidArgument, where + " is in the engine already");
  }
  if (scheduler_.queue_full()) {
    return fail(ErrorCode::kOverloaded,
                where + ": " + to_string(core::limits::kEngineQueue_groups_max) +
                    " groups wait already; submit it when some have finished");
  }
  scheduler_.submit(make_group(std::move(request)));
  return {};
}

std::vector<Sample> BatchingEngine::abort(core::GroupId group) {
  std::vector<Sample> partial;
  const std::unique_ptr<Group> removed = scheduler_.remove(group);
  if (removed == nullptr) return partial;
  for (SampleState& sample : removed->samples) {
    if (sample.status == SampleStatus::kFinished) continue;
    sample.out.finish = FinishReason::kAborted;
    partial.push_back(std::move(sample.out));
    ++counters_.aborted;
  }
  return partial;
}

std::span<const std::int32_t> BatchingEngine::drawn(core::GroupId group, std::int32_t index) {
  Group* const found = scheduler_.find(group);
  if (found == nullptr || index < 0 || index >= found->request.samples) return {};
  return found->at(index).out.tokens;
}

core::Result<std::vector<Sample>> BatchingEngine::step() {
  const std::span<const Slice> slices = scheduler_.schedule();
  if (slices.empty()) return std::vector<Sample>();
  plan_.build(slices, members_);
  const std::span<const Draw> draws = runner_.run(*weights_, plan_, pool_);
  ++counters_.steps;
  TROUPE_TRY(check_finite(draws));
  finished_.clear();
  commit(slices, draws);
  std::sort(finished_.begin(), finished_.end(), by_group_and_index);
  return std::move(finished_);
}

core::Result<void> BatchingEngine::check_finite(std::span<const Draw> draws) const {
  for (std::size_t i = 0; i < draws.size(); ++i) {
    if (std::isfinite(draws[i].logprob)) continue;
    const DrawJob& job = plan_.jobs()[i];
    const Group& group = *job.group;
    return fail(ErrorCode::kNumeric,
                "group " + to_string(group.request.id.value) + ", sample " + to_string(job.sample) +
                    ": the logits for position " + to_string(group.length(group.at(job.sample))) +
                    " are not finite under weights of version " + to_string(weights_->version()) +
                    "; abort the group or load other weights");
  }
  return {};
}

// Keys and values first, so that the tails of a new group are copied before a sample can let go of
// them.
void BatchingEngine::commit(std::span<const Slice> slices, std::span<const Draw> draws) {
  copies_.clear();
  for (const Slice& slice : slices) {
    const bool newest = slice.draws && slice.group->forked;
    counters_.prefill_tokens += static_cast<std::uint64_t>(slice.count - (newest ? 1 : 0));
    scheduler_.commit(slice, copies_);
  }
  for (const BlockCopy& copy : copies_)
    pool_.copy_block(copy.from, copy.to);
  for (std::size_t i = 0; i < draws.size(); ++i)
    append(plan_.jobs()[i], draws[i]);
  if (!finished_.empty()) scheduler_.sweep();
}

void BatchingEngine::append(const DrawJob& job, const Draw& draw) {
  Group& group = *job.group;
  SampleState& state = group.at(job.sample);
  Sample& out = state.out;
  const SamplingParams& params = group.request.sampling;
  const bool truncated =
      params.temperature > 0.0f && KeptSet::truncates(params, weights_->spec().vocab);
  if (out.tokens.empty()) {
    const auto most = static_cast<std::size_t>(params.max_new_tokens);
    out.tokens.reserve(most);
    out.logprobs.reserve(most);
    out.versions.reserve(most);
    if (truncated) out.kept_mass.reserve(most);
  }
  out.tokens.push_back(draw.token);
  out.logprobs.push_back(draw.logprob);
  out.versions.push_back(weights_->version());
  if (truncated) out.kept_mass.push_back(draw.kept_mass);
  ++counters_.decode_tokens;
  if (!finished(group, state)) return;
  scheduler_.finish(group, job.sample);
  ++counters_.finished;
  finished_.push_back(std::move(out));
}

// Sets the reason when the newest token ends the sample.
bool BatchingEngine::finished(const Group& group, SampleState& sample) const {
  const SamplingParams& params = group.request.sampling;
  const std::vector<std::int32_t>& tokens = sample.out.tokens;
  const auto count = static_cast<std::int32_t>(tokens.size());
  const auto holds = [&](const std::vector<std::int32_t>& ids) {
    return std::binary_search(ids.begin(), ids.end(), tokens.back());
  };
  if (!params.ignore_eos && holds(eos_)) {
    sample.out.finish = FinishReason::kEos;
  } else if (holds(group.end_tokens) ||
             (!params.stop_strings.empty() && count >= params.min_new_tokens &&
              completes_stop(*text_, tokens, params.stop_strings))) {
    sample.out.finish = FinishReason::kStop;
  } else if (count == params.max_new_tokens) {
    sample.out.finish = FinishReason::kLength;
  } else {
    return false;
  }
  return true;
}

void BatchingEngine::set_weights(std::shared_ptr<const model::PackedWeights> weights,
                                 KvAction action) {
  TROUPE_CHECK(weights != nullptr, "set_weights without weights");
  const model::ModelSpec& spec = weights->spec();
  const model::ModelSpec& own = weights_->spec();
  TROUPE_CHECK(spec.vocab == own.vocab && spec.hidden == own.hidden && spec.layers == own.layers &&
                   spec.kv_width() == own.kv_width() && spec.context >= settings_.context,
               "weights of another model");
  if (weights == weights_) return;
  weights_ = std::move(weights);
  if (action == KvAction::kRecompute) scheduler_.forget_computed();
}

EngineCounters BatchingEngine::counters() const {
  EngineCounters counters = counters_;
  counters.preempted = scheduler_.preempted();
  counters.waiting_groups = scheduler_.waiting_groups();
  counters.running_sequences = scheduler_.running();
  counters.free_blocks = scheduler_.pool().free_count();
  counters.total_blocks = scheduler_.pool().total();
  return counters;
}

}  // namespace

core::Result<std::unique_ptr<Engine>> Engine::create(
    std::shared_ptr<const model::PackedWeights> weights,
    EngineLimits limits,
    std::vector<std::int32_t> eos,
    const TokenText* text,
    core::TeamRunner& team) {
  TROUPE_CHECK(weights != nullptr, "an engine without weights");
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

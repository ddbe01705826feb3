// The engine's loop: taking groups in, steps, ends of samples.
#include "runtime/engine/batching_engine.hpp"

#include "runtime/core/rng.hpp"
#include "runtime/engine/limits.hpp"
#include "runtime/engine/request_check.hpp"
#include "runtime/engine/stop_text.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace troupe::engine {

using core::ErrorCode;
using core::fail;
using std::to_string;

namespace {

bool by_group_and_index(const Sample& a, const Sample& b) {
  return a.group != b.group ? a.group < b.group : a.index < b.index;
}

}  // namespace

std::unique_ptr<Group> BatchingEngine::make_group(GroupRequest request) const {
  auto group = std::make_unique<Group>();
  group->end_tokens = request.sampling.stop_tokens;
  if (!request.sampling.ignore_eos) {
    group->end_tokens.insert(group->end_tokens.end(), eos_.begin(), eos_.end());
  }
  std::sort(group->end_tokens.begin(), group->end_tokens.end());
  if (request.sampling.repetition_penalty != 1.0f) {
    std::vector<std::int32_t>& tokens = group->prompt_tokens;
    tokens = request.prompt;
    std::sort(tokens.begin(), tokens.end());
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  }
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
  TROUPE_TRY(check_awake("group " + to_string(request.id.value)));
  RequestBounds bounds;
  bounds.vocab = spec_.vocab;
  bounds.context = settings_.context;
  bounds.sequences_max = settings_.sequences_max;
  bounds.blocks = settings_.blocks;
  bounds.window = {settings_.window, settings_.step_tokens_max};
  bounds.end_tokens = eos_.size();
  bounds.has_text = text_ != nullptr;
  bounds.has_experts = spec_.moe.sparse_layers(spec_.layers) > 0;
  TROUPE_TRY(check_request(request, bounds));
  const std::string where = "group " + to_string(request.id.value);
  if (scheduler_.find(request.id) != nullptr) {
    return fail(ErrorCode::kInvalidArgument, where + " is in the engine already");
  }
  if (scheduler_.queue_full()) {
    return fail(ErrorCode::kOverloaded,
                where + ": " + to_string(limits::kEngineQueue_groups_max) +
                    " groups wait already; submit it when some have finished");
  }
  scheduler_.submit(make_group(std::move(request)));
  return {};
}

std::vector<Sample> BatchingEngine::abort(core::GroupId group) {
  std::vector<Sample> partial;
  const std::unique_ptr<Group> removed = scheduler_.remove(group);
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

const Sample* BatchingEngine::unfinished(core::GroupId group, std::int32_t index) {
  Group* const found = scheduler_.find(group);
  if (found == nullptr || index < 0 || index >= found->request.samples) return nullptr;
  const SampleState& state = found->at(index);
  return state.status == SampleStatus::kFinished ? nullptr : &state.out;
}

std::span<const std::int32_t> BatchingEngine::drawn(core::GroupId group, std::int32_t index) {
  const Sample* const sample = unfinished(group, index);
  if (sample == nullptr) return {};
  return sample->tokens;
}

core::Result<std::vector<Sample>> BatchingEngine::step() {
  broken_.reset();
  TROUPE_TRY(check_awake("a step"));
  if (state_.paused) return std::vector<Sample>();
  const std::span<const Slice> slices = scheduler_.schedule();
  if (slices.empty()) return std::vector<Sample>();
  plan_.build(slices, members_, spare_block());
  const std::span<const Draw> draws = runner_.run(*weights_, plan_, pool_);
  ++counters_.steps;
  TROUPE_TRY(check_finite(draws));
  finished_.clear();
  commit(slices, draws);
  std::sort(finished_.begin(), finished_.end(), by_group_and_index);
  return std::move(finished_);
}

core::Result<void> BatchingEngine::check_finite(std::span<const Draw> draws) {
  for (std::size_t i = 0; i < draws.size(); ++i) {
    if (std::isfinite(draws[i].logprob)) continue;
    const DrawJob& job = plan_.jobs()[i];
    const Group& group = *job.group;
    broken_ = group.request.id;
    return fail(ErrorCode::kNumeric,
                "group " + to_string(group.request.id.value) + ", sample " + to_string(job.sample) +
                    ": the logits for position " + to_string(job.position) +
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

// The log-prob of a prompt's token, and the most likely ones in its place. A prompt that is
// computed again overwrites what it had.
void BatchingEngine::score(const DrawJob& job, const Draw& draw) {
  Sample& out = job.group->at(job.sample).out;
  const auto at = static_cast<std::size_t>(job.position - 1);
  if (out.prompt_logprobs.size() <= at) out.prompt_logprobs.resize(at + 1);
  out.prompt_logprobs[at] = draw.logprob;
  const std::size_t end = (at + 1) * draw.top.size();
  if (out.prompt_top_logprobs.size() < end) out.prompt_top_logprobs.resize(end);
  std::copy(draw.top.begin(), draw.top.end(),
            out.prompt_top_logprobs.begin() + static_cast<std::ptrdiff_t>(at * draw.top.size()));
}

void BatchingEngine::append(const DrawJob& job, const Draw& draw) {
  if (job.target >= 0) return score(job, draw);
  Group& group = *job.group;
  SampleState& state = group.at(job.sample);
  Sample& out = state.out;
  const SamplingParams& params = group.request.sampling;
  const bool truncated = params.temperature > 0.0f && KeptSet::truncates(params, spec_.vocab);
  if (out.tokens.empty()) {
    const auto most = static_cast<std::size_t>(params.max_new_tokens);
    out.tokens.reserve(most);
    out.logprobs.reserve(most);
    out.versions.reserve(most);
    if (truncated) out.kept_mass.reserve(most);
    if (params.raw_logprobs) out.raw_logprobs.reserve(most);
    if (params.entropies) out.entropies.reserve(most);
    out.routed_experts.reserve(most * draw.routed.size());
    out.top_logprobs.reserve(most * static_cast<std::size_t>(params.top_logprobs));
    if (penalises(params)) state.counts.reserve(params.max_new_tokens);
  }
  out.tokens.push_back(draw.token);
  out.logprobs.push_back(draw.logprob);
  out.versions.push_back(weights_->version());
  if (truncated) out.kept_mass.push_back(draw.kept_mass);
  if (params.raw_logprobs) out.raw_logprobs.push_back(draw.raw_logprob);
  if (params.entropies) out.entropies.push_back(draw.entropy);
  out.top_logprobs.insert(out.top_logprobs.end(), draw.top.begin(), draw.top.end());
  out.routed_experts.insert(out.routed_experts.end(), draw.routed.begin(), draw.routed.end());
  if (penalises(params)) state.counts.add(draw.token);
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

EngineCounters BatchingEngine::counters() const {
  EngineCounters counters = counters_;
  counters.preempted = scheduler_.preempted();
  counters.replayed = runner_.replayed();
  counters.prefix_query_tokens = scheduler_.prefix_query_tokens();
  counters.prefix_hit_tokens = scheduler_.prefix_hit_tokens();
  counters.evicted = scheduler_.evicted();
  counters.cached_blocks = scheduler_.index().size();
  counters.waiting_groups = scheduler_.waiting_groups();
  counters.waiting_sequences = scheduler_.waiting();
  counters.running_sequences = scheduler_.running();
  counters.free_blocks = scheduler_.pool().free_count();
  counters.total_blocks = scheduler_.pool().total();
  return counters;
}

}  // namespace troupe::engine

#include "runtime/engine/step_runner.hpp"

#include "runtime/core/rng.hpp"
#include "runtime/model/moe_forward.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::engine {
namespace {

// The sample's earlier tokens; masks end tokens while it is shorter than min_new_tokens.
DrawHistory history_of(const Group& group, const SampleState& sample) {
  const bool early =
      static_cast<std::int32_t>(sample.out.tokens.size()) < group.request.sampling.min_new_tokens;
  DrawHistory history;
  if (sample.guide != nullptr) {
    history.allowed = sample.guide->allowed();
  } else if (early) {
    history.masked = group.end_tokens;
  }
  history.prompt = group.prompt_tokens;
  history.response = sample.counts.entries();
  return history;
}

std::unique_ptr<DeviceStep> make_device_step(const model::ModelSpec& spec,
                                             std::int32_t sequences_max,
                                             std::int32_t step_tokens_max,
                                             core::TeamRunner& team) {
  if (team.memory().on_host()) return nullptr;
  return std::make_unique<DeviceStep>(spec, sequences_max, step_tokens_max, team);
}

// Rows for the draws of the host, of at most that many samples.
HeadRows host_rows(const model::ModelSpec& spec, std::int64_t samples) {
  return {spec, kLogits_bytes_max, std::min(kHeadRows_min, samples),
          std::min(kHeadRows_max, samples), core::host_memory()};
}

}  // namespace

StepRunner::StepRunner(const model::ModelSpec& spec,
                       std::int32_t sequences_max,
                       std::int32_t step_tokens_max,
                       core::TeamRunner& team)
    : team_(team),
      device_(make_device_step(spec, sequences_max, step_tokens_max, team)),
      head_(host_rows(spec, device_ && device_->draws() ? 1 : sequences_max)),
      region_([this](core::Team member_of) { member(member_of); }) {
  for (int i = 0; i < team.size(); ++i)
    samplers_.emplace_back(spec.vocab);
  draws_.reserve(static_cast<std::size_t>(sequences_max));
  top_begin_.reserve(static_cast<std::size_t>(sequences_max) + 1);
  if (!device_ || !device_->draws()) return;
  device_sampler_ = std::make_unique<DeviceSampler>(spec.vocab, device_->batch_rows(), team);
}

core::Result<std::span<const Draw>> StepRunner::run(const model::PackedWeights& weights,
                                                    StepPlan& step,
                                                    model::KvPool& pool) {
  const model::ForwardPlan& plan = step.plan();
  weights_ = &weights;
  step_ = &step;
  pool_ = &pool;
  draws_.resize(step.jobs().size());
  place_alternatives();
  if (device_) {
    run_on_device();
  } else {
    scratch_.keep_routed = wants_routed();
    scratch_.reserve(team_.memory(), weights.spec(), plan.rows(), std::ssize(plan.logit_rows),
                     team_.size());
    team_.run(region_);
  }
  return std::span<const Draw>(draws_);
}

// Makes room for the most likely tokens (top_logprobs) of each job.
void StepRunner::place_alternatives() {
  top_begin_.clear();
  std::size_t end = 0;
  for (const DrawJob& job : step_->jobs()) {
    top_begin_.push_back(end);
    end += static_cast<std::size_t>(job.group->request.sampling.top_logprobs);
  }
  top_begin_.push_back(end);
  top_.resize(end);
}

bool StepRunner::wants_routed() const {
  const auto jobs = step_->jobs();
  return std::any_of(jobs.begin(), jobs.end(),
                     [](const DrawJob& job) { return job.group->request.sampling.routed_experts; });
}

// The experts that the job's row chose; empty if the request does not want them.
std::span<const std::uint16_t> StepRunner::routed(const DrawJob& job) const {
  if (!job.group->request.sampling.routed_experts) return {};
  const std::int64_t width = model::routed_width(weights_->spec());
  return {scratch_.routed.data() + job.logit_row * width, static_cast<std::size_t>(width)};
}

void StepRunner::member(core::Team team) {
  kernels::flush_denormals();
  const model::ForwardPlan& plan = step_->plan();
  model::forward_hidden(team, *weights_, plan, *pool_, scratch_);
  const auto rows = static_cast<std::int64_t>(plan.logit_rows.size());
  for (std::int64_t begin = 0; begin < rows; begin += head_.count) {
    const std::int64_t count = std::min(head_.count, rows - begin);
    if (begin > 0) team.barrier();  // members may still draw from the previous batch's logits
    model::head_forward(team, *weights_, scratch_.head_in.data() + begin * weights_->spec().hidden,
                        count, head_.logits.data(), head_.ld, step_->inv_temperature() + begin,
                        head_.block_max.data(), head_.block_sum.data());
    draw_rows(team, begin, begin + count);
  }
}

// This member's share of the jobs that draw from head rows [row_begin, row_end).
void StepRunner::draw_rows(core::Team team, std::int64_t row_begin, std::int64_t row_end) {
  const std::size_t first = step_->first_job(row_begin);
  const auto jobs = static_cast<std::int64_t>(step_->first_job(row_end) - first);
  const auto [begin, end] = team.share(jobs);
  for (auto i = begin; i < end; ++i) {
    const std::size_t at = first + static_cast<std::size_t>(i);
    draws_[at] = draw(samplers_[static_cast<std::size_t>(team.rank)], at, row_begin);
    draws_[at].routed = routed(step_->jobs()[at]);
  }
}

Draw StepRunner::draw(Sampler& sampler, std::size_t at, std::int64_t row_begin) {
  const DrawJob& job = step_->jobs()[at];
  const std::int64_t row = job.logit_row - row_begin;
  HeadRow head;
  head.logits = head_.logits.data() + row * head_.ld;
  head.block_max = head_.block_max.data() + row * head_.blocks;
  head.block_sum = head_.block_sum.data() + row * head_.blocks;
  head.inv_temperature = step_->inv_temperature()[job.logit_row];
  head.lse = model::merge_vocab_stats(head.block_max, head.block_sum, head_.blocks);
  if (!std::isfinite(head.lse)) return {.logprob = head.lse};
  const std::span<TokenLogprob> top(top_.data() + top_begin_[at],
                                    top_begin_[at + 1] - top_begin_[at]);
  if (job.target >= 0) return sampler.score(head, job.target, top);
  return sampler.draw(head, job.group->request.sampling, uniform_of(job),
                      history_of(*job.group, job.group->at(job.sample)), top);
}

double StepRunner::uniform_of(const DrawJob& job) const {
  const SampleState& sample = job.group->at(job.sample);
  return core::uniform(sample.seed, kSamplingStream,
                       static_cast<std::uint64_t>(job.group->length(sample)));
}

void StepRunner::run_on_device() {
  const std::span<const DrawJob> jobs = step_->jobs();
  const std::int64_t rows = std::ssize(step_->plan().logit_rows);
  uniforms_.clear();
  if (device_sampler_) device_sampler_->begin(rows);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const DrawJob& job = jobs[i];
    const bool plain = draws_plainly(job);
    const bool random = job.target < 0 && job.group->request.sampling.temperature > 0.0f;
    const double u = random ? uniform_of(job) : -1.0;
    uniforms_.push_back(plain ? u : -1.0);
    if (plain || !device_sampler_ || draws_on_host(job)) continue;
    device_sampler_->add(i, job, u, history_of(*job.group, job.group->at(job.sample)));
  }
  here_.clear();
  device_->begin(*weights_, *step_, *pool_, uniforms_);
  if (device_sampler_) device_sampler_->place();
  const std::int64_t at_once = device_->batch_rows();
  std::int64_t begin = 0;
  do {  // at least once, even without head rows: the first batch runs the layers
    const std::int64_t end = std::min(begin + at_once, rows);
    device_->batch(begin, end);
    if (device_sampler_) {
      draw_some_here(begin, end);
      device_sampler_->batch(device_->rows(), begin);
    } else {
      draw_here(begin, end);
    }
    begin = end;
  } while (begin < rows);
  if (!device_sampler_ || jobs.empty()) return;
  const std::span<const Drawn> drawn = device_->drawn();
  for (std::size_t i = 0; i < jobs.size(); ++i)
    draws_[i] = {.token = drawn[i].token, .logprob = drawn[i].logprob};
  device_sampler_->read(draws_, top_, top_begin_);
  for (const auto& [at, draw] : here_)
    draws_[at] = draw;
}

// True if a device that draws leaves the job to the host.
bool StepRunner::draws_on_host(const DrawJob& job) {
  return job.target < 0 &&
         (job.group->at(job.sample).guide != nullptr || job.group->request.sampling.kept_mass);
}

// Draws those jobs of the batch that a device leaves to the host.
void StepRunner::draw_some_here(std::int64_t row_begin, std::int64_t row_end) {
  const std::span<const DrawJob> jobs = step_->jobs();
  std::int64_t there = -1;  // the row that head_ has
  for (std::size_t at = step_->first_job(row_begin);
       at < jobs.size() && jobs[at].logit_row < row_end; ++at) {
    if (!draws_on_host(jobs[at])) continue;
    const std::int64_t row = jobs[at].logit_row;
    if (row != there) device_->read(row - row_begin, 1, head_);
    there = row;
    here_.emplace_back(at, draw(samplers_[0], at, row));
  }
}

// True if the job's token is drawn from the model's own logits without truncation, and nothing but
// its log-prob is reported.
bool StepRunner::draws_plainly(const DrawJob& job) const {
  const SamplingParams& params = job.group->request.sampling;
  const SampleState& sample = job.group->at(job.sample);
  const bool cut = params.temperature > 0.0f && KeptSet::truncates(params, head_.vocab);
  const bool changed = penalises(params) || !params.logit_bias.empty() ||
                       !history_of(*job.group, sample).masked.empty();
  const bool more = params.entropies || params.raw_logprobs || params.top_logprobs > 0;
  return job.target < 0 && !cut && !changed && !more && !draws_on_host(job);
}

// Draws the jobs of the batch on the host, for a device whose table has no draws.
void StepRunner::draw_here(std::int64_t row_begin, std::int64_t row_end) {
  const std::span<const DrawJob> jobs = step_->jobs();
  std::size_t at = step_->first_job(row_begin);
  for (std::int64_t first = row_begin; first < row_end; first += head_.count) {
    const std::int64_t end = std::min(first + head_.count, row_end);
    device_->read(first - row_begin, end - first, head_);
    for (; at < jobs.size() && jobs[at].logit_row < end; ++at)
      draws_[at] = draw(samplers_[0], at, first);
  }
}

}  // namespace troupe::engine

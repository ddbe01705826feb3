// Forward, head, draw.
#include "runtime/engine/step_runner.hpp"

#include "runtime/core/rng.hpp"
#include "runtime/model/moe_forward.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::engine {
namespace {

std::int64_t head_rows_for(std::int64_t ldl, std::int32_t sequences_max) {
  const std::int64_t fitting =
      kLogits_bytes_max / (ldl * static_cast<std::int64_t>(sizeof(float))) / 8 * 8;
  const std::int64_t rows = std::clamp(fitting, kHeadRows_min, kHeadRows_max);
  return std::min<std::int64_t>(rows, sequences_max);
}

// What the sample has behind it; end tokens must not be drawn yet while it is short.
DrawHistory history_of(const Group& group, const SampleState& sample) {
  const bool early =
      static_cast<std::int32_t>(sample.out.tokens.size()) < group.request.sampling.min_new_tokens;
  DrawHistory history;
  if (early) history.masked = group.end_tokens;
  history.prompt = group.prompt_tokens;
  history.response = sample.counts.entries();
  return history;
}

}  // namespace

StepRunner::StepRunner(const model::ModelSpec& spec,
                       std::int32_t sequences_max,
                       core::TeamRunner& team)
    : team_(team),
      vocab_(spec.vocab),
      blocks_(model::vocab_blocks(spec)),
      ldl_(kernels::panels_of(spec.vocab) * kernels::kPanel),
      head_rows_(head_rows_for(ldl_, sequences_max)),
      region_([this](core::Team member_of) { member(member_of); }),
      logits_(head_rows_ * ldl_),
      block_max_(head_rows_ * blocks_),
      block_sum_(head_rows_ * blocks_) {
  for (int i = 0; i < team.size(); ++i)
    samplers_.emplace_back(spec.vocab);
  draws_.reserve(static_cast<std::size_t>(sequences_max));
  top_begin_.reserve(static_cast<std::size_t>(sequences_max) + 1);
}

std::span<const Draw> StepRunner::run(const model::PackedWeights& weights,
                                      const StepPlan& step,
                                      model::KvPool& pool) {
  const model::ForwardPlan& plan = step.plan();
  weights_ = &weights;
  step_ = &step;
  pool_ = &pool;
  draws_.resize(step.jobs().size());
  place_alternatives();
  scratch_.keep_routed = wants_routed();
  scratch_.reserve(team_.memory(), weights.spec(), plan.rows(), std::ssize(plan.logit_rows),
                   team_.size());
  team_.run(region_);
  return draws_;
}

// Room for the most likely tokens of each job that wants them.
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

// What the job's row chose, when that is wanted.
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
  for (std::int64_t begin = 0; begin < rows; begin += head_rows_) {
    const std::int64_t count = std::min(head_rows_, rows - begin);
    if (begin > 0) team.barrier();  // draws of the batch before still read its logits
    model::head_forward(team, *weights_, scratch_.head_in.data() + begin * weights_->spec().hidden,
                        count, logits_.data(), ldl_, step_->inv_temperature() + begin,
                        block_max_.data(), block_sum_.data());
    draw_rows(team, begin, begin + count);
  }
}

// This member's share of the jobs that draw from head rows [row_begin, row_end).
void StepRunner::draw_rows(core::Team team, std::int64_t row_begin, std::int64_t row_end) {
  const std::span<const DrawJob> jobs = step_->jobs();
  const auto before = [](const DrawJob& job, std::int64_t row) { return job.logit_row < row; };
  const auto first = std::lower_bound(jobs.begin(), jobs.end(), row_begin, before);
  const auto last = std::lower_bound(first, jobs.end(), row_end, before);
  const auto [begin, end] = team.share(last - first);
  const auto offset = first - jobs.begin();
  for (auto i = begin + offset; i < end + offset; ++i) {
    const auto at = static_cast<std::size_t>(i);
    draws_[at] = draw(samplers_[static_cast<std::size_t>(team.rank)], at, row_begin);
    draws_[at].routed = routed(jobs[at]);
  }
}

Draw StepRunner::draw(Sampler& sampler, std::size_t at, std::int64_t row_begin) {
  const DrawJob& job = step_->jobs()[at];
  const std::int64_t row = job.logit_row - row_begin;
  HeadRow head;
  head.logits = logits_.data() + row * ldl_;
  head.block_max = block_max_.data() + row * blocks_;
  head.block_sum = block_sum_.data() + row * blocks_;
  head.inv_temperature = step_->inv_temperature()[job.logit_row];
  head.lse = model::merge_vocab_stats(head.block_max, head.block_sum, blocks_);
  if (!std::isfinite(head.lse)) {
    Draw failed;
    failed.logprob = head.lse;
    return failed;
  }
  const std::span<TokenLogprob> top(top_.data() + top_begin_[at],
                                    top_begin_[at + 1] - top_begin_[at]);
  if (job.target >= 0) return sampler.score(head, job.target, top);
  const SampleState& sample = job.group->at(job.sample);
  const auto position = static_cast<std::uint64_t>(job.group->length(sample));
  return sampler.draw(head, job.group->request.sampling,
                      core::uniform(sample.seed, kSamplingStream, position),
                      history_of(*job.group, sample), top);
}

}  // namespace troupe::engine

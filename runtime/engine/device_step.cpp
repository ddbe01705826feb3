#include "runtime/engine/device_step.hpp"

#include "kernels/ops.hpp"

#include <algorithm>

namespace troupe::engine {

HeadRows::HeadRows(const model::ModelSpec& spec,
                   std::int64_t bytes_max,
                   std::int64_t least,
                   std::int64_t most,
                   core::Memory& memory)
    : vocab(spec.vocab),
      blocks(model::vocab_blocks(spec)),
      ld(kernels::panels_of(spec.vocab) * kernels::kPanel),
      count(std::clamp(
          bytes_max / (ld * static_cast<std::int64_t>(sizeof(float))) / 8 * 8, least, most)),
      logits(count * ld, memory),
      block_max(count * blocks, memory),
      block_sum(count * blocks, memory) {}

DeviceStep::DeviceStep(const model::ModelSpec& spec,
                       std::int32_t sequences_max,
                       std::int32_t step_tokens_max,
                       core::TeamRunner& team)
    : team_(team),
      memory_(team.memory()),
      step_rows_max_(step_tokens_max),
      // One head row for each running sample, if their logits fit.
      head_(spec, kDeviceLogits_bytes_max, 1, sequences_max, memory_),
      region_([this](core::Team) { region(); }) {
  team_.run([this](core::Team) { draws_ = kernels::ops().draw != nullptr; });
}

void DeviceStep::begin(const model::PackedWeights& weights,
                       StepPlan& step,
                       model::KvPool& pool,
                       std::span<const double> uniforms) {
  weights_ = &weights;
  step_ = &step;
  pool_ = &pool;
  step.place(memory_);
  const std::int64_t head_rows = std::ssize(step.plan().logit_rows);
  // Reserve room for the largest step at once: growing later would invalidate recordings.
  scratch_.reserve(memory_, weights.spec(), std::max(step.plan().rows(), step_rows_max_),
                   std::max(head_rows, head_.count));
  plain_.begin(step, uniforms, head_.count, memory_);
}

void DeviceStep::batch(std::int64_t row_begin, std::int64_t row_end) {
  row_begin_ = row_begin;
  row_end_ = row_end;
  const std::int64_t bucket = step_->bucket();
  jobs_ = {0, plain_.size()};
  if (bucket == 0) {
    jobs_ = {static_cast<std::int64_t>(step_->first_job(row_begin)),
             static_cast<std::int64_t>(step_->first_job(row_end))};
  }
  const bool replayed =
      bucket > 0 && bucket <= head_.count && recordings_.submit(bucket, places(), team_, region_);
  if (!replayed) team_.run(region_);
}

// Submits the device's work without waiting for it. The work depends only on `places`, the bucket
// and the batch, so it can be recorded.
void DeviceStep::region() {
  const core::Team team;
  if (row_begin_ == 0) model::forward_hidden(team, *weights_, step_->plan(), *pool_, scratch_);
  if (row_begin_ == row_end_) return;
  const std::int64_t hidden = weights_->spec().hidden;
  model::head_forward(team, *weights_, scratch_.head_in.data() + row_begin_ * hidden,
                      row_end_ - row_begin_, head_.logits.data(), head_.ld,
                      plain_.inv_temperature() + row_begin_, head_.block_max.data(),
                      head_.block_sum.data());
  if (draws_ && !jobs_.empty()) plain_.draw(rows(), jobs_);
}

kernels::VocabRows DeviceStep::rows() {
  return {.logits = head_.logits.data(),
          .ld = head_.ld,
          .vocab = head_.vocab,
          .inv_temperature = plain_.inv_temperature() + row_begin_,
          .block_max = head_.block_max.data(),
          .block_sum = head_.block_sum.data()};
}

StepRecordings::Places DeviceStep::places() const {
  const model::PlanView plan = step_->plan().view();
  const model::ForwardScratch& s = scratch_;
  const auto [uniforms, rows, inv_temperatures, drawn] = plain_.places();
  return {weights_->head().data,
          weights_->layer(0).qkv.data,
          weights_->layer(0).rope_cos,
          pool_->k(0).data,
          pool_->v(0).data,
          plan.tokens,
          plan.positions,
          plan.slot_begin,
          plan.slots,
          plan.segments,
          plan.block_table,
          plan.logit_rows,
          plan.items,
          s.x.data(),
          s.normed.data(),
          s.normed_alone.data(),
          s.qkv.data(),
          s.attention.data(),
          s.x_mid.data(),
          s.gate_up.data(),
          s.act.data(),
          s.head_in.data(),
          uniforms,
          rows,
          inv_temperatures,
          drawn};
}

void DeviceStep::read(std::int64_t first, std::int64_t count, HeadRows& to) {
  const auto bytes = [count](std::int64_t width) {
    return static_cast<std::size_t>(count * width) * sizeof(float);
  };
  const std::int64_t blocks = head_.blocks, ld = head_.ld;
  memory_.download(to.logits.data(), head_.logits.data() + first * ld, bytes(ld));
  memory_.download(to.block_max.data(), head_.block_max.data() + first * blocks, bytes(blocks));
  memory_.download(to.block_sum.data(), head_.block_sum.data() + first * blocks, bytes(blocks));
}

}  // namespace troupe::engine

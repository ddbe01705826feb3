#include "runtime/engine/draw_slots.hpp"

#include "runtime/engine/kept_set.hpp"

#include <algorithm>
#include <tuple>

namespace troupe::engine {

void DrawSlots::begin(std::int64_t head_rows) {
  lists_.slots.clear();
  lists_.changes.clear();
  lists_.batches.clear();
  last_changed_ = -1;
  lists_.penalties.assign(static_cast<std::size_t>(head_rows), {});
}

void DrawSlots::add(std::size_t index, const DrawJob& job, double u, const DrawHistory& history) {
  const SamplingParams& params = job.group->request.sampling;
  DrawSlot& slot = lists_.slots.emplace_back();
  slot.index = index;
  slot.row = job.logit_row;
  slot.top = params.top_logprobs;
  if (job.target >= 0) {
    slot.kind = DrawKind::kScored;
    slot.target = job.target;
    return;
  }
  slot.entropy = params.entropies;
  slot.raw = params.raw_logprobs || params.top_logprobs > 0;
  slot.u = params.temperature > 0.0f ? u : -1.0;
  if (params.temperature > 0.0f && KeptSet::truncates(params, vocab_)) {
    slot.kind = DrawKind::kKept;
    slot.truncation = {.top_k = params.top_k < vocab_ ? params.top_k : 0,
                       .top_p = params.top_p,
                       .min_p = params.min_p};
  }
  change(job.logit_row, params, history);
}

// Samples that draw from one row have the same changes: they have no response yet.
void DrawSlots::change(std::int32_t row, const SamplingParams& params, const DrawHistory& history) {
  if (row == last_changed_) return;
  last_changed_ = row;
  lists_.penalties[static_cast<std::size_t>(row)] = penalties_of(params);
  for (kernels::LogitChange change : changes_of_.list(params, history)) {
    change.row = row;
    lists_.changes.push_back(change);
  }
}

void DrawSlots::order() {
  auto& [slots, batches, rows, uniforms, truncations, tokens, penalties, target_begin, targets,
         changes, top_rows, top_begin] = lists_;
  std::sort(slots.begin(), slots.end(), [this](const DrawSlot& a, const DrawSlot& b) {
    return std::tuple(batch_of(a.row), a.kind, a.index) <
           std::tuple(batch_of(b.row), b.kind, b.index);
  });
  rows.clear();
  uniforms.clear();
  truncations.clear();
  tokens.clear();
  top_rows.clear();
  top_begin.assign(1, 0);
  std::size_t change = 0;
  for (std::size_t at = 0; at < slots.size();) {
    const std::int64_t number = batch_of(slots[at].row);
    batches.resize(static_cast<std::size_t>(number) + 1);
    DrawBatch& batch = batches.back();
    batch.plain = batch.kept = batch.scored = batch.end = at;
    batch.top_begin = top_rows.size();
    batch.rows = {batch_rows_, 0};
    for (; at < slots.size() && batch_of(slots[at].row) == number; ++at)
      fill(batch, slots[at]);
    batch.top_end = top_rows.size();
    batch.change_begin = change;
    while (change < changes.size() && batch_of(changes[change].row) == number) {
      changes[change].row = static_cast<std::int32_t>(changes[change].row % batch_rows_);
      ++change;
    }
    batch.change_end = change;
  }
  list_targets();
}

// Adds the next slot to the batch and to the lists by slot.
void DrawSlots::fill(DrawBatch& batch, DrawSlot& slot) {
  const std::int64_t row = slot.row % batch_rows_;
  ++batch.end;
  if (slot.kind == DrawKind::kPlain) batch.kept = batch.end;
  if (slot.kind != DrawKind::kScored) batch.scored = batch.end;
  batch.rows = {std::min(batch.rows.begin, row), std::max(batch.rows.end, row + 1)};
  batch.entropy = batch.entropy || slot.entropy;
  batch.raw = batch.raw || slot.raw || slot.top > 0;
  lists_.rows.push_back(static_cast<std::int32_t>(row));
  lists_.uniforms.push_back(slot.u);
  lists_.truncations.push_back(slot.truncation);
  lists_.tokens.push_back(slot.target);
  slot.top_begin = lists_.top_begin.back();
  if (slot.top == 0) return;
  lists_.top_rows.push_back(static_cast<std::int32_t>(row));
  lists_.top_begin.push_back(slot.top_begin + slot.top);
}

// Lists the slots of each head row, whose tokens' log-probs are wanted.
void DrawSlots::list_targets() {
  std::vector<std::int32_t>& begin = lists_.target_begin;
  begin.assign(lists_.penalties.size() + 1, 0);
  for (const DrawSlot& slot : lists_.slots)
    ++begin[static_cast<std::size_t>(slot.row) + 1];
  for (std::size_t row = 1; row < begin.size(); ++row)
    begin[row] += begin[row - 1];
  lists_.targets.resize(lists_.slots.size());
  for (std::size_t at = lists_.slots.size(); at-- > 0;) {  // fills each row from its end
    std::int32_t& end = begin[static_cast<std::size_t>(lists_.slots[at].row) + 1];
    lists_.targets[static_cast<std::size_t>(--end)] = static_cast<std::int32_t>(at);
  }
  // Each row's end now stands at its begin.
  std::rotate(begin.begin(), begin.begin() + 1, begin.end());
  begin.back() = static_cast<std::int32_t>(lists_.targets.size());
}

}  // namespace troupe::engine

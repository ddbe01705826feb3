#include "runtime/engine/device_sampler.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

namespace troupe::engine {

DeviceSampler::DeviceSampler(std::int64_t vocab, std::int64_t batch_rows, core::TeamRunner& team)
    : team_(team),
      blocks_((vocab + kernels::kVocabBlock - 1) / kernels::kVocabBlock),
      batch_rows_(batch_rows),
      region_([this](core::Team) { region(); }),
      slots_(vocab, batch_rows) {}

void DeviceSampler::place() {
  const DrawLists& jobs = slots_.lists();
  if (jobs.slots.empty()) return;
  slots_.order();
  core::Memory& memory = team_.memory();
  std::tie(lists_.row, lists_.uniform, lists_.truncation, lists_.target_begin, lists_.target,
           lists_.penalties, lists_.change, lists_.top_row, lists_.top_begin) =
      placed_.place(memory, jobs.rows, jobs.uniforms, jobs.truncations, jobs.target_begin,
                    jobs.targets, jobs.penalties, jobs.changes, jobs.top_rows, jobs.top_begin);
  entropy_at_ = 3 * std::ssize(jobs.slots);
  top_at_ = entropy_at_ + std::ssize(jobs.penalties);
  words_end_ = top_at_ + 2 * std::int64_t{jobs.top_begin.back()};
  words_.reserve_discard(words_end_, memory);
  before_.reserve_discard(std::ssize(jobs.changes), memory);
  const std::int64_t sums = batch_rows_ * blocks_;
  own_max_.reserve_discard(sums, memory);
  own_sum_.reserve_discard(sums, memory);
  lse_.reserve_discard(batch_rows_, memory);
  if (ones_.size() == 0) {
    ones_ = core::Buffer<float>(batch_rows_, memory);
    ones_.upload(std::vector<float>(static_cast<std::size_t>(batch_rows_), 1.0f));
  }
  const bool scores = std::any_of(jobs.slots.begin(), jobs.slots.end(), [](const DrawSlot& slot) {
    return slot.kind == DrawKind::kScored;
  });
  if (scores) words_.upload(jobs.tokens);
}

void DeviceSampler::batch(const kernels::VocabRows& rows, std::int64_t row_begin) {
  const auto number = static_cast<std::size_t>(row_begin / batch_rows_);
  const std::vector<DrawBatch>& batches = slots_.lists().batches;
  if (number >= batches.size() || batches[number].end == batches[number].plain) return;
  head_ = rows;
  row_begin_ = row_begin;
  team_.run(region_);
}

void DeviceSampler::region() {
  const auto number = static_cast<std::size_t>(row_begin_ / batch_rows_);
  const DrawBatch& batch = slots_.lists().batches[number];
  draw(head_, batch);
  report(head_, batch);
}

kernels::VocabRows DeviceSampler::with_own_sums(kernels::VocabRows rows) {
  rows.block_max = own_max_.data();
  rows.block_sum = own_sum_.data();
  return rows;
}

// Draws from changed logits, and puts the old ones back.
void DeviceSampler::draw(const kernels::VocabRows& rows, const DrawBatch& batch) {
  const kernels::Ops& ops = kernels::ops();
  const kernels::ChangeLogits changes{.logits = const_cast<float*>(rows.logits),
                                      .ld = rows.ld,
                                      .change = lists_.change + batch.change_begin,
                                      .penalties = lists_.penalties + row_begin_,
                                      .before = before_.data() + batch.change_begin};
  const auto changed = static_cast<std::int64_t>(batch.change_end - batch.change_begin);
  kernels::VocabRows from = rows;
  if (changed > 0) {
    ops.change_logits(changes, changed);
    from = with_own_sums(rows);
    ops.vocab_sums(from, batch.rows, {0, blocks_});
  }
  if (batch.kept > batch.plain) {
    const kernels::Draws draws{.rows = from,
                               .uniform = lists_.uniform + batch.plain,
                               .row = lists_.row + batch.plain,
                               .token = words_.data() + batch.plain};
    ops.draw(draws, static_cast<std::int64_t>(batch.kept - batch.plain));
  }
  if (batch.scored > batch.kept) {
    const kernels::KeptDraws draws{.rows = from,
                                   .uniform = lists_.uniform + batch.kept,
                                   .row = lists_.row + batch.kept,
                                   .truncation = lists_.truncation + batch.kept,
                                   .token = words_.data() + batch.kept};
    ops.draw_kept(draws, static_cast<std::int64_t>(batch.scored - batch.kept));
  }
  if (changed > 0) ops.restore_logits(changes, changed);
}

// Log-probs of the tokens, entropies and most likely tokens, from the model's own logits.
void DeviceSampler::report(const kernels::VocabRows& rows, const DrawBatch& batch) {
  const kernels::Ops& ops = kernels::ops();
  const std::int64_t slots = std::ssize(slots_.lists().slots);
  kernels::VocabFinish finish{.rows = rows,
                              .lse = lse_.data(),
                              .entropy = batch.entropy ? floats(entropy_at_ + row_begin_) : nullptr,
                              .targets = {.begin = lists_.target_begin + row_begin_,
                                          .target = lists_.target,
                                          .token = words_.data()},
                              .logprobs = floats(slots)};
  ops.vocab_finish(finish, batch.rows);
  if (!batch.raw) return;
  finish.rows = with_own_sums(rows);
  finish.rows.inv_temperature = ones_.data();
  finish.entropy = nullptr;
  finish.logprobs = floats(2 * slots);
  ops.vocab_sums(finish.rows, batch.rows, {0, blocks_});
  ops.vocab_finish(finish, batch.rows);
  if (batch.top_end == batch.top_begin) return;
  const kernels::MostLikely likely{.rows = finish.rows,
                                   .lse = lse_.data(),
                                   .row = lists_.top_row + batch.top_begin,
                                   .begin = lists_.top_begin + batch.top_begin,
                                   .token = words_.data() + top_at_,
                                   .logprob = floats(top_at_ + slots_.lists().top_begin.back())};
  ops.most_likely(likely, static_cast<std::int64_t>(batch.top_end - batch.top_begin));
}

void DeviceSampler::read(std::span<Draw> draws,
                         std::span<TokenLogprob> top,
                         std::span<const std::size_t> top_begin) {
  const DrawLists& jobs = slots_.lists();
  if (jobs.slots.empty()) return;
  read_.resize(static_cast<std::size_t>(words_end_));
  words_.download(read_);
  const auto number = [this](std::size_t word) { return std::bit_cast<float>(read_[word]); };
  const std::size_t slots = jobs.slots.size();
  const auto first = static_cast<std::size_t>(top_at_);
  const auto tops = static_cast<std::size_t>(jobs.top_begin.back());
  for (std::size_t slot = 0; slot < slots; ++slot) {
    const DrawSlot& entry = jobs.slots[slot];
    Draw& draw = draws[entry.index];
    draw = {.token = read_[slot], .logprob = number(slots + slot)};
    if (entry.raw) draw.raw_logprob = number(2 * slots + slot);
    if (entry.kind == DrawKind::kScored) draw.raw_logprob = draw.logprob;
    if (entry.entropy) draw.entropy = number(static_cast<std::size_t>(entropy_at_ + entry.row));
    const std::span<TokenLogprob> to =
        top.subspan(top_begin[entry.index], static_cast<std::size_t>(entry.top));
    for (std::size_t i = 0; i < to.size(); ++i) {
      const std::size_t at = first + static_cast<std::size_t>(entry.top_begin) + i;
      to[i] = {read_[at], number(at + tops)};
    }
    draw.top = to;
  }
}

}  // namespace troupe::engine

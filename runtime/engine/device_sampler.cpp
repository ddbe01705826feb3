#include "runtime/engine/device_sampler.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

namespace troupe::engine {

DeviceSampler::DeviceSampler(std::int64_t vocab, std::int64_t batch_rows, core::TeamRunner& team)
    : team_(team),
      memory_(team.memory()),
      vocab_(vocab),
      blocks_((vocab + kernels::kVocabBlock - 1) / kernels::kVocabBlock),
      batch_rows_(batch_rows),
      region_([this](core::Team) { region(); }),
      changes_of_(vocab) {}

void DeviceSampler::begin(std::int64_t head_rows) {
  entries_.clear();
  changes_.clear();
  batches_.clear();
  last_changed_ = -1;
  penalties_.assign(static_cast<std::size_t>(head_rows), {});
}

void DeviceSampler::add(std::size_t index,
                        const DrawJob& job,
                        double u,
                        const DrawHistory& history) {
  const SamplingParams& params = job.group->request.sampling;
  Entry& entry = entries_.emplace_back();
  entry.index = index;
  entry.row = job.logit_row;
  entry.top = params.top_logprobs;
  if (job.target >= 0) {
    entry.kind = Kind::kScored;
    entry.target = job.target;
    return;
  }
  entry.entropy = params.entropies;
  entry.raw = params.raw_logprobs || params.top_logprobs > 0;
  entry.u = params.temperature > 0.0f ? u : -1.0;
  if (params.temperature > 0.0f && KeptSet::truncates(params, vocab_)) {
    entry.kind = Kind::kKept;
    entry.truncation = {.top_k = params.top_k < vocab_ ? params.top_k : 0,
                        .top_p = params.top_p,
                        .min_p = params.min_p};
  }
  change(job.logit_row, params, history);
}

// Samples that draw from one row have the same changes: they have no response yet.
void DeviceSampler::change(std::int32_t row,
                           const SamplingParams& params,
                           const DrawHistory& history) {
  if (row == last_changed_) return;
  last_changed_ = row;
  penalties_[static_cast<std::size_t>(row)] = penalties_of(params);
  for (kernels::LogitChange change : changes_of_.list(params, history)) {
    change.row = row;
    changes_.push_back(change);
  }
}

void DeviceSampler::place() {
  if (entries_.empty()) return;
  sort_into_batches();
  list_targets();
  std::tie(lists_.row, lists_.uniform, lists_.truncation, lists_.target_begin, lists_.target,
           lists_.penalties, lists_.change, lists_.top_row, lists_.top_begin) =
      placed_.place(memory_, rows_, uniforms_, truncations_, target_begin_, targets_, penalties_,
                    changes_, top_rows_, top_begin_);
  const std::int64_t slots = std::ssize(entries_);
  entropy_at_ = 3 * slots;
  top_at_ = entropy_at_ + std::ssize(penalties_);
  words_end_ = top_at_ + 2 * std::int64_t{top_begin_.back()};
  words_.reserve_discard(words_end_, memory_);
  before_.reserve_discard(std::ssize(changes_), memory_);
  const std::int64_t sums = batch_rows_ * blocks_;
  own_max_.reserve_discard(sums, memory_);
  own_sum_.reserve_discard(sums, memory_);
  lse_.reserve_discard(batch_rows_, memory_);
  if (ones_.size() == 0) {
    ones_ = core::Buffer<float>(batch_rows_, memory_);
    ones_.upload(std::vector<float>(static_cast<std::size_t>(batch_rows_), 1.0f));
  }
  const bool scores = std::any_of(entries_.begin(), entries_.end(),
                                  [](const Entry& e) { return e.kind == Kind::kScored; });
  if (scores) words_.upload(tokens_);
}

// Orders the entries by batch and kind, and makes the lists that go by slot.
void DeviceSampler::sort_into_batches() {
  const auto batch_of = [this](std::int32_t row) { return row / batch_rows_; };
  std::sort(entries_.begin(), entries_.end(), [&](const Entry& a, const Entry& b) {
    return std::tuple(batch_of(a.row), a.kind, a.index) <
           std::tuple(batch_of(b.row), b.kind, b.index);
  });
  rows_.clear();
  uniforms_.clear();
  truncations_.clear();
  tokens_.clear();
  top_rows_.clear();
  top_begin_.assign(1, 0);
  std::size_t change = 0;
  for (std::size_t slot = 0; slot < entries_.size();) {
    const std::int64_t number = batch_of(entries_[slot].row);
    batches_.resize(static_cast<std::size_t>(number) + 1);
    Batch& batch = batches_.back();
    batch.plain = batch.kept = batch.scored = slot;
    batch.top_begin = top_rows_.size();
    batch.rows = {batch_rows_, 0};
    for (; slot < entries_.size() && batch_of(entries_[slot].row) == number; ++slot) {
      Entry& entry = entries_[slot];
      const std::int64_t row = entry.row % batch_rows_;
      if (entry.kind == Kind::kPlain) batch.kept = slot + 1;
      if (entry.kind != Kind::kScored) batch.scored = slot + 1;
      batch.rows = {std::min(batch.rows.begin, row), std::max(batch.rows.end, row + 1)};
      batch.entropy = batch.entropy || entry.entropy;
      batch.raw = batch.raw || entry.raw || entry.top > 0;
      rows_.push_back(static_cast<std::int32_t>(row));
      uniforms_.push_back(entry.u);
      truncations_.push_back(entry.truncation);
      tokens_.push_back(entry.target);
      entry.top_begin = top_begin_.back();
      if (entry.top == 0) continue;
      top_rows_.push_back(static_cast<std::int32_t>(row));
      top_begin_.push_back(entry.top_begin + entry.top);
    }
    batch.end = slot;
    batch.top_end = top_rows_.size();
    batch.change_begin = change;
    while (change < changes_.size() && batch_of(changes_[change].row) == number) {
      changes_[change].row = static_cast<std::int32_t>(changes_[change].row % batch_rows_);
      ++change;
    }
    batch.change_end = change;
  }
}

// Lists the slots of each head row, whose tokens' log-probs are wanted.
void DeviceSampler::list_targets() {
  target_begin_.assign(penalties_.size() + 1, 0);
  for (const Entry& entry : entries_)
    ++target_begin_[static_cast<std::size_t>(entry.row) + 1];
  for (std::size_t row = 1; row < target_begin_.size(); ++row)
    target_begin_[row] += target_begin_[row - 1];
  targets_.resize(entries_.size());
  for (std::size_t slot = entries_.size(); slot-- > 0;) {  // fills each row from its end
    std::int32_t& end = target_begin_[static_cast<std::size_t>(entries_[slot].row) + 1];
    targets_[static_cast<std::size_t>(--end)] = static_cast<std::int32_t>(slot);
  }
  // Each row's end now stands at its begin.
  std::rotate(target_begin_.begin(), target_begin_.begin() + 1, target_begin_.end());
  target_begin_.back() = static_cast<std::int32_t>(targets_.size());
}

void DeviceSampler::batch(const kernels::VocabRows& rows, std::int64_t row_begin) {
  const auto number = static_cast<std::size_t>(row_begin / batch_rows_);
  if (number >= batches_.size() || batches_[number].end == batches_[number].plain) return;
  head_ = rows;
  row_begin_ = row_begin;
  team_.run(region_);
}

void DeviceSampler::region() {
  const Batch& batch = batches_[static_cast<std::size_t>(row_begin_ / batch_rows_)];
  draw(head_, batch);
  report(head_, batch);
}

kernels::VocabRows DeviceSampler::with_own_sums(kernels::VocabRows rows) {
  rows.block_max = own_max_.data();
  rows.block_sum = own_sum_.data();
  return rows;
}

// Draws from changed logits, and puts the old ones back.
void DeviceSampler::draw(const kernels::VocabRows& rows, const Batch& batch) {
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
void DeviceSampler::report(const kernels::VocabRows& rows, const Batch& batch) {
  const kernels::Ops& ops = kernels::ops();
  const std::int64_t slots = std::ssize(entries_);
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
                                   .logprob = floats(top_at_ + top_begin_.back())};
  ops.most_likely(likely, static_cast<std::int64_t>(batch.top_end - batch.top_begin));
}

void DeviceSampler::read(std::span<Draw> draws,
                         std::span<TokenLogprob> top,
                         std::span<const std::size_t> top_begin) {
  if (entries_.empty()) return;
  read_.resize(static_cast<std::size_t>(words_end_));
  words_.download(read_);
  const auto number = [this](std::size_t word) { return std::bit_cast<float>(read_[word]); };
  const std::size_t slots = entries_.size();
  const auto first = static_cast<std::size_t>(top_at_);
  const auto tops = static_cast<std::size_t>(top_begin_.back());
  for (std::size_t slot = 0; slot < slots; ++slot) {
    const Entry& entry = entries_[slot];
    Draw& draw = draws[entry.index];
    draw = {.token = read_[slot], .logprob = number(slots + slot)};
    if (entry.raw) draw.raw_logprob = number(2 * slots + slot);
    if (entry.kind == Kind::kScored) draw.raw_logprob = draw.logprob;
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

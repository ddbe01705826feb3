#include "runtime/engine/vocab_row.hpp"

#include <algorithm>
#include <limits>

namespace troupe::engine {

static_assert(kernels::kVocabBlock % 32 == 0, "a block's part of a mask is whole words");

VocabRow::VocabRow(std::int64_t vocab, const kernels::Ops& ops)
    : ops_(ops),
      vocab_(vocab),
      blocks_((vocab + kernels::kVocabBlock - 1) / kernels::kVocabBlock),
      block_max_(static_cast<std::size_t>(blocks_)),
      block_sum_(static_cast<std::size_t>(blocks_)),
      block_scale_(static_cast<std::size_t>(blocks_)),
      block_mass_(static_cast<std::size_t>(blocks_)),
      scores_(static_cast<std::size_t>(kernels::kVocabBlock)) {}

std::int64_t VocabRow::block_size(std::int64_t block) const {
  return std::min(kernels::kVocabBlock, vocab_ - block_begin(block));
}

void VocabRow::load(const HeadRow& row,
                    std::span<const ChangedScore> changed,
                    std::span<const std::uint32_t> allowed) {
  row_ = row;
  changed_ = changed;
  allowed_ = allowed;
  std::copy_n(row.block_max, blocks_, block_max_.begin());
  std::copy_n(row.block_sum, blocks_, block_sum_.begin());
  std::int64_t restated = -1;
  for (const ChangedScore& entry : changed) {
    if (entry.token / kernels::kVocabBlock == restated) continue;
    restated = entry.token / kernels::kVocabBlock;
    restate(restated);
  }
  if (!allowed_.empty()) restate_masked();
  max_ = *std::max_element(block_max_.begin(), block_max_.end());
  for (std::size_t b = 0; b < block_max_.size(); ++b)
    block_scale_[b] = block_max_[b] - max_;
  ops_.exp(block_scale_.data(), block_scale_.data(), blocks_);
  mass_ = 0.0;
  for (std::size_t b = 0; b < block_max_.size(); ++b) {
    block_mass_[b] = static_cast<double>(block_sum_[b]) * static_cast<double>(block_scale_[b]);
    mass_ += block_mass_[b];
  }
}

// Computes the maximum and the sum of a block that has changed tokens anew, as the head does. The
// kernel's sum of a block without a token would not be a number.
void VocabRow::restate(std::int64_t block) {
  const std::span<const float> s = scores(block);
  constexpr float kMasked = -std::numeric_limits<float>::infinity();
  if (std::all_of(s.begin(), s.end(), [](float score) { return score == kMasked; })) {
    block_max_[static_cast<std::size_t>(block)] = kMasked;
    block_sum_[static_cast<std::size_t>(block)] = 0.0f;
    return;
  }
  constexpr float kScaled = 1.0f;
  ops_.vocab_sums({.logits = s.data(),
                   .ld = block_size(block),
                   .vocab = block_size(block),
                   .inv_temperature = &kScaled,
                   .block_max = &block_max_[static_cast<std::size_t>(block)],
                   .block_sum = &block_sum_[static_cast<std::size_t>(block)]},
                  {0, 1}, {0, 1});
}

// The words of the mask that belong to a block.
std::span<const std::uint32_t> VocabRow::allowed_in(std::int64_t block) const {
  return allowed_.subspan(static_cast<std::size_t>(block_begin(block) / 32),
                          mask_words(block_size(block)));
}

void VocabRow::restate_masked() {
  for (std::int64_t block = 0; block < blocks_; ++block) {
    const std::span<const std::uint32_t> words = allowed_in(block);
    const bool all =
        block_size(block) % 32 == 0 &&
        std::all_of(words.begin(), words.end(), [](std::uint32_t word) { return word == ~0u; });
    if (!all) restate(block);
  }
}

std::span<float> VocabRow::scores(std::int64_t block) {
  const std::int64_t begin = block_begin(block);
  const std::span<float> s(scores_.data(), static_cast<std::size_t>(block_size(block)));
  const float* logits = row_.logits + begin;
  for (std::size_t i = 0; i < s.size(); ++i)
    s[i] = logits[i] * row_.inv_temperature;
  const auto end = begin + static_cast<std::int64_t>(s.size());
  auto entry = std::lower_bound(
      changed_.begin(), changed_.end(), begin,
      [](const ChangedScore& score, std::int64_t first) { return score.token < first; });
  for (; entry != changed_.end() && entry->token < end; ++entry) {
    s[static_cast<std::size_t>(entry->token - begin)] = entry->score;
  }
  if (!allowed_.empty()) {
    const std::span<const std::uint32_t> words = allowed_in(block);
    for (std::size_t i = 0; i < s.size(); ++i) {
      if ((words[i / 32] >> (i % 32) & 1u) == 0) s[i] = -std::numeric_limits<float>::infinity();
    }
  }
  return s;
}

}  // namespace troupe::engine

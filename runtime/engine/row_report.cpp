#include "runtime/engine/row_report.hpp"

#include "runtime/model/forward.hpp"

#include <algorithm>

namespace troupe::engine {

using kernels::kVocabBlock;

RowReport::RowReport(std::int64_t vocab, const kernels::Ops& ops)
    : ops_(ops),
      vocab_(vocab),
      blocks_((vocab + kVocabBlock - 1) / kVocabBlock),
      own_max_(static_cast<std::size_t>(blocks_)),
      own_sum_(static_cast<std::size_t>(blocks_)) {}

void RowReport::read(const HeadRow& row) {
  logits_ = row.logits;
  if (row.inv_temperature == 1.0f) {
    block_max_ = row.block_max;
    lse_ = row.lse;
    return;
  }
  constexpr float kPlain = 1.0f;
  ops_.vocab_sums({.logits = row.logits,
                   .ld = vocab_,
                   .vocab = vocab_,
                   .inv_temperature = &kPlain,
                   .block_max = own_max_.data(),
                   .block_sum = own_sum_.data()},
                  {0, 1}, {0, blocks_});
  block_max_ = own_max_.data();
  lse_ = model::merge_vocab_stats(own_max_.data(), own_sum_.data(), blocks_);
}

float RowReport::logprob(std::int32_t token) const {
  return model::token_logprob(logits_[token], 1.0f, lse_);
}

// Inserts each token into the ranking so far. Tokens come by ascending id, so one with an equal
// logit ranks after those before it. Skips blocks whose maximum does not exceed the last logit in
// `best`.
void RowReport::most_likely(std::span<TokenLogprob> best) const {
  std::size_t found = 0;
  for (std::int64_t b = 0; b < blocks_; ++b) {
    if (found == best.size() && (found == 0 || !(block_max_[b] > best.back().logprob))) continue;
    const std::int64_t begin = b * kVocabBlock;
    const std::int64_t end = std::min(begin + kVocabBlock, vocab_);
    for (std::int64_t i = begin; i < end; ++i) {
      const float z = logits_[i];
      if (found == best.size()) {
        if (!(z > best.back().logprob)) continue;
        --found;
      }
      std::size_t at = found++;
      for (; at > 0 && z > best[at - 1].logprob; --at)
        best[at] = best[at - 1];
      best[at] = {static_cast<std::int32_t>(i), z};
    }
  }
  for (TokenLogprob& entry : best)
    entry.logprob = model::token_logprob(entry.logprob, 1.0f, lse_);
}

float RowReport::entropy(const HeadRow& row) const {
  float lse = 0.0f, entropy = 0.0f;
  const kernels::VocabFinish finish{
      .rows = {.logits = row.logits,
               .ld = vocab_,
               .vocab = vocab_,
               .inv_temperature = &row.inv_temperature,
               .block_max = const_cast<float*>(row.block_max),  // read only
               .block_sum = const_cast<float*>(row.block_sum)},
      .lse = &lse,
      .entropy = &entropy,
      .targets = {}};
  ops_.vocab_finish(finish, {0, 1});
  return entropy;
}

}  // namespace troupe::engine

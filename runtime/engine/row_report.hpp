// Statistics of a row of logits that are reported next to the drawn token: log-probs and the most
// likely tokens at temperature 1, and the entropy at the row's temperature. They describe the
// model's own distribution, before penalties and masks, with the same bits as in the trainer.
// Scratch for one thread; it holds only the results of the last `read`.
#pragma once

#include "kernels/ops.hpp"
#include "runtime/engine/types.hpp"
#include "runtime/engine/vocab_row.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::engine {

class RowReport {
 public:
  RowReport(std::int64_t vocab, const kernels::Ops& ops);

  // Computes the row's statistics at temperature 1, by one pass over the logits; if the row is at
  // that temperature, takes those that it has. The row must outlive the calls below.
  void read(const HeadRow& row);

  // The log-prob of a token of the row read last, at temperature 1.
  float logprob(std::int32_t token) const;
  // Fills `best`, at most vocab long, with the most likely tokens of that row, most likely first,
  // ties by lower id.
  void most_likely(std::span<TokenLogprob> best) const;

  // The entropy of `row` in nats, at its temperature: lse - sum of p * s.
  float entropy(const HeadRow& row) const;

 private:
  const kernels::Ops& ops_;
  const std::int64_t vocab_;
  const std::int64_t blocks_;
  const float* logits_ = nullptr;
  const float* block_max_ = nullptr;
  float lse_ = 0.0f;
  std::vector<float> own_max_, own_sum_;  // block maxima and sums at temperature 1, of other rows
};

}  // namespace troupe::engine

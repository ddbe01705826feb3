// What is told about a row of logits beside the draw: its log-sum-exp and its most likely tokens at
// temperature 1, and the entropy at the row's temperature. All of the model's own distribution,
// before any change of the logits, and with the bits that the trainer computes. Scratch for one
// thread; nothing kept between rows but what `read` found.
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

  // Statistics at temperature 1; one pass over the logits unless that is the row's temperature.
  void read(const HeadRow& row);

  // Of the row read last, at temperature 1.
  float logprob(std::int32_t token) const;
  // Fills `best`, at most vocab long, with the most likely tokens, ties by lower id.
  void most_likely(std::span<TokenLogprob> best) const;

  // In nats, at the row's temperature: lse - sum of p * s.
  float entropy(const HeadRow& row) const;

 private:
  const kernels::Ops& ops_;
  const std::int64_t vocab_;
  const std::int64_t blocks_;
  const float* logits_ = nullptr;
  const float* block_max_ = nullptr;
  float lse_ = 0.0f;
  std::vector<float> own_max_, own_sum_;  // of a row at another temperature
};

}  // namespace troupe::engine

// A row of logits with the block statistics that the head would leave, for sampler tests.
#pragma once

#include "kernels/ops.hpp"
#include "runtime/core/rng.hpp"
#include "runtime/engine/vocab_row.hpp"
#include "runtime/model/forward.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace troupe::engine {

class Logits {
 public:
  static Logits random(std::int64_t vocab, std::uint64_t seed, float deviation) {
    Logits logits;
    core::Rng rng(seed, 77);
    for (std::int64_t i = 0; i < vocab; ++i) {
      logits.values_.push_back(deviation * static_cast<float>(rng.next_normal()));
    }
    return logits;
  }

  std::vector<float>& values() { return values_; }
  const std::vector<float>& values() const { return values_; }
  std::int64_t vocab() const { return static_cast<std::int64_t>(values_.size()); }
  std::int32_t argmax() const {
    return static_cast<std::int32_t>(std::max_element(values_.begin(), values_.end()) -
                                     values_.begin());
  }

  // Valid until the next call.
  HeadRow head(float inv_temperature) const {
    const std::int64_t blocks = (vocab() + kernels::kVocabBlock - 1) / kernels::kVocabBlock;
    max_.resize(static_cast<std::size_t>(blocks));
    sum_.resize(static_cast<std::size_t>(blocks));
    kernels::ops().vocab_sums({.logits = values_.data(),
                               .ld = vocab(),
                               .vocab = vocab(),
                               .inv_temperature = &inv_temperature,
                               .block_max = max_.data(),
                               .block_sum = sum_.data()},
                              {0, 1}, {0, blocks});
    HeadRow row;
    row.logits = values_.data();
    row.block_max = max_.data();
    row.block_sum = sum_.data();
    row.inv_temperature = inv_temperature;
    row.lse = model::merge_vocab_stats(max_.data(), sum_.data(), blocks);
    return row;
  }

 private:
  std::vector<float> values_;
  mutable std::vector<float> max_, sum_;
};

inline std::vector<double> softmax(const std::vector<double>& scores) {
  std::vector<double> p;
  double total = 0.0;
  for (const double s : scores)
    total += p.emplace_back(std::exp(s));
  for (double& value : p)
    value /= total;
  return p;
}

inline std::vector<double> softmax(const Logits& logits, double temperature) {
  std::vector<double> scores;
  for (const float z : logits.values())
    scores.push_back(static_cast<double>(z) / temperature);
  return softmax(scores);
}

}  // namespace troupe::engine

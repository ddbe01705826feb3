// Draws of tokens against the walk that engine/sampler.cpp takes, written out once more: the same
// tokens and the same bits of their log-probs.
#include "runtime/core/rng.hpp"
#include "tests/unit/kernels/cuda/fixture.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::kernels::cuda::test {
namespace {

class CudaDraw : public OnDevice {};

struct HostRow {
  const float* logits;
  const float* block_max;
  const float* block_sum;
  float inv_temperature, lse;
  std::int64_t vocab, blocks;
};

// As engine::Sampler::by_inversion over engine::VocabRow, and Sampler::largest below 0.
std::int32_t draw_on_host(const HostRow& row, double u) {
  const float max = *std::max_element(row.block_max, row.block_max + row.blocks);
  std::vector<double> mass;
  double total = 0.0;
  for (std::int64_t b = 0; b < row.blocks; ++b) {
    float scale = row.block_max[b] - max;
    reference().exp(&scale, &scale, 1);
    mass.push_back(static_cast<double>(row.block_sum[b]) * static_cast<double>(scale));
    total += mass.back();
  }
  std::vector<float> scores;
  for (std::int64_t i = 0; i < row.vocab; ++i)
    scores.push_back(row.logits[i] * row.inv_temperature);
  if (u < 0.0)
    return static_cast<std::int32_t>(std::max_element(scores.begin(), scores.end()) -
                                     scores.begin());
  double rest = u * total;
  std::size_t block = mass.size();
  for (std::size_t b = 0; b < mass.size(); ++b) {
    if (!(mass[b] > 0.0)) continue;
    if (block < mass.size()) rest -= mass[block];
    block = b;
    if (rest < mass[b]) break;
  }
  const std::int64_t begin = static_cast<std::int64_t>(block) * kVocabBlock;
  const std::int64_t end = std::min(begin + kVocabBlock, row.vocab);
  std::vector<float> weights;
  double sum = 0.0;
  for (std::int64_t i = begin; i < end; ++i) {
    float weight = scores[static_cast<std::size_t>(i)] - row.block_max[block];
    reference().exp(&weight, &weight, 1);
    weights.push_back(weight);
    sum += static_cast<double>(weight);
  }
  rest *= sum / mass[block];
  std::size_t last = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] > 0.0f)) continue;
    last = i;
    rest -= static_cast<double>(weights[i]);
    if (rest < 0.0) break;
  }
  return static_cast<std::int32_t>(begin) + static_cast<std::int32_t>(last);
}

// A few rows of logits with their block sums, on both sides.
struct Rows {
  Rows(std::int64_t count, std::int64_t columns, float deviation)
      : vocab(columns),
        blocks((columns + kVocabBlock - 1) / kVocabBlock),
        logits(normal(count * columns, 11, deviation)),
        inv_temperature(static_cast<std::size_t>(count), 0.9f),
        max(static_cast<std::size_t>(count * blocks)),
        sum(static_cast<std::size_t>(count * blocks)),
        lse(static_cast<std::size_t>(count)) {}
  // After the host's logits were changed.
  void finish() {
    auto& memory = device()->memory();
    memory.upload(logits.data(), logits.host().data(), logits.host().size() * sizeof(float));
    const auto count = static_cast<std::int64_t>(lse.host().size());
    const VocabRows host{.logits = logits.host().data(),
                         .ld = vocab,
                         .vocab = vocab,
                         .inv_temperature = inv_temperature.host().data(),
                         .block_max = max.host().data(),
                         .block_sum = sum.host().data()};
    reference().vocab_sums(host, {0, count}, {0, blocks});
    reference().vocab_finish({.rows = host, .lse = lse.host().data(), .targets = {}}, {0, count});
    device()->ops().vocab_sums(there(), {0, count}, {0, blocks});
  }
  VocabRows there() {
    return {.logits = logits.data(),
            .ld = vocab,
            .vocab = vocab,
            .inv_temperature = inv_temperature.data(),
            .block_max = max.data(),
            .block_sum = sum.data()};
  }
  HostRow row(std::int64_t at) {
    return {.logits = logits.host().data() + at * vocab,
            .block_max = max.host().data() + at * blocks,
            .block_sum = sum.host().data() + at * blocks,
            .inv_temperature = inv_temperature.host()[static_cast<std::size_t>(at)],
            .lse = lse.host()[static_cast<std::size_t>(at)],
            .vocab = vocab,
            .blocks = blocks};
  }
  float& logit(std::int64_t row, std::int64_t token) {
    return logits.host()[static_cast<std::size_t>(row * vocab + token)];
  }
  std::int64_t vocab, blocks;
  Array<float> logits, inv_temperature, max, sum, lse;
};

void compare(Rows& rows, const std::vector<double>& uniform, const std::vector<std::int32_t>& row) {
  Array<double> u(uniform);
  Array<std::int32_t> of(row), token(row.size(), -1);
  Array<float> logprob(row.size());
  device()->ops().draw({.rows = rows.there(),
                        .uniform = u.data(),
                        .row = of.data(),
                        .token = token.data(),
                        .logprob = logprob.data()},
                       static_cast<std::int64_t>(row.size()));
  const std::vector<std::int32_t> tokens = token.read();
  const std::vector<float> logprobs = logprob.read();
  for (std::size_t i = 0; i < row.size(); ++i) {
    const HostRow host = rows.row(row[i]);
    const std::int32_t expected = draw_on_host(host, uniform[i]);
    EXPECT_EQ(tokens[i], expected) << i << " of row " << row[i] << ", u " << uniform[i];
    const float scaled = host.logits[expected] * host.inv_temperature;
    EXPECT_TRUE(same_bits(logprobs[i], scaled - host.lse)) << i;
  }
}

TEST_F(CudaDraw, DrawsWhatTheSamplerDraws) {
  Rows rows(4, 3 * kVocabBlock + 77, 2.0f);
  for (std::int64_t i = 0; i < kVocabBlock; ++i)
    rows.logit(1, i) = i == 9 ? 1.0f : -kInf;
  for (std::int64_t i = 600; i < rows.vocab; ++i)
    rows.logit(2, i) = -kInf;  // blocks without mass at the end
  for (std::int64_t i = 0; i < rows.vocab; ++i)
    rows.logit(3, i) = 0.25f;  // sums of blocks that differ from the sum of their weights
  rows.finish();
  std::vector<double> uniform;
  std::vector<std::int32_t> row;
  for (std::int32_t r = 0; r < 4; ++r) {
    for (int i = 0; i < 40; ++i) {
      uniform.push_back(
          core::uniform(5, static_cast<std::uint64_t>(r), static_cast<std::uint64_t>(i)));
      row.push_back(r);
    }
    for (const double edge : {0.0, 1e-12, 0.5, 1.0 - 1e-16, -1.0}) {
      uniform.push_back(edge);
      row.push_back(r);
    }
  }
  compare(rows, uniform, row);
}

TEST_F(CudaDraw, TheLowestOfEqualTokensIsTheMostLikely) {
  Rows rows(3, 2 * kVocabBlock + 5, 1.0f);
  for (const std::int64_t token : {70, 71, 519, 1028})
    rows.logit(0, token) = 8.0f;
  rows.logit(1, 1028) = 9.0f;  // the last token
  for (const std::int64_t token : {300, 40, 1000})
    rows.logit(2, token) = 7.0f;
  rows.finish();
  compare(rows, {-1, -1, -1}, {0, 1, 2});
}

TEST_F(CudaDraw, LogprobOfARowWithoutNumbersIsNotFinite) {
  Rows rows(4, kVocabBlock + 5, 1.0f);
  rows.logit(0, 3) = kNan;
  rows.logit(1, 515) = kInf;
  for (std::int64_t i = 0; i < rows.vocab; ++i) {
    rows.logit(2, i) = kNan;
    rows.logit(3, i) = -kInf;
  }
  rows.finish();
  Array<double> u(std::vector<double>{0.3, 0.3, 0.3, 0.3, -1, -1, -1, -1});
  Array<std::int32_t> of(std::vector<std::int32_t>{0, 1, 2, 3, 0, 1, 2, 3}), token(8, -1);
  Array<float> logprob(8);
  device()->ops().draw({.rows = rows.there(),
                        .uniform = u.data(),
                        .row = of.data(),
                        .token = token.data(),
                        .logprob = logprob.data()},
                       8);
  for (const std::int32_t drawn : token.read()) {
    EXPECT_GE(drawn, 0);
    EXPECT_LT(drawn, rows.vocab);
  }
  for (const float value : logprob.read())
    EXPECT_FALSE(std::isfinite(value));
}

}  // namespace
}  // namespace troupe::kernels::cuda::test

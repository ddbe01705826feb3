// The softmax over the vocabulary: the reference's bits over odd widths, ranges and special
// numbers.
#include "tests/unit/kernels/cuda/fixture.hpp"

#include <cmath>

namespace troupe::kernels::cuda::test {
namespace {

class CudaVocab : public OnDevice {};

VocabRows one_row(const float* z, std::int64_t count, const float* scale, float* max, float* sum) {
  return {.logits = z,
          .ld = count,
          .vocab = count,
          .inv_temperature = scale,
          .block_max = max,
          .block_sum = sum};
}

TEST_F(CudaVocab, SumsByHand) {
  Array<float> z({2, 4, 4}), scale(1, 0.5f), max(1), sum(1);
  ops().vocab_sums(one_row(z.data(), 3, scale.data(), max.data(), sum.data()), {0, 1}, {0, 1});
  EXPECT_EQ(max.read()[0], 2.0f);
  EXPECT_NEAR(sum.read()[0], 2.0 + std::exp(-1.0), 1e-6);
}

TEST_F(CudaVocab, OneBlockHasTheBitsOfTheReference) {
  for (const std::int64_t count : {1, 15, 16, 37, 300, 512})
    for (const float special : {0.5f, kInf, -kInf, kNan, 1e-40f, 1e30f}) {
      Array<float> z(normal(count, 3, 4.0f)), scale(1, 0.7f), max(1), sum(1), lse(1), entropy(1);
      z.host()[static_cast<std::size_t>(count / 2)] = special;
      Array<float> in(z.host());
      const VocabFinish here{.rows = one_row(z.host().data(), count, scale.host().data(),
                                             max.host().data(), sum.host().data()),
                             .lse = lse.host().data(),
                             .entropy = entropy.host().data(),
                             .targets = {}};
      const VocabFinish there{
          .rows = one_row(in.data(), count, scale.data(), max.data(), sum.data()),
          .lse = lse.data(),
          .entropy = entropy.data(),
          .targets = {}};
      reference().vocab_sums(here.rows, {0, 1}, {0, 1});
      reference().vocab_finish(here, {0, 1});
      ops().vocab_sums(there.rows, {0, 1}, {0, 1});
      ops().vocab_finish(there, {0, 1});
      EXPECT_TRUE(same(max, max.host())) << count << " " << special;
      EXPECT_TRUE(same(sum, sum.host())) << count << " " << special;
      EXPECT_TRUE(same(lse, lse.host())) << count << " " << special;
      EXPECT_TRUE(same(entropy, entropy.host())) << count << " " << special;
    }
}

TEST_F(CudaVocab, SoftcapHasTheBitsOfTheReference) {
  constexpr std::int64_t kRows = 5, kColumns = 301, kLd = 310;
  std::vector<float> values = normal(kRows * kLd, 9, 30.0f);
  values[3] = kInf;
  values[4] = -kInf;
  values[5] = kNan;
  values[6] = 1e-40f;
  values[7] = -0.0f;
  Array<float> x(values);
  reference().softcap({.columns = kColumns, .x = x.host().data(), .ldx = kLd, .cap = 30.0f},
                      {0, kRows});
  ops().softcap({.columns = kColumns, .x = x.data(), .ldx = kLd, .cap = 30.0f}, {0, kRows});
  EXPECT_TRUE(same(x, x.host()));
}

// Rows over two blocks and a bit, with special numbers in some; row 0 has no target, row 1 one, row
// 2 three, two of them the same token, and the last row one in the last block.
struct Case {
  static constexpr std::int64_t kRows = 7, kVocab = 2 * kVocabBlock + 37, kLd = kVocab + 11;
  static constexpr std::int64_t kBlocks = 3, kTargets = 5;
  Array<std::int32_t> begin{{0, 0, 1, 4, 4, 4, 4, 5}}, target{{2, 0, 1, 3, 4}},
      token{{20, 600, 1040, 20, 1060}};
  Array<float> inv_temperature{{0.8f, 1.0f, 2.0f, 0.8f, 0.8f, 0.8f, 0.8f}};
  Array<float> z{normal(kRows * kLd, 4, 3.0f)};
  Array<float> max{kRows * kBlocks}, sum{kRows * kBlocks};
  Array<float> lse{kRows}, entropy{kRows}, logprobs{kTargets};
  Array<float> dlogprobs{normal(kTargets, 7)}, dentropies{normal(kTargets, 8)};

  Case() {
    std::vector<float> values = normal(kRows * kLd, 4, 3.0f);
    const auto at = [&](std::int64_t row, std::int64_t column) -> float& {
      return values[static_cast<std::size_t>(row * kLd + column)];
    };
    for (std::int64_t i = 0; i < kVocabBlock; ++i)
      at(2, i) = i == 20 ? 1.0f : -kInf;
    for (std::int64_t i = kVocabBlock; i < 2 * kVocabBlock; ++i)
      at(0, i) = -kInf;
    at(3, 700) = kNan;
    at(4, 1050) = kInf;
    at(5, 3) = 1e-40f;
    device()->memory().upload(z.data(), values.data(), values.size() * sizeof(float));
    z.host() = values;
  }
  static float* of(Array<float>& a, bool host) { return host ? a.host().data() : a.data(); }
  VocabTargets targets(bool host) {
    return host ? VocabTargets{begin.host().data(), target.host().data(), token.host().data()}
                : VocabTargets{begin.data(), target.data(), token.data()};
  }
  VocabRows rows(bool host) {
    return {of(z, host), kLd, kVocab, of(inv_temperature, host), of(max, host), of(sum, host)};
  }
  void forward(const Ops& ops, bool host, bool wanted = true) {
    ops.vocab_sums(rows(host), {0, kRows}, {0, 2});
    ops.vocab_sums(rows(host), {0, 2}, {2, 3});
    ops.vocab_sums(rows(host), {2, kRows}, {2, 3});
    ops.vocab_sums(rows(host), {2, 2}, {0, 3});
    VocabFinish finish{.rows = rows(host), .lse = of(lse, host), .targets = {}};
    if (wanted) {
      finish.entropy = of(entropy, host);
      finish.targets = targets(host);
      finish.logprobs = of(logprobs, host);
    }
    ops.vocab_finish(finish, {0, 3});
    ops.vocab_finish(finish, {3, kRows});
  }
  void backward(const Ops& ops, bool host, float cap, bool logprob, bool entropies) {
    const VocabGrad grad{.logits = of(z, host),
                         .ld = kLd,
                         .vocab = kVocab,
                         .inv_temperature = 0.8f,
                         .softcap = cap,
                         .lse = of(lse, host),
                         .entropy = entropies ? of(entropy, host) : nullptr,
                         .targets = targets(host),
                         .dlogprobs = logprob ? of(dlogprobs, host) : nullptr,
                         .dentropies = entropies ? of(dentropies, host) : nullptr};
    ops.vocab_grad(grad, {0, kRows}, {0, 1});
    ops.vocab_grad(grad, {0, 1}, {1, 3});
    ops.vocab_grad(grad, {1, kRows}, {1, 3});
  }
};

TEST_F(CudaVocab, RowsHaveTheBitsOfTheReference) {
  for (const bool wanted : {true, false}) {
    Case c;
    c.forward(reference(), true, wanted);
    c.forward(ops(), false, wanted);
    EXPECT_TRUE(same(c.max, c.max.host()));
    EXPECT_TRUE(same(c.sum, c.sum.host()));
    EXPECT_TRUE(same(c.lse, c.lse.host()));
    EXPECT_TRUE(same(c.entropy, c.entropy.host()));
    EXPECT_TRUE(same(c.logprobs, c.logprobs.host()));
  }
}

TEST_F(CudaVocab, MergesManyBlocksInOrder) {
  constexpr std::int64_t kBlocks = 619;  // more than threads of a block
  Array<float> max(normal(2 * kBlocks, 5, 2.0f)), lse(2);
  std::vector<float> sums = normal(2 * kBlocks, 6, 9.0f);
  for (float& sum : sums)
    sum = sum * sum + 1.0f;
  Array<float> sum(sums);
  VocabFinish host{.rows = {.vocab = kBlocks * kVocabBlock - 5,
                            .block_max = max.host().data(),
                            .block_sum = sum.host().data()},
                   .lse = lse.host().data(),
                   .targets = {}};
  VocabFinish there{
      .rows = {.vocab = host.rows.vocab, .block_max = max.data(), .block_sum = sum.data()},
      .lse = lse.data(),
      .targets = {}};
  reference().vocab_finish(host, {0, 2});
  ops().vocab_finish(there, {0, 2});
  EXPECT_TRUE(same(lse, lse.host()));
}

TEST_F(CudaVocab, GradientsHaveTheBitsOfTheReference) {
  for (const float cap : {0.0f, 12.0f})
    for (const int wanted : {1, 2, 3}) {
      Case c;
      c.forward(reference(), true);
      c.forward(ops(), false);
      c.backward(reference(), true, cap, (wanted & 1) != 0, (wanted & 2) != 0);
      c.backward(ops(), false, cap, (wanted & 1) != 0, (wanted & 2) != 0);
      EXPECT_TRUE(same(c.z, c.z.host())) << cap << " " << wanted;
    }
}

}  // namespace
}  // namespace troupe::kernels::cuda::test

// Vocabulary sums and gradients: against softmax in double, edges, and same bits on every level.
#include "tests/unit/kernels/support.hpp"

#include <algorithm>

namespace troupe::kernels::test {
namespace {

class VocabAllLevels : public VectorLevel {};
TROUPE_ALL_LEVELS(VocabAllLevels);

// One row of its own: the sums of its blocks, and what they are merged to.
struct RowSums {
  std::vector<float> max, sum;
  float lse = 0.0f, entropy = 0.0f;

  RowSums(const Ops& ops, const Guarded& z, float inv_temperature)
      : max(static_cast<std::size_t>((z.size() + kVocabBlock - 1) / kVocabBlock)), sum(max) {
    VocabFinish finish;
    finish.rows = {.logits = z.data(),
                   .ld = z.size(),
                   .vocab = z.size(),
                   .inv_temperature = &inv_temperature,
                   .block_max = max.data(),
                   .block_sum = sum.data()};
    finish.lse = &lse;
    finish.entropy = &entropy;
    ops.vocab_sums(finish.rows, {0, 1}, {0, std::ssize(max)});
    ops.vocab_finish(finish, {0, 1});
  }
};

TEST_P(VocabAllLevels, SumsByHand) {
  Guarded z(3);
  z[0] = 2.0f;
  z[1] = 4.0f;
  z[2] = 4.0f;
  const RowSums row(level(), z, 0.5f);
  EXPECT_EQ(row.max[0], 2.0f);
  EXPECT_NEAR(row.sum[0], 2.0 + std::exp(-1.0), 1e-6);
}

TEST_P(VocabAllLevels, BlockOfMinusInfinitySumsToZero) {
  Guarded z(20, -kInf);
  const RowSums row(level(), z, 1.0f);
  EXPECT_EQ(row.max[0], -kInf);
  EXPECT_EQ(row.sum[0], 0.0f);
  z[7] = kNan;
  EXPECT_TRUE(std::isnan(RowSums(level(), z, 1.0f).sum[0]));
}

struct Softmax {
  std::vector<double> s, p;
  double lse = 0.0, entropy = 0.0;
  Softmax(const Guarded& z, double inv_temperature) {
    double total = 0.0;
    for (std::int64_t i = 0; i < z.size(); ++i) {
      s.push_back(static_cast<double>(z[i]) * inv_temperature);
      total += std::exp(s.back());
    }
    lse = std::log(total);
    for (const double x : s) {
      p.push_back(std::exp(x - lse));
      if (p.back() > 0.0) entropy -= p.back() * (x - lse);
    }
  }
};

TEST_P(VocabAllLevels, EntropyOfOneBlockCloseToDouble) {
  Guarded z = Guarded::random(kVocabBlock, 4, 3.0f);
  z[100] = -kInf;
  EXPECT_NEAR(RowSums(level(), z, 0.7f).entropy, Softmax(z, 0.7).entropy, 2e-5);
}

// Three rows over two blocks and a bit; row 0 has no target, row 1 one, row 2 three, two of them
// the same token and one a column of the second block. Room after each row.
struct VocabCase {
  static constexpr std::int64_t kRowCount = 3, kVocab = 2 * kVocabBlock + 37, kLd = kVocab + 11;
  static constexpr std::int64_t kBlocks = 3, kTargets = 4;
  const std::vector<std::int32_t> begin{0, 0, 1, 4}, target{2, 0, 1, 3}, token{20, 600, 1040, 20};
  const std::vector<float> inv_temperature = std::vector<float>(kRowCount, 0.8f);
  Guarded z = Guarded::random(kRowCount * kLd, 4, 2.0f);
  Guarded max{kRowCount * kBlocks}, sum{kRowCount * kBlocks};
  Guarded lse{kRowCount}, entropy{kRowCount}, logprobs{kTargets};
  Guarded dlogprobs = Guarded::random(kTargets, 7), dentropies = Guarded::random(kTargets, 8);

  VocabRows rows() {
    return {z.data(), kLd, kVocab, inv_temperature.data(), max.data(), sum.data()};
  }
  VocabTargets targets() const { return {begin.data(), target.data(), token.data()}; }
  void forward(const Ops& ops) {
    ops.vocab_sums(rows(), {0, kRowCount}, {0, 2});
    ops.vocab_sums(rows(), {0, 2}, {2, 3});
    ops.vocab_sums(rows(), {2, 3}, {2, 3});
    const VocabFinish finish{rows(), lse.data(), entropy.data(), targets(), logprobs.data()};
    ops.vocab_finish(finish, {0, 1});
    ops.vocab_finish(finish, {1, kRowCount});
  }
  // z becomes its gradient; `cap` as if z came out of a soft cap.
  void backward(const Ops& ops, float cap) {
    const VocabGrad grad{.logits = z.data(),
                         .ld = kLd,
                         .vocab = kVocab,
                         .inv_temperature = 0.8f,
                         .softcap = cap,
                         .lse = lse.data(),
                         .entropy = entropy.data(),
                         .targets = targets(),
                         .dlogprobs = dlogprobs.data(),
                         .dentropies = dentropies.data()};
    ops.vocab_grad(grad, {0, kRowCount}, {0, 1});
    ops.vocab_grad(grad, {0, 1}, {1, 3});
    ops.vocab_grad(grad, {1, kRowCount}, {1, 3});
  }
  Guarded row(std::int64_t at) const {
    Guarded out(kVocab);
    for (std::int64_t i = 0; i < kVocab; ++i)
      out[i] = z[at * kLd + i];
    return out;
  }
};

TEST_P(VocabAllLevels, RowsAndTargetsCloseToDouble) {
  VocabCase c;
  c.forward(level());
  for (std::int64_t row = 0; row < VocabCase::kRowCount; ++row) {
    const Softmax exact(c.row(row), 0.8);
    EXPECT_NEAR(c.lse[row], exact.lse, 1e-5);
    EXPECT_NEAR(c.entropy[row], exact.entropy, 1e-4);
    const auto at = static_cast<std::size_t>(row);
    for (std::int32_t i = c.begin[at]; i < c.begin[at + 1]; ++i) {
      const std::int32_t target = c.target[static_cast<std::size_t>(i)];
      const auto token = static_cast<std::size_t>(c.token[static_cast<std::size_t>(target)]);
      EXPECT_NEAR(c.logprobs[target], exact.s[token] - exact.lse, 1e-5) << target;
    }
  }
}

TEST_P(VocabAllLevels, MergesBlocksByHand) {
  // exp(0) * 2 + exp(-1) * 4 under a maximum of 3.
  float max[2] = {3.0f, 2.0f}, sum[2] = {2.0f, 4.0f}, lse = 0.0f;
  VocabFinish finish;
  finish.rows.vocab = kVocabBlock + 1;
  finish.rows.block_max = max;
  finish.rows.block_sum = sum;
  finish.lse = &lse;
  level().vocab_finish(finish, {0, 1});
  EXPECT_NEAR(lse, 3.0 + std::log(2.0 + 4.0 * std::exp(-1.0)), 1e-6);
}

// d/dz of the sum over a row's targets of (g log p[token] + h H), by central differences in double;
// with a soft cap d/du for z = cap tanh(u / cap).
TEST_P(VocabAllLevels, GradientCloseToDifferences) {
  for (const float cap : {0.0f, 9.0f}) {
    VocabCase c;
    c.forward(level());
    const VocabCase before = c;
    c.backward(level(), cap);
    for (std::int64_t row = 0; row < VocabCase::kRowCount; ++row) {
      const Softmax exact(before.row(row), 0.8);
      double total = 0.0;
      for (const double s : exact.s)
        total += std::exp(s);
      const double entropy_sum = total * (exact.lse - exact.entropy);  // of exp(s) s
      const auto loss = [&](std::int64_t at, double step) {
        const double s = exact.s[static_cast<std::size_t>(at)], moved = s + step * 0.8;
        const double sum = total + std::exp(moved) - std::exp(s);
        const double weighted = entropy_sum + std::exp(moved) * moved - std::exp(s) * s;
        double value = 0.0;
        const auto begin = static_cast<std::size_t>(row);
        for (std::int32_t i = c.begin[begin]; i < c.begin[begin + 1]; ++i) {
          const std::int32_t target = c.target[static_cast<std::size_t>(i)];
          const std::int64_t token = c.token[static_cast<std::size_t>(target)];
          const double of_token = token == at ? moved : exact.s[static_cast<std::size_t>(token)];
          value += static_cast<double>(c.dlogprobs[target]) * (of_token - std::log(sum)) +
                   static_cast<double>(c.dentropies[target]) * (std::log(sum) - weighted / sum);
        }
        return value;
      };
      for (const std::int64_t i : {0, 20, 511, 512, 600, 1023, 1024, 1040, 1060}) {
        const double t =
            cap > 0.0f ? static_cast<double>(before.z[row * VocabCase::kLd + i]) / 9.0 : 0.0;
        const double slope = (loss(i, 1e-5) - loss(i, -1e-5)) / 2e-5 * (1.0 - t * t);
        EXPECT_NEAR(c.z[row * VocabCase::kLd + i], slope, 2e-6) << row << " " << i << " " << cap;
      }
      for (std::int64_t i = VocabCase::kVocab; i < VocabCase::kLd; ++i)
        EXPECT_EQ(c.z[row * VocabCase::kLd + i], before.z[row * VocabCase::kLd + i]);
    }
  }
}

class VocabVectorLevels : public VectorLevel {};
TROUPE_VECTOR_LEVELS(VocabVectorLevels);

TEST_P(VocabVectorLevels, SameBitsAsReference) {
  for (const std::int64_t count : {1, 3, 15, 16, 17, 257, 512, 1000})
    for (const float special : {0.5f, kInf, -kInf, kNan, 1e30f, 1e-40f}) {
      Guarded z = Guarded::random(count, 6, 4.0f);
      z[count / 2] = special;
      const RowSums expected(reference(), z, 0.9f), actual(level(), z, 0.9f);
      for (std::size_t b = 0; b < expected.max.size(); ++b) {
        EXPECT_TRUE(same_bits(expected.max[b], actual.max[b])) << count << " " << special;
        EXPECT_TRUE(same_bits(expected.sum[b], actual.sum[b])) << count << " " << special;
      }
      EXPECT_TRUE(same_bits(expected.lse, actual.lse)) << count << " " << special;
      EXPECT_TRUE(same_bits(expected.entropy, actual.entropy)) << count << " " << special;
    }
}

TEST_P(VocabVectorLevels, RowsSameBitsAsReference) {
  for (const float special : {0.5f, kInf, -kInf, kNan, 1e30f, 1e-40f})
    for (const float cap : {0.0f, 5.0f}) {
      VocabCase expected, actual;
      expected.z[VocabCase::kLd + 40] = actual.z[VocabCase::kLd + 40] = special;
      expected.forward(reference());
      actual.forward(level());
      EXPECT_TRUE(same_bits(expected.max, actual.max) && same_bits(expected.sum, actual.sum));
      EXPECT_TRUE(same_bits(expected.lse, actual.lse)) << special;
      EXPECT_TRUE(same_bits(expected.entropy, actual.entropy)) << special;
      EXPECT_TRUE(same_bits(expected.logprobs, actual.logprobs)) << special;
      expected.backward(reference(), cap);
      actual.backward(level(), cap);
      EXPECT_TRUE(same_bits(expected.z, actual.z)) << special << " " << cap;
    }
}

}  // namespace
}  // namespace troupe::kernels::test

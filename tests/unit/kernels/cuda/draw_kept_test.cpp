// Draws from truncated rows, changes of logits and most likely tokens against full sorts, as
// kernels/draw_shapes.hpp defines them. tests/unit/runtime/engine/device_sampler_test.cpp compares
// them with the host's Sampler.
#include "runtime/core/rng.hpp"
#include "tests/unit/kernels/cuda/fixture.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::kernels::cuda::test {
namespace {

class CudaKept : public OnDevice {};

struct Ranked {
  float score;
  std::int32_t id;
  std::uint64_t mass;
  float weight;
};

// Rows of logits on both sides, with partial sums.
struct KeptRows {
  KeptRows(std::int64_t count, std::int64_t columns, float deviation, float temperature = 0.8f)
      : vocab(columns),
        blocks((columns + kVocabBlock - 1) / kVocabBlock),
        ld(columns + 3),
        logits(normal(count * ld, 17, deviation)),
        inv_temperature(static_cast<std::size_t>(count), 1.0f / temperature),
        max(static_cast<std::size_t>(count * blocks)),
        sum(static_cast<std::size_t>(count * blocks)) {}
  VocabRows there() {
    return {.logits = logits.data(),
            .ld = ld,
            .vocab = vocab,
            .inv_temperature = inv_temperature.data(),
            .block_max = max.data(),
            .block_sum = sum.data()};
  }
  std::int64_t count() const { return std::ssize(const_cast<KeptRows*>(this)->logits.host()) / ld; }
  // After the host's logits were changed.
  void finish() {
    device()->memory().upload(logits.data(), logits.host().data(),
                              logits.host().size() * sizeof(float));
    device()->ops().vocab_sums(there(), {0, count()}, {0, blocks});
    max.host() = max.read();
    sum.host() = sum.read();
  }
  float& logit(std::int64_t row, std::int64_t token) {
    return logits.host()[static_cast<std::size_t>(row * ld + token)];
  }
  // All tokens of a row, the first in the ranking first.
  std::vector<Ranked> ranking(std::int64_t row) {
    std::vector<Ranked> all;
    const float largest = row_max(row);
    for (std::int64_t i = 0; i < vocab; ++i) {
      const float score = logit(row, i) * inv_temperature.host()[static_cast<std::size_t>(row)];
      float weight = score - largest;
      reference().exp(&weight, &weight, 1);
      all.push_back({score, static_cast<std::int32_t>(i), mass_of(weight), weight});
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Ranked& a, const Ranked& b) { return a.score > b.score; });
    return all;
  }
  float row_max(std::int64_t row) {
    const auto first = max.host().begin() + row * blocks;
    return *std::max_element(first, first + blocks);
  }
  double mass(std::int64_t row) {
    double all = 0.0;
    for (std::int64_t b = 0; b < blocks; ++b) {
      const auto at = static_cast<std::size_t>(row * blocks + b);
      float scale = max.host()[at] - row_max(row);
      reference().exp(&scale, &scale, 1);
      all += static_cast<double>(sum.host()[at]) * static_cast<double>(scale);
    }
    return all;
  }
  std::int64_t vocab, blocks, ld;
  Array<float> logits, inv_temperature, max, sum;
};

struct Expected {
  std::int32_t token = 0;
  std::uint64_t mass = 0;
  std::int64_t kept = 0;
};

Expected kept_on_host(KeptRows& rows, std::int64_t row, const Truncation& cut, double u) {
  std::vector<Ranked> all = rows.ranking(row);
  std::erase_if(all, [](const Ranked& token) { return token.score == -kInf; });
  if (cut.top_k > 0 && cut.top_k < std::ssize(all)) all.resize(static_cast<std::size_t>(cut.top_k));
  std::uint64_t mass = 0;
  for (const Ranked& token : all)
    mass += token.mass;
  const double limit = static_cast<double>(cut.top_p) *
                       (cut.top_k > 0 ? static_cast<double>(mass) : rows.mass(row) * kMassUnits);
  std::vector<Ranked> kept;
  std::uint64_t before = 0;
  Expected expected;
  for (const Ranked& token : all) {
    if (cut.top_p < 1.0f && static_cast<double>(before) >= limit) break;
    before += token.mass;
    if (token.weight < cut.min_p) continue;
    kept.push_back(token);
    expected.mass += token.mass;
  }
  expected.kept = std::ssize(kept);
  std::sort(kept.begin(), kept.end(), [](const Ranked& a, const Ranked& b) { return a.id < b.id; });
  const auto wanted = static_cast<std::uint64_t>(u * static_cast<double>(expected.mass));
  std::uint64_t running = 0;
  for (const Ranked& token : kept) {
    if (token.mass == 0) continue;
    expected.token = token.id;
    running += token.mass;
    if (running > wanted) break;
  }
  return expected;
}

// Each truncation on each row, at several numbers; returns how many tokens were kept.
std::vector<std::int64_t> compare(KeptRows& rows, const std::vector<Truncation>& cuts) {
  std::vector<double> uniform;
  std::vector<std::int32_t> row;
  std::vector<Truncation> truncation;
  for (std::int32_t r = 0; r < rows.count(); ++r) {
    for (const Truncation& cut : cuts) {
      for (const double u :
           {1e-12, core::uniform(3, static_cast<std::uint64_t>(r), row.size()), 1.0 - 1e-16}) {
        uniform.push_back(u);
        row.push_back(r);
        truncation.push_back(cut);
      }
    }
  }
  Array<double> there(uniform);
  Array<std::int32_t> of(row), token(row.size(), -1);
  Array<Truncation> by(truncation);
  Array<unsigned long long> mass(row.size());
  device()->ops().draw_kept({.rows = rows.there(),
                             .uniform = there.data(),
                             .row = of.data(),
                             .truncation = by.data(),
                             .token = token.data(),
                             .mass = mass.data()},
                            std::ssize(row));
  const auto tokens = token.read();
  const auto masses = mass.read();
  std::vector<std::int64_t> kept;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const Truncation& cut = truncation[i];
    const Expected expected = kept_on_host(rows, row[i], cut, uniform[i]);
    EXPECT_EQ(tokens[i], expected.token)
        << "row " << row[i] << " k " << cut.top_k << " p " << cut.top_p << " min_p " << cut.min_p
        << " u " << uniform[i];
    EXPECT_EQ(masses[i], expected.mass)
        << "row " << row[i] << " k " << cut.top_k << " p " << cut.top_p << " min_p " << cut.min_p;
    if (i % 3 == 0) kept.push_back(expected.kept);
  }
  return kept;
}

TEST_F(CudaKept, RowsOfManyKinds) {
  KeptRows rows(6, 3 * kVocabBlock + 77, 2.5f);
  for (std::int64_t i = 0; i < rows.vocab; ++i) {
    rows.logit(1, i) = std::round(rows.logit(1, i));                    // ties
    rows.logit(2, i) = i % 3 == 0 ? -kInf : rows.logit(2, i);           // masked
    rows.logit(3, i) = i < 3 ? static_cast<float>(i) - 20.0f : -40.0f;  // nearly all are far away
    rows.logit(4, i) *= 40.0f;                                          // nearly all are
    rows.logit(5, i) = i == 900 ? 3.0f : i % 2 == 0 ? -0.0f : 0.0f;     // zeros of both signs
  }
  rows.finish();
  compare(rows, {{.top_k = 1},
                 {.top_k = 2},
                 {.top_k = 40},
                 {.top_k = 700},
                 {.top_k = 1600},
                 {.top_p = 1e-7f},
                 {.top_p = 0.3f},
                 {.top_p = 0.9f},
                 {.top_p = 0.9999999f},
                 {.min_p = 0.2f},
                 {.min_p = 1e-6f},
                 {.min_p = 1.0f},
                 {.top_k = 30, .top_p = 0.8f},
                 {.top_k = 1200, .top_p = 0.99f, .min_p = 0.001f},
                 {.top_k = 5, .min_p = 0.3f},
                 {.top_p = 0.95f, .min_p = 0.05f}});
}

// More equal tokens than are compared with each other: the cut is found by the digits of their ids.
TEST_F(CudaKept, EqualTokensAreCutByTheirIds) {
  KeptRows rows(1, 2 * kVocabBlock + 300, 0.0f);
  rows.finish();
  const auto kept = compare(
      rows, {{.top_k = 1}, {.top_k = 777}, {.top_p = 0.5f}, {.top_k = 1000, .top_p = 0.5f}, {}});
  EXPECT_EQ(kept, (std::vector<std::int64_t>{1, 777, 662, 500, 1324}));
}

// Two tokens of weight 1, one of a weight that rounds down to no mass.
TEST_F(CudaKept, ThreeTokensWorkedOutByHand) {
  KeptRows rows(1, 700, 0.0f, 1.0f);
  for (std::int64_t i = 0; i < rows.vocab; ++i)
    rows.logit(0, i) = -kInf;
  rows.logit(0, 650) = 0.0f;
  rows.logit(0, 3) = 0.0f;
  rows.logit(0, 600) = -100.0f;  // kept by top-k, but of no mass
  rows.finish();
  Array<double> u(std::vector<double>{0.25, 0.499, 0.5, 0.9999, 0.7});
  Array<std::int32_t> of(5, 0), token(5, -1);
  Array<Truncation> cut(std::vector<Truncation>{
      {.top_k = 3}, {.top_k = 3}, {.top_k = 3}, {.top_k = 3}, {.top_k = 1}});
  Array<unsigned long long> mass(5);
  device()->ops().draw_kept({.rows = rows.there(),
                             .uniform = u.data(),
                             .row = of.data(),
                             .truncation = cut.data(),
                             .token = token.data(),
                             .mass = mass.data()},
                            5);
  EXPECT_EQ(token.read(), (std::vector<std::int32_t>{3, 3, 650, 650, 3}));
  const auto one = static_cast<unsigned long long>(kMassUnits);
  EXPECT_EQ(mass.read(),
            (std::vector<unsigned long long>{2 * one, 2 * one, 2 * one, 2 * one, one}));
}

TEST_F(CudaKept, RowsWithoutNumbersDrawSomeToken) {
  KeptRows rows(4, kVocabBlock + 5, 1.0f);
  rows.logit(0, 3) = kNan;
  rows.logit(1, 515) = kInf;
  for (std::int64_t i = 0; i < rows.vocab; ++i) {
    rows.logit(2, i) = kNan;
    rows.logit(3, i) = -kInf;
  }
  rows.finish();
  Array<double> u(8, 0.6);
  Array<std::int32_t> of(std::vector<std::int32_t>{0, 1, 2, 3, 0, 1, 2, 3}), token(8, -1);
  std::vector<Truncation> cuts(8, Truncation{.top_k = 300, .min_p = 0.1f});
  std::fill(cuts.begin() + 4, cuts.end(), Truncation{.top_p = 0.7f});
  Array<Truncation> cut(cuts);
  device()->ops().draw_kept({.rows = rows.there(),
                             .uniform = u.data(),
                             .row = of.data(),
                             .truncation = cut.data(),
                             .token = token.data()},
                            8);
  for (const std::int32_t drawn : token.read()) {
    EXPECT_GE(drawn, 0);
    EXPECT_LT(drawn, rows.vocab);
  }
}

TEST_F(CudaKept, MostLikelyTokensEqualAFullSort) {
  KeptRows rows(4, 2 * kVocabBlock + 301, 2.0f, 1.0f);
  for (std::int64_t i = 0; i < rows.vocab; ++i) {
    rows.logit(1, i) = std::round(rows.logit(1, i));
    rows.logit(2, i) = i % 400 == 7 ? rows.logit(2, i) : -kInf;  // four numbers
    rows.logit(3, i) = 2.0f;
  }
  rows.finish();
  std::vector<std::int32_t> row, begin{0};
  for (std::int32_t r = 0; r < 4; ++r) {
    for (const std::int32_t count : {1, 0, 3, 20, kMostLikely_max}) {
      row.push_back(r);
      begin.push_back(begin.back() + count);
    }
  }
  Array<std::int32_t> of(row), from(begin), token(static_cast<std::size_t>(begin.back()), -1);
  Array<float> lse(std::vector<float>{0.3f, 1.0f, 2.0f, 0.0f}), logprob(token.host().size());
  device()->ops().most_likely({.rows = rows.there(),
                               .lse = lse.data(),
                               .row = of.data(),
                               .begin = from.data(),
                               .token = token.data(),
                               .logprob = logprob.data()},
                              std::ssize(row));
  const auto tokens = token.read();
  const auto logprobs = logprob.read();
  for (std::size_t list = 0; list < row.size(); ++list) {
    const std::vector<Ranked> all = rows.ranking(row[list]);
    for (std::int32_t i = begin[list]; i < begin[list + 1]; ++i) {
      const Ranked& expected = all[static_cast<std::size_t>(i - begin[list])];
      const auto at = static_cast<std::size_t>(i);
      EXPECT_EQ(tokens[at], expected.id) << "row " << row[list] << ", place " << i - begin[list];
      EXPECT_TRUE(same_bits(logprobs[at],
                            expected.score - lse.host()[static_cast<std::size_t>(row[list])]));
    }
  }
}

TEST_F(CudaKept, LogitsChangedByHandComeBack) {
  KeptRows rows(2, 600, 1.0f);
  rows.logit(0, 4) = 3.0f;
  rows.logit(0, 5) = -3.0f;
  rows.logit(1, 599) = 1.0f;
  rows.finish();
  const std::vector<LogitChange> changes{
      {.what = LogitChange::kRepeated, .token = 4, .row = 0},
      {.what = LogitChange::kRepeated | LogitChange::kDrawn, .token = 5, .count = 3, .row = 0},
      {.what = LogitChange::kBiased | LogitChange::kDrawn,
       .token = 599,
       .bias = 2.0f,
       .count = 1,
       .row = 1},
      {.what = LogitChange::kBiased | LogitChange::kMasked, .token = 6, .bias = 9.0f, .row = 1}};
  Array<LogitChange> there(changes);
  Array<Penalties> penalties(std::vector<Penalties>{{2.0f, 0.5f, 0.25f}, {1.0f, 0.0f, 0.125f}});
  Array<float> before(changes.size());
  const ChangeLogits change{.logits = rows.logits.data(),
                            .ld = rows.ld,
                            .change = there.data(),
                            .penalties = penalties.data(),
                            .before = before.data()};
  device()->ops().change_logits(change, 4);
  std::vector<float> expected = rows.logits.host();
  const auto at = [&](std::int64_t row, std::int64_t token) -> float& {
    return expected[static_cast<std::size_t>(row * rows.ld + token)];
  };
  at(0, 4) = 1.5f;
  at(0, 5) = -7.75f;  // -3 * 2 - 0.5 * 3 - 0.25
  at(1, 599) = 2.875f;
  at(1, 6) = -kInf;
  EXPECT_TRUE(same(rows.logits, expected));
  device()->ops().restore_logits(change, 4);
  EXPECT_TRUE(same(rows.logits, rows.logits.host()));
}

}  // namespace
}  // namespace troupe::kernels::cuda::test

// Adapters: the merged weights, and the gradients of A and B from products of their own size.
#include "runtime/model/lora.hpp"

#include "runtime/model/trained_layout.hpp"
#include "tests/unit/runtime/model/gradient_problem.hpp"

#include <cmath>

namespace troupe::model {
namespace {

// A problem whose model carries adapters with values that are not zero.
struct LoraProblem {
  LoraProblem(const ModelSpec& spec, const TrainedSet& set, double scale = 1.5)
      : problem(spec),
        base(spec),
        layout(trained_layout(spec, set, "actor").value()),
        lora(problem.model.params, layout, scale) {
    std::memcpy(base.data(), problem.model.params.data(),
                static_cast<std::size_t>(base.size()) * sizeof(float));
    ParamStore values(spec, layout);
    randomise(values, 77, 0.1f);
    for (const ParamView& view : layout->views) {
      if (view.name.find(".lora_") == std::string::npos) continue;
      std::memcpy(lora.values().data() + view.offset, values.data() + view.offset,
                  static_cast<std::size_t>(view.count) * sizeof(float));
    }
    merge();
  }
  void merge() {
    core::SerialTeam team;
    lora.merge(team, problem.model.params);
    problem.model.repack();
  }
  ParamStore gradient(core::TeamRunner& team, bool checkpointing = false) {
    return problem.gradient(team, layout, {.checkpointing = checkpointing, .lora = &lora}).grads;
  }
  GradientProblem problem;
  ParamStore base;
  std::shared_ptr<const ParamLayout> layout;
  Lora lora;
};

TrainedSet rank(std::int64_t r, std::vector<std::string> target = {"all-linear"}) {
  return {.freeze = {}, .lora = {.rank = r, .target = std::move(target)}};
}

class LoraOf : public testing::TestWithParam<ModelSpec> {};

TEST_P(LoraOf, FreshAdaptersLeaveTheWeights) {
  TestModel model(GetParam());
  const auto layout = trained_layout(GetParam(), rank(3), "actor").value();
  Lora lora(model.params, layout, 4.0), other(model.params, layout, 4.0);
  lora.start(1);
  ParamStore merged(GetParam());
  randomise(merged, 99, 1.0f);
  std::memcpy(merged.data(), model.params.data(),
              static_cast<std::size_t>(merged.size()) * sizeof(float));
  core::SerialTeam team;
  lora.merge(team, merged);
  EXPECT_TRUE(same_bits(merged.data(), model.params.data(), merged.size()));
  const auto a = lora.values().view("model.layers.1.mlp.down_proj.lora_A.weight");
  const auto b = lora.values().view("model.layers.1.mlp.down_proj.lora_B.weight");
  const float bound = 1.0f / std::sqrt(static_cast<float>(GetParam().ffn));
  float largest = 0;
  double sum = 0, squares = 0;
  for (const float x : a) {
    largest = std::max(largest, std::abs(x));
    sum += static_cast<double>(x);
    squares += static_cast<double>(x) * static_cast<double>(x);
  }
  const double n = static_cast<double>(a.size());
  EXPECT_LE(largest, bound);
  EXPECT_GT(largest, 0.9f * bound);
  EXPECT_NEAR(sum / n, 0, 4 * static_cast<double>(bound) / std::sqrt(3 * n));
  EXPECT_NEAR(squares / n, static_cast<double>(bound * bound) / 3,
              static_cast<double>(bound * bound) * 0.1);
  for (const float x : b)
    EXPECT_EQ(x, 0.0f);
  other.start(1);
  EXPECT_TRUE(same_bits(lora.values().data(), other.values().data(), lora.values().size()));
  other.start(2);
  EXPECT_FALSE(same_bits(lora.values().data(), other.values().data(), lora.values().size()));
}

TEST_P(LoraOf, MergedIsBasePlusScaledProduct) {
  for (const auto& target : std::vector<std::vector<std::string>>{
           {"all-linear"}, {"q_proj", "v_proj"}, {"layers.1.mlp.down_proj"}}) {
    LoraProblem problem(GetParam(), rank(5, target), 0.75);
    const ModelSpec& spec = problem.problem.model.params.spec();
    for (const ParamView& view : problem.base.layout().views) {
      const auto merged = problem.problem.model.params.view(view.name);
      const auto base = problem.base.view(view.name);
      const std::string module = view.name.substr(0, view.name.rfind('.'));
      const auto a = problem.lora.values().view(module + ".lora_A.weight");
      const auto b = problem.lora.values().view(module + ".lora_B.weight");
      if (a.empty() || view.name.ends_with(".bias")) {
        EXPECT_TRUE(same_bits(merged.data(), base.data(), view.count)) << view.name;
        continue;
      }
      const auto columns = static_cast<std::size_t>(view.shape[1]);
      for (std::size_t i = 0; i < merged.size(); i += 7) {
        double sum = 0;
        for (std::size_t j = 0; j < 5; ++j)
          sum += static_cast<double>(b[i / columns * 5 + j]) *
                 static_cast<double>(a[j * columns + i % columns]);
        EXPECT_NEAR(merged[i], static_cast<double>(base[i]) + 0.75 * sum, 1e-6) << view.name;
      }
    }
    (void)spec;
    // A team gives the same bits, and merging again changes nothing.
    ParamStore again(spec);
    std::memcpy(again.data(), problem.base.data(),
                static_cast<std::size_t>(again.size()) * sizeof(float));
    PairTeam pair;
    problem.lora.merge(pair, again);
    problem.lora.merge(pair, again);
    EXPECT_TRUE(same_bits(again.data(), problem.problem.model.params.data(), again.size()));
  }
}

// dA = s B^T dW and dB = s dW A^T, with the dense dW of the same merged weights.
TEST_P(LoraOf, GradientsAreThoseOfTheDenseWeight) {
  for (const std::int64_t r : {1, 5, 20}) {
    LoraProblem problem(GetParam(), rank(r));
    core::SerialTeam team;
    const ParamStore dense = problem.problem.gradient(team).grads;
    const ParamStore grads = problem.gradient(team);
    const ModelSpec& spec = dense.spec();
    for (std::int64_t layer = 0; layer < spec.layers; ++layer) {
      for (const Linear linear : kAllLinears) {
        const std::string module = module_name(spec, layer, linear);
        const auto [rows, columns] = shape_of(spec, linear);
        const auto dw = dense.view(module + ".weight");
        const auto a = problem.lora.values().view(module + ".lora_A.weight");
        const auto b = problem.lora.values().view(module + ".lora_B.weight");
        const auto da = grads.view(module + ".lora_A.weight");
        const auto db = grads.view(module + ".lora_B.weight");
        const auto at = [](const auto& m, std::int64_t row, std::int64_t width,
                           std::int64_t column) {
          return static_cast<double>(m[static_cast<std::size_t>(row * width + column)]);
        };
        double error = 0, norm = 0;
        for (std::int64_t j = 0; j < r; ++j) {
          for (std::int64_t c = 0; c < columns; ++c) {
            double expected = 0;
            for (std::int64_t o = 0; o < rows; ++o)
              expected += 1.5 * at(b, o, r, j) * at(dw, o, columns, c);
            error += std::pow(at(da, j, columns, c) - expected, 2);
            norm += expected * expected;
          }
        }
        ASSERT_GT(norm, 0);
        EXPECT_LT(std::sqrt(error / norm), 1e-5) << module << " A, rank " << r;
        error = norm = 0;
        for (std::int64_t o = 0; o < rows; ++o) {
          for (std::int64_t j = 0; j < r; ++j) {
            double expected = 0;
            for (std::int64_t c = 0; c < columns; ++c)
              expected += 1.5 * at(dw, o, columns, c) * at(a, j, columns, c);
            error += std::pow(at(db, o, r, j) - expected, 2);
            norm += expected * expected;
          }
        }
        ASSERT_GT(norm, 0);
        EXPECT_LT(std::sqrt(error / norm), 1e-5) << module << " B, rank " << r;
      }
    }
  }
}

TEST_P(LoraOf, GradientsAgreeWithFiniteDifferences) {
  LoraProblem problem(GetParam(), rank(4, {"q_proj", "v_proj", "o_proj", "up_proj", "down_proj"}));
  core::SerialTeam team;
  const ParamStore grads = problem.gradient(team);
  for (const ParamView& view : problem.layout->views) {
    const float* gradient = grads.data() + view.offset;
    float* values = problem.lora.values().data() + view.offset;
    double norm = 0;
    for (std::int64_t i = 0; i < view.count; ++i)
      norm += std::pow(static_cast<double>(gradient[i]), 2);
    norm = std::sqrt(norm);
    ASSERT_GT(norm, 0) << view.name;
    const std::vector<float> saved(values, values + view.count);
    const auto step = [&](double by) {
      for (std::size_t i = 0; i < saved.size(); ++i) {
        values[i] = static_cast<float>(static_cast<double>(saved[i]) +
                                       by * static_cast<double>(gradient[i]) / norm);
      }
      problem.merge();
      const double loss = problem.problem.loss();
      std::copy(saved.begin(), saved.end(), values);
      return loss;
    };
    const double h = 8e-3;
    const double slope = (8 * (step(h) - step(-h)) - (step(2 * h) - step(-2 * h))) / (12 * h);
    EXPECT_NEAR(slope / norm, 1.0, 4e-3) << view.name;
  }
}

TEST_P(LoraOf, TeamsAndCheckpointingGiveTheSameBits) {
  LoraProblem problem(GetParam(), rank(6, {"q_proj", "v_proj", "mlp.gate_proj", "down_proj"}));
  core::SerialTeam one;
  PairTeam two;
  const ParamStore plain = problem.gradient(one);
  for (const bool checkpointing : {false, true}) {
    const ParamStore a = problem.gradient(one, checkpointing);
    const ParamStore b = problem.gradient(two, checkpointing);
    EXPECT_TRUE(same_bits(plain.data(), a.data(), plain.size()));
    EXPECT_TRUE(same_bits(plain.data(), b.data(), plain.size()));
  }
}

INSTANTIATE_TEST_SUITE_P(Specs,
                         LoraOf,
                         testing::Values(tiny_spec(),
                                         qwen_spec(),
                                         with_score_head(qwen_spec()),
                                         qwen3_spec(),
                                         gemma_spec()),
                         [](const auto& i) { return i.param.architecture; });

TEST(Lora, AScoreHeadIsTrainedWholeBesideTheAdapters) {
  LoraProblem problem(with_score_head(qwen_spec()), rank(2));
  core::SerialTeam team;
  const ParamStore dense = problem.problem.gradient(team).grads;
  const ParamStore grads = problem.gradient(team);
  const auto expected = dense.view("score.weight"), found = grads.view("score.weight");
  EXPECT_TRUE(same_bits(expected.data(), found.data(), static_cast<std::int64_t>(found.size())));
  problem.lora.values().view("score.weight")[0] = 3.0f;
  problem.merge();
  EXPECT_EQ(problem.problem.model.params.view("score.weight")[0], 3.0f);
}

TEST(Lora, TheBasesCrcTellsOtherWeights) {
  const TestModel one(tiny_spec(), 0.1f, 1), other(tiny_spec(), 0.1f, 2);
  const auto layout = trained_layout(tiny_spec(), rank(2), "actor").value();
  EXPECT_EQ(Lora(one.params, layout, 1).base_crc(), Lora(one.params, layout, 2).base_crc());
  EXPECT_NE(Lora(one.params, layout, 1).base_crc(), Lora(other.params, layout, 1).base_crc());
}

}  // namespace
}  // namespace troupe::model

// The engine on weights of other dtypes: what it reports has the bits of a scorer on the same
// panels and of the naive generator, whatever the batch, the chunks and preemption.
#include "kernels/ops.hpp"
#include "runtime/model/group_plan.hpp"
#include "runtime/model/score.hpp"
#include "runtime/model/weight_packer.hpp"
#include "tests/unit/runtime/engine/naive_generator.hpp"
#include "tests/unit/runtime/engine/tiny_engine.hpp"

#include <bit>

namespace troupe::engine {
namespace {

using kernels::PanelDtype;

std::shared_ptr<model::PackedWeights> packed(const model::ParamStore& params,
                                             PanelDtype dtype,
                                             core::Version version = 0) {
  auto weights = std::make_shared<model::PackedWeights>(params.spec(), dtype);
  weights->fill(core::Team{}, params, version);
  return weights;
}

// Every matrix rounded to bfloat16 in place; norms and biases as they are.
void round_matrices(model::ParamStore& params) {
  const model::ModelSpec& spec = params.spec();
  const model::ParamLayout layout(spec);
  const auto round = [&](std::int64_t at, std::int64_t count) {
    for (std::int64_t i = at; i < at + count; ++i)
      params.data()[i] = kernels::from_bf16(kernels::to_bf16(params.data()[i]));
  };
  for (const auto& layer : layout.layers) {
    round(layer.q, spec.qkv_width() * spec.hidden);
    round(layer.o, spec.hidden * spec.q_width());
    round(layer.gate, 2 * spec.ffn * spec.hidden);
    round(layer.down, spec.hidden * spec.ffn);
  }
  round(layout.head, spec.vocab * spec.hidden);
}

class EngineDtype : public testing::TestWithParam<bool> {
 protected:
  EngineDtype() : params_(tiny_spec(GetParam())) {
    kernels::flush_denormals();
    model::randomise(params_, 3, 0.25f);
  }
  Samples generate(Weights weights, EngineLimits limits) {
    return run_all(*make_engine(std::move(weights), limits, team_), requests_);
  }

  core::SerialTeam team_;
  model::ParamStore params_;
  const std::vector<GroupRequest> requests_ = varied_requests(4, 14);
};

// What the engine reports has the bits of a scorer on panels of the same dtype, packed on their
// own.
TEST_P(EngineDtype, ScorerOnBf16PanelsGivesTheEnginesLogprobs) {
  const auto scoring = packed(params_, PanelDtype::kBf16);
  const std::vector<GroupRequest> requests{request_of(1, requests_[0].prompt, 3, 20),
                                           request_of(2, requests_[1].prompt, 2, 9)};
  auto engine = make_engine(packed(params_, PanelDtype::kBf16), limits_of(5, 11, 600), team_);
  for (const auto& [key, sample] : run_all(*engine, requests)) {
    model::SampleGroup group;
    group.prompt = requests[key.first - 1].prompt;
    group.responses.emplace_back(sample.tokens);
    model::GroupPlan plan;
    ASSERT_TRUE(model::build_group_plan({&group, 1}, params_.spec(), 1, plan));
    const auto fresh = model::score_logprobs(team_, *scoring, plan.plan, plan.targets, 1.0f);
    EXPECT_TRUE(same_bits(fresh, sample.logprobs));
  }
}

class EngineDtypeDeathTest : public EngineDtype {};

TEST_P(EngineDtypeDeathTest, NobodyScoresWithInt8) {
  const std::vector<std::int32_t> response{1, 2};
  model::SampleGroup group;
  group.prompt = requests_[0].prompt;
  group.responses.emplace_back(response);
  model::GroupPlan plan;
  ASSERT_TRUE(model::build_group_plan({&group, 1}, params_.spec(), 1, plan));
  EXPECT_DEATH(model::score_logprobs(team_, *packed(params_, PanelDtype::kInt8), plan.plan,
                                     plan.targets, 1.0f),
               "int8 weights are for generation only");
}

// bf16 is storage: the arithmetic is that of f32 on the rounded numbers.
TEST_P(EngineDtype, Bf16HasTheBitsOfF32OnRoundedWeights) {
  const Samples stored = generate(packed(params_, PanelDtype::kBf16), limits_of(64, 4096, 600));
  const Samples master = generate(packed(params_, PanelDtype::kF32), limits_of(64, 4096, 600));
  round_matrices(params_);
  expect_same(stored, generate(packed(params_, PanelDtype::kF32), limits_of(64, 4096, 600)));
  bool differs = false;
  for (const auto& [key, sample] : master)
    differs |= sample.logprobs != stored.at(key).logprobs;
  EXPECT_TRUE(differs) << "the rounding must be seen";
}

TEST_P(EngineDtype, ChunksAndBatchesChangeNoBitOfAnyDtype) {
  for (const PanelDtype dtype : {PanelDtype::kBf16, PanelDtype::kInt8, PanelDtype::kBf16Compute}) {
    const Weights weights = packed(params_, dtype);
    SCOPED_TRACE(kernels::name_of(dtype));
    const Samples expected = naive_all(*weights, requests_);
    expect_same(generate(weights, limits_of(64, 4096, 600)), expected);
    expect_same(generate(weights, limits_of(3, 7, 600)), expected);
    expect_same(generate(weights, limits_of(64, 40, 12)), expected);
  }
}

TEST_P(EngineDtype, SlicesGiveTheBytesOfFill) {
  for (const PanelDtype dtype : {PanelDtype::kBf16, PanelDtype::kInt8, PanelDtype::kBf16Compute}) {
    const auto whole = packed(params_, dtype, 4);
    model::PackedWeights slices(params_.spec(), dtype);
    model::WeightPacker packer(slices, params_.data(), 4);
    std::int64_t count = 1;
    while (!packer.advance(team_, std::chrono::nanoseconds(0)))
      ++count;
    EXPECT_GT(count, 4);
    EXPECT_EQ(slices.version(), 4u);
    EXPECT_EQ(slices.dtype(), dtype);
    EXPECT_LT(slices.bytes(), model::PackedWeights(params_.spec()).bytes());
    const auto bytes = static_cast<std::size_t>(
        kernels::packed_bytes(dtype, params_.spec().vocab, params_.spec().hidden));
    EXPECT_EQ(std::memcmp(slices.head().data, whole->head().data, bytes), 0);
    std::vector<float> a(static_cast<std::size_t>(params_.spec().hidden)), b = a;
    for (const std::int32_t token : {0, 16, 1036}) {
      slices.embed(&token, 0, 1, a.data());
      whole->embed(&token, 0, 1, b.data());
      EXPECT_EQ(a, b);
      if (GetParam() && dtype == PanelDtype::kBf16) {
        const float* row = params_.data() + model::ParamLayout(params_.spec()).head +
                           token * params_.spec().hidden;
        for (std::size_t i = 0; i < a.size(); ++i)
          EXPECT_EQ(a[i], kernels::from_bf16(kernels::to_bf16(row[i])));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Embeddings, EngineDtypeDeathTest, testing::Values(true));
INSTANTIATE_TEST_SUITE_P(Embeddings, EngineDtype, testing::Bool(), [](const auto& tied) {
  return tied.param ? "Tied" : "Untied";
});

}  // namespace
}  // namespace troupe::engine

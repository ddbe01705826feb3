// Packing in slices gives the bits of fill, whatever the model, the slices and the team.
#include "runtime/model/weight_packer.hpp"

#include "kernels/ops.hpp"
#include "tests/unit/runtime/model/test_models.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace troupe::model {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

ModelSpec large_spec() {  // several units a matrix
  ModelSpec spec = qwen_spec();
  spec.ffn = 700;
  spec.vocab = 5003;
  return spec;
}

class WeightPackerOf : public testing::TestWithParam<ModelSpec> {};

void expect_same(const PackedWeights& a, const PackedWeights& b) {
  const ModelSpec& spec = a.spec();
  const auto same = [](const float* x, const float* y, std::int64_t count) {
    return std::memcmp(x, y, static_cast<std::size_t>(count) * sizeof(float)) == 0;
  };
  for (std::int64_t i = 0; i < spec.layers; ++i) {
    const PackedLayer &x = a.layer(i), &y = b.layer(i);
    EXPECT_TRUE(same(x.input_norm, y.input_norm, spec.hidden));
    EXPECT_TRUE(
        same(x.qkv.f32(), y.qkv.f32(), kernels::packed_size(spec.qkv_width(), spec.hidden)));
    if (spec.qkv_bias) {
      EXPECT_TRUE(same(x.qkv_bias, y.qkv_bias, spec.qkv_width()));
    }
    EXPECT_TRUE(same(x.o.f32(), y.o.f32(), kernels::packed_size(spec.hidden, spec.q_width())));
    EXPECT_TRUE(same(x.ffn_norm, y.ffn_norm, spec.hidden));
    EXPECT_TRUE(
        same(x.gate_up.f32(), y.gate_up.f32(), kernels::packed_size(2 * spec.ffn, spec.hidden)));
    EXPECT_TRUE(same(x.down.f32(), y.down.f32(), kernels::packed_size(spec.hidden, spec.ffn)));
  }
  EXPECT_TRUE(same(a.final_norm(), b.final_norm(), spec.hidden));
  EXPECT_TRUE(
      same(a.head().f32(), b.head().f32(), kernels::packed_size(spec.head_rows(), spec.hidden)));
  std::vector<float> left(static_cast<std::size_t>(spec.hidden)), right = left;
  for (const std::int32_t token : {0, 1, static_cast<std::int32_t>(spec.vocab - 1)}) {
    a.embed(&token, 0, 1, left.data());
    b.embed(&token, 0, 1, right.data());
    EXPECT_EQ(left, right);
  }
}

TEST_P(WeightPackerOf, SlicesGiveTheBitsOfFill) {
  const TestModel model(GetParam());
  core::SerialTeam one;
  PairTeam two;
  core::TeamRunner* const teams[] = {&one, &two};
  for (core::TeamRunner* team : teams) {
    for (const core::Duration budget :
         {core::Duration(nanoseconds(0)), core::Duration(seconds(9))}) {
      PackedWeights packed(GetParam());
      WeightPacker packer(packed, model.params.data(), 7);
      std::int64_t slices = 1;
      while (!packer.advance(*team, budget))
        ++slices;
      if (budget.count() == 0) {
        EXPECT_GE(slices, packed.fill_units() / team->size());
      } else {
        EXPECT_EQ(slices, 1);
      }
      EXPECT_EQ(packed.version(), 7u);
      expect_same(packed, model.weights);
    }
  }
}

// The panels of a reused buffer keep nothing of what was there before.
TEST_P(WeightPackerOf, OverwritesAllOfAnOlderVersion) {
  TestModel model(GetParam());
  core::SerialTeam team;
  PackedWeights packed(GetParam());
  packed.fill({}, model.params, 1);
  randomise(model.params, 99, 0.3f);
  model.repack();
  WeightPacker packer(packed, model.params.data(), 2);
  EXPECT_FALSE(packer.advance(team, nanoseconds(0)));
  EXPECT_EQ(packed.version(), 1u) << "not whole yet";
  EXPECT_TRUE(packer.advance(team, seconds(9)));
  expect_same(packed, model.weights);
}

// Units start in the middle of a matrix: what they make is what one call over all of it makes, of
// int8 with the columns' scales.
TEST(WeightPacker, UnitsAreTheirPartOfTheWholeMatrix) {
  const ModelSpec spec = large_spec();
  const TestModel model(spec);
  const float* const head = model.params.data() + model.params.layout().head;
  for (const auto dtype :
       {kernels::PanelDtype::kF32, kernels::PanelDtype::kBf16, kernels::PanelDtype::kInt8}) {
    PackedWeights packed(spec, dtype);
    packed.fill({}, model.params, 1);
    const auto bytes =
        static_cast<std::size_t>(kernels::packed_bytes(dtype, spec.vocab, spec.hidden));
    const std::int64_t columns = kernels::panels_of(spec.vocab) * kernels::kPanel;
    core::Buffer<float> whole(static_cast<std::int64_t>(bytes) / 4), scale(columns);
    kernels::ops().pack_transposed({.from = head,
                                    .ldf = spec.hidden,
                                    .n = spec.vocab,
                                    .k = spec.hidden,
                                    .to = {whole.data(), dtype, scale.data()}},
                                   {0, kernels::panels_of(spec.vocab)});
    EXPECT_EQ(std::memcmp(packed.head().data, whole.data(), bytes), 0);
    if (dtype != kernels::PanelDtype::kInt8) continue;
    EXPECT_EQ(std::memcmp(packed.head().scale, scale.data(),
                          static_cast<std::size_t>(spec.vocab) * sizeof(float)),
              0);
  }
}

INSTANTIATE_TEST_SUITE_P(Specs,
                         WeightPackerOf,
                         testing::Values(tiny_spec(),
                                         qwen_spec(),
                                         large_spec(),
                                         gemma_spec(),
                                         with_score_head(tiny_spec())));

}  // namespace
}  // namespace troupe::model

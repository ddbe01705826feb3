// Sizes that follow from shapes, against the objects that have them and against published numbers.
#include "runtime/plan/model_sizes.hpp"

#include "runtime/model/packed.hpp"
#include "runtime/model/params.hpp"
#include "tests/unit/runtime/model/test_models.hpp"
#include "tests/unit/runtime/plan/known_models.hpp"

#include <gtest/gtest.h>

namespace troupe::plan {
namespace {

using kernels::PanelDtype;

TEST(ModelSizes, PanelsAreThoseThatAreAllocated) {
  for (const model::ModelSpec& spec : model::varied_specs()) {
    for (const PanelDtype dtype : {PanelDtype::kF32, PanelDtype::kBf16, PanelDtype::kInt8}) {
      const auto there = static_cast<std::int64_t>(model::PackedWeights(spec, dtype).bytes());
      // Families whose norms multiply by 1 + w keep a row of ones beside them.
      const std::int64_t ones = spec.norm_plus_one ? 64 * ((4 * spec.hidden + 63) / 64) : 0;
      EXPECT_NEAR(static_cast<double>(ModelSizes(spec).panel_bytes(dtype)),
                  static_cast<double>(there), static_cast<double>(ones))
          << spec.architecture << " " << kernels::name_of(dtype);
    }
  }
}

TEST(ModelSizes, WeightsAreThoseOfTheLayout) {
  for (const model::ModelSpec& spec : model::varied_specs())
    EXPECT_EQ(ModelSizes(spec).weights(), model::ParamLayout(spec).total) << spec.architecture;
}

// Numbers of docs/scale.md, worked out from config.json by hand: a layer of 70B is 2 x 8192 x 8192
// (q, o), 2 x 1024 x 8192 (k, v), 3 x 28672 x 8192 and two norms.
TEST(ModelSizes, OfTheLargeModelsAreTheKnownOnes) {
  const ModelSizes large(llama3_70b()), small(llama3_8b());
  EXPECT_EQ(large.layer(), 134'217'728 + 16'777'216 + 704'643'072 + 16'384);
  EXPECT_EQ(large.embedding(), 128'256 * 8192);
  EXPECT_EQ(large.largest_part(), large.embedding());
  EXPECT_EQ(large.weights(), 70'553'706'496);
  EXPECT_EQ(small.weights(), 8'030'261'248);
  EXPECT_EQ(small.layer(), 218'112'000);
  EXPECT_EQ(large.token_bytes(kernels::KvDtype::kBf16), 2 * 80 * 1024 * 2);
  EXPECT_EQ(small.token_bytes(kernels::KvDtype::kF32), 2 * 32 * 1024 * 4);
  // 2 P with an embedding of 4 bytes a number; the rest is norms and rotary tables.
  EXPECT_NEAR(static_cast<double>(large.panel_bytes(PanelDtype::kBf16)),
              2.0 * (70'553'706'496 + 1'050'673'152), 0.001e9 + 0.01e9);
}

}  // namespace
}  // namespace troupe::plan

// The shapes against the numbers of parameters that their publishers give.
#include "apps/cli/random_model.hpp"

#include <gtest/gtest.h>

namespace troupe::cli {
namespace {

TEST(ModelShapes, HaveAsManyParametersAsThePublishedModels) {
  EXPECT_EQ(spec_of_shape("smollm2-135m")->parameter_count(), 134'515'008);
  EXPECT_EQ(spec_of_shape("qwen2.5-0.5b")->parameter_count(), 494'032'768);
  EXPECT_EQ(spec_of_shape("llama3-8b")->parameter_count(), 8'030'261'248);
  // 218,112,000 parameters fewer for each layer that goes.
  EXPECT_EQ(spec_of_shape("llama3-8b", 4)->parameter_count(),
            8'030'261'248 - std::int64_t{28} * 218'112'000);
}

TEST(ModelShapes, AnotherNameIsRefusedWithThoseThatThereAre) {
  const auto spec = spec_of_shape("llama4");
  ASSERT_FALSE(spec);
  EXPECT_EQ(
      spec.error().message,
      "--shape llama4 is not known; choose tiny, small, smollm2-135m, qwen2.5-0.5b or llama3-8b");
}

}  // namespace
}  // namespace troupe::cli

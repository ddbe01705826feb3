// The channel of one process: newest version only, never backwards.
#include "runtime/weights/weight_channel.hpp"

#include <gtest/gtest.h>

namespace troupe::weights {
namespace {

model::ModelSpec tiny() {
  model::ModelSpec spec;
  spec.architecture = "LlamaForCausalLM";
  spec.layers = 1;
  spec.hidden = 16;
  spec.heads = 2;
  spec.kv_heads = 1;
  spec.head_dim = 8;
  spec.ffn = 16;
  spec.vocab = 17;
  spec.context = 32;
  spec.tied = true;
  return spec;
}

std::shared_ptr<model::PackedWeights> version(core::Version number) {
  model::ParamStore params(tiny());
  auto weights = std::make_shared<model::PackedWeights>(tiny());
  weights->fill(core::Team{}, params, number);
  return weights;
}

}  // namespace

TEST(LocalWeightChannel, GivesTheVeryPanelsThatWerePublished) {
  LocalWeightChannel channel;
  EXPECT_EQ(channel.fetch(0).error().code, core::ErrorCode::kNotFound);
  const auto weights = version(3);
  ASSERT_TRUE(channel.publish(weights));
  EXPECT_EQ(channel.fetch(3)->get(), weights.get());
}

TEST(LocalWeightChannel, NamesTheNewestWhenAnotherIsAskedFor) {
  LocalWeightChannel channel;
  ASSERT_TRUE(channel.publish(version(3)));
  ASSERT_TRUE(channel.publish(version(4)));
  const auto old = channel.fetch(3);
  ASSERT_FALSE(old);
  EXPECT_NE(old.error().message.find("newest is 4"), std::string::npos);
}

TEST(LocalWeightChannel, VersionsNeverRunBackwards) {
  LocalWeightChannel channel;
  ASSERT_TRUE(channel.publish(version(4)));
  EXPECT_EQ(channel.publish(version(3)).error().code, core::ErrorCode::kInvalidArgument);
  EXPECT_TRUE(channel.publish(version(4)));
}

}  // namespace troupe::weights

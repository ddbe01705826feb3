// The channel of one process: newest version only, never backwards.
#include "runtime/weights/local_channel.hpp"

#include "tests/unit/runtime/weights/fixture.hpp"

#include <gtest/gtest.h>

namespace troupe::weights {
namespace {

model::ModelSpec one_tied_layer() {
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

std::shared_ptr<const model::PackedWeights> version(core::Version number) {
  model::ParamStore params(one_tied_layer());
  auto weights = std::make_shared<model::PackedWeights>(one_tied_layer());
  weights->fill(core::Team{}, params, number);
  return weights;
}

Offer offer(std::shared_ptr<const model::PackedWeights> weights) {
  Offer result;
  result.version = weights->version();
  result.packed = [weights] { return weights; };
  return result;
}

}  // namespace

TEST(LocalWeightChannel, GivesTheVeryPanelsThatWerePublished) {
  LocalWeightChannel channel;
  EXPECT_EQ(channel.fetch(0, {}, kSecond).error().code, core::ErrorCode::kNotFound);
  const auto weights = version(3);
  ASSERT_TRUE(channel.publish(offer(weights)));
  auto intake = channel.fetch(3, {}, kSecond);
  ASSERT_TRUE(intake);
  core::SerialTeam team;
  EXPECT_TRUE(*(*intake)->advance(team, kSecond));
  EXPECT_EQ((*intake)->version(), 3u);
  EXPECT_EQ((*intake)->take().get(), weights.get());
}

TEST(LocalWeightChannel, GivesTheNewestToOneWhoAsksForAnOlder) {
  LocalWeightChannel channel;
  ASSERT_TRUE(channel.publish(offer(version(3))));
  ASSERT_TRUE(channel.publish(offer(version(4))));
  EXPECT_EQ((*channel.fetch(3, {}, kSecond))->version(), 4u);
  const auto newer = channel.fetch(5, {}, kSecond);
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().code, core::ErrorCode::kNotFound);
  EXPECT_NE(newer.error().message.find("newest is 4"), std::string::npos);
}

TEST(LocalWeightChannel, VersionsNeverRunBackwards) {
  LocalWeightChannel channel;
  ASSERT_TRUE(channel.publish(offer(version(4))));
  EXPECT_EQ(channel.publish(offer(version(3))).error().code, core::ErrorCode::kInvalidArgument);
  EXPECT_TRUE(channel.publish(offer(version(4))));
}

}  // namespace troupe::weights

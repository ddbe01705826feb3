// The channel of one process with several memories: the bits of panels that the trainer would have
// packed, never an older version.
#include "runtime/weights/local_channel.hpp"
#include "tests/unit/runtime/model/arena_team.hpp"
#include "tests/unit/runtime/weights/fixture.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace troupe::weights {
namespace {

model::ModelSpec one_layer() {
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
  return spec;
}

Offer offer(core::Version version, const model::ParamStore& master) {
  Offer made;
  made.version = version;
  made.master = &master;
  return made;
}

std::vector<float> head_of(const model::PackedWeights& weights) {
  std::vector<float> head(2 * 16 * 16);  // two panels of 16 columns, k = 16
  weights.memory().download(head.data(), weights.head().data, head.size() * sizeof(float));
  return head;
}

}  // namespace

TEST(LocalWeightChannelByCopy, PacksWhatWasPublishedWhereTheEngineComputes) {
  model::ParamStore master(one_layer());
  model::randomise(master, 3, 0.5f);
  model::PackedWeights expected(one_layer());
  expected.fill(core::Team{}, master, 4);

  LocalWeightChannel channel(kernels::PanelDtype::kF32);
  EXPECT_EQ(channel.fetch(0, {}, kSecond).error().code, core::ErrorCode::kNotFound);
  ASSERT_TRUE(channel.publish(offer(4, master)));
  auto intake = channel.fetch(4, {}, kSecond);
  ASSERT_TRUE(intake);
  master.data()[0] += 1;  // the copy is taken: this is of the next version
  model::ArenaTeam team;
  while (!*(*intake)->advance(team, kSecond)) {
  }
  const auto panels = (*intake)->take();
  EXPECT_EQ(panels->version(), 4u);
  EXPECT_EQ(&panels->memory(), &team.memory());
  EXPECT_EQ(head_of(*panels), head_of(expected));
}

TEST(LocalWeightChannelByCopy, NeverGoesBack) {
  model::ParamStore master(one_layer());
  LocalWeightChannel channel(kernels::PanelDtype::kF32);
  ASSERT_TRUE(channel.publish(offer(4, master)));
  EXPECT_EQ(channel.publish(offer(3, master)).error().code, core::ErrorCode::kInvalidArgument);
  ASSERT_TRUE(channel.publish(offer(4, master)));
  EXPECT_EQ((*channel.fetch(2, {}, kSecond))->version(), 4u);
  const auto newer = channel.fetch(5, {}, kSecond);
  ASSERT_FALSE(newer);
  EXPECT_NE(newer.error().message.find("the newest is 4"), std::string::npos);
}

}  // namespace troupe::weights

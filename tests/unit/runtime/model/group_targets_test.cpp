// Responses with tokens that are no targets: the plan's targets, and what is refused.
#include "runtime/model/group_plan.hpp"

#include <gtest/gtest.h>

namespace troupe::model {
namespace {

using Ids = std::vector<std::int32_t>;
using Places = std::vector<std::uint32_t>;

ModelSpec small_spec() {
  ModelSpec spec;
  spec.architecture = "LlamaForCausalLM";
  spec.layers = 1;
  spec.hidden = 32;
  spec.heads = spec.kv_heads = 2;
  spec.head_dim = 16;
  spec.ffn = 32;
  spec.vocab = 100;
  spec.context = 32;
  return spec;
}

}  // namespace

TEST(GroupTargets, OnlyRowsThatPredictOneGoToTheHead) {
  const Ids prompt = {1, 2}, first = {10, 11, 12, 13}, second = {20, 21};
  const Places chosen = {1, 3};
  SampleGroup group{prompt, {first, second}};
  group.targets = {chosen, {}};
  GroupPlan plan;
  ASSERT_TRUE(build_group_plan({&group, 1}, small_spec(), 1, plan));
  EXPECT_EQ(plan.plan.rows(), rows_of(group));
  EXPECT_EQ(plan.plan.rows(), 2 + 3 + 1);
  EXPECT_EQ(plan.targets.token, (Ids{11, 13, 20, 21}));
  // The prompt's last row predicts 20 alone; 10 and 12 of the first response predict 11 and 13.
  EXPECT_EQ(plan.plan.logit_rows, (Ids{1, 2, 4, 5}));
  EXPECT_EQ(plan.targets.row, (Ids{1, 2, 0, 3}));
  group.targets.pop_back();
  GroupPlan same;
  ASSERT_TRUE(build_group_plan({&group, 1}, small_spec(), 1, same));
  EXPECT_EQ(same.targets.token, plan.targets.token) << "no list is an empty one";
}

TEST(GroupTargets, APromptThatPredictsNoneHasNoRowAtTheHead) {
  const Ids prompt = {1, 2}, response = {10, 11, 12};
  const Places last = {2};
  SampleGroup group{prompt, {response}};
  group.targets = {last};
  GroupPlan plan;
  ASSERT_TRUE(build_group_plan({&group, 1}, small_spec(), 1, plan));
  EXPECT_EQ(plan.plan.logit_rows, (Ids{3}));
  EXPECT_EQ(plan.targets.row, (Ids{0}));
  EXPECT_EQ(plan.targets.token, (Ids{12}));
}

TEST(GroupTargets, PlacesThatAreNoneAreRefused) {
  const Ids prompt = {1}, response = {10, 11};
  for (const Places& wrong : {Places{2}, Places{1, 1}, Places{1, 0}}) {
    SampleGroup group{prompt, {response}};
    group.targets = {wrong};
    GroupPlan plan;
    const auto refused = build_group_plan({&group, 1}, small_spec(), 1, plan);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, core::ErrorCode::kData);
    EXPECT_EQ(refused.error().message,
              "group 0, sample 0: its targets are no ascending indices of its 2 tokens");
  }
}

}  // namespace troupe::model

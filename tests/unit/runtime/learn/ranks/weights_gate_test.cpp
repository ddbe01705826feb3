// Parts of a model: which numbers they have, panels that are filled part by part, and that every
// pass opens the parts in order and computes the same bits.
#include "runtime/model/weights_gate.hpp"

#include "runtime/core/rng.hpp"
#include "runtime/model/group_plan.hpp"
#include "runtime/model/score.hpp"
#include "runtime/model/train_logprobs.hpp"
#include "tests/unit/runtime/learn/fixture.hpp"
#include "tests/unit/runtime/model/device_team.hpp"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace troupe::model {
namespace {

// Fills panels part by part with what the whole model has, and spoils them when they are closed.
class SpoilingGate final : public WeightsGate {
 public:
  SpoilingGate(core::TeamRunner& team, const ParamStore& master)
      : team_(team),
        master_(master),
        parts_(ranges_of_parts(master.spec(), master.layout())),
        nothing_(static_cast<std::size_t>(master.size()), std::numeric_limits<float>::quiet_NaN()) {
  }

  void fill(PackedWeights& panels, const float* from, std::int64_t part) {
    team_.run([&](core::Team member) {
      for (const core::Range range : parts_[static_cast<std::size_t>(part)])
        panels.fill_range(member, from, range);
    });
  }
  void spoil_all(PackedWeights& panels) {
    for (std::int64_t part = 0; part < std::ssize(parts_); ++part)
      fill(panels, nothing_.data(), part);
  }
  void watch(PackedWeights& panels) {
    panels_ = &panels;
    panels.set_gate(this);
  }
  void open(std::int64_t part, bool backward) override {
    fill(*panels_, master_.data(), part);
    opened_.push_back(backward ? -part : part);
  }
  void close(std::int64_t part, bool /*backward*/) noexcept override {
    fill(*panels_, nothing_.data(), part);
  }
  std::vector<std::int64_t> opened_;  // backward ones negative

 private:
  core::TeamRunner& team_;
  const ParamStore& master_;
  const std::vector<std::vector<core::Range>> parts_;
  const std::vector<float> nothing_;
  PackedWeights* panels_ = nullptr;
};

TEST(WeightsGate, PartsHaveEveryTensor) {
  for (const bool tied : {true, false}) {
    const ModelSpec spec = learn::tiny_spec(tied);
    const ParamLayout layout(spec);
    const auto parts = ranges_of_parts(spec, layout);
    ASSERT_EQ(std::ssize(parts), spec.layers + 2);
    for (const ParamView& view : layout.views) {
      int holders = 0;
      for (const auto& part : parts)
        for (const core::Range range : part)
          holders += range.begin <= view.offset && view.offset + view.count <= range.end ? 1 : 0;
      EXPECT_EQ(holders, tied && view.offset == layout.embedding ? 2 : 1) << view.name;
    }
  }
}

TEST(WeightsGate, PassesOpenPartsInOrderAndHaveTheSameBits) {
  learn::ThreadTeam team(2);
  for (const ModelSpec& spec :
       {learn::tiny_spec(), learn::tiny_spec(false), learn::tiny_moe_spec()}) {
    for (const bool checkpointing : {false, true}) {
      ParamStore params(spec);
      randomise(params, 3, 0.15f);
      PackedWeights whole(spec), parted(spec);
      team.run([&](core::Team member) { whole.fill(member, params, 0); });
      SpoilingGate gate(team, params);
      gate.watch(parted);
      gate.spoil_all(parted);
      core::Rng rng(5);
      const auto prompt = learn::random_tokens(rng, 9), answer = learn::random_tokens(rng, 12);
      const SampleGroup groups[] = {{prompt, {answer}}};
      GroupPlan plan;
      ASSERT_TRUE(build_group_plan(groups, spec, team.size(), plan));
      ScoreScratch scratch;
      std::vector<float> expected(answer.size()), scored(answer.size());
      score_logprobs(team, whole, plan.plan, plan.targets, 1.0f, scratch, expected);
      score_logprobs(team, parted, plan.plan, plan.targets, 1.0f, scratch, scored);
      EXPECT_EQ(scored, expected);
      EXPECT_EQ(gate.opened_, (std::vector<std::int64_t>{0, 1, 2, 3}));

      std::vector<std::vector<float>> gradients;
      for (const PackedWeights* weights : {&whole, &parted}) {
        gate.opened_.clear();
        ParamStore grads = params.same_layout();
        TrainForward forward(team, params, &grads, checkpointing);
        const c10::AutoGradMode with_grad(true);
        forward.logprobs(*weights, plan.plan, plan.targets, 1.0f, true).logprobs.sum().backward();
        gradients.push_back(numbers_of(grads));
      }
      EXPECT_EQ(gradients[0], gradients[1]);
      EXPECT_EQ(gate.opened_, (std::vector<std::int64_t>{0, 1, 2, 3, -3, -2, -1}));
    }
  }
}

}  // namespace
}  // namespace troupe::model

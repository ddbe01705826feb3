// Parts of a model: which numbers they have, panels that are filled part by part, and that every
// pass opens the parts in order and computes the same bits.
#include "runtime/model/weights_gate.hpp"

#include "runtime/core/rng.hpp"
#include "runtime/model/group_plan.hpp"
#include "runtime/model/part_room.hpp"
#include "runtime/model/score.hpp"
#include "runtime/model/train_logprobs.hpp"
#include "tests/unit/runtime/learn/fixture.hpp"
#include "tests/unit/runtime/model/device_team.hpp"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace troupe::model {
namespace {

// Fills panels and values that have room for one part with that part's, and spoils all when it is
// closed.
class SpoilingGate final : public WeightsGate {
 public:
  SpoilingGate(core::TeamRunner& team, const ParamStore& master)
      : team_(team),
        master_(master),
        room_(master.spec(), master.layout(), 16),
        values_(master.spec(), room_.layout()),
        panels_(master.spec(), kernels::PanelDtype::kF32, core::host_memory(), PanelRoom::kPart),
        nothing_(static_cast<std::size_t>(master.size()), std::numeric_limits<float>::quiet_NaN()) {
    panels_.set_gate(this);
    for (std::int64_t part = 0; part < room_.parts(); ++part)
      close(part, false);
  }

  const PackedWeights& panels() const { return panels_; }
  const ParamStore& values() const { return values_; }
  void open(std::int64_t part, bool backward) override {
    fill(master_.data(), part);
    opened_.push_back(backward ? -part : part);
  }
  void close(std::int64_t part, bool /*backward*/) noexcept override {
    fill(nothing_.data(), part);
    std::copy_n(nothing_.data(), values_.size(), values_.data());
  }
  std::vector<std::int64_t> opened_;  // backward ones negative

 private:
  void fill(const float* from, std::int64_t part) {
    for (const PartRoom::Place& place : room_.places(part)) {
      float* const to = values_.data() + place.of(place.tensors.begin);
      std::copy(from + place.tensors.begin, from + place.tensors.end, to);
      team_.run([&](core::Team member) { panels_.fill_range(member, to, place.tensors); });
    }
  }

  core::TeamRunner& team_;
  const ParamStore& master_;
  const PartRoom room_;
  ParamStore values_;
  PackedWeights panels_;
  const std::vector<float> nothing_;
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

// While a part is there, its tensors lie in the room as in the whole; no two of them share a
// number.
TEST(WeightsGate, ARoomHasEachPartInTurn) {
  for (const ModelSpec& spec :
       {learn::tiny_spec(), learn::tiny_spec(false), learn::tiny_moe_spec()}) {
    const ParamLayout whole(spec);
    for (const std::int64_t step : {16, 4096, 1 << 20}) {
      const PartRoom room(spec, whole, step);
      ASSERT_EQ(room.parts(), parts_of(spec));
      std::int64_t largest = 0, tied = 0;
      for (std::int64_t part = 0; part < room.parts(); ++part) {
        for (const PartRoom::Place& place : room.places(part)) {
          EXPECT_EQ(place.steps.begin % step, 0);
          EXPECT_TRUE(place.steps.end % step == 0 || place.steps.end == whole.total);
          EXPECT_TRUE(place.steps.begin <= place.tensors.begin);
          EXPECT_TRUE(place.tensors.end <= place.steps.end);
          EXPECT_LE(place.at + place.steps.size(), room.layout()->total);
          largest = std::max(largest, place.steps.size());
          if (part == 0 && spec.tied) tied = place.steps.size();
        }
      }
      EXPECT_LE(room.layout()->total, largest + tied);
      ASSERT_EQ(room.layout()->views.size(), whole.views.size());
      for (std::size_t i = 0; i < whole.views.size(); ++i) {
        const ParamView& view = whole.views[i];
        int holders = 0;
        for (std::int64_t part = 0; part < room.parts(); ++part) {
          for (const PartRoom::Place& place : room.places(part)) {
            if (view.offset < place.tensors.begin || view.offset >= place.tensors.end) continue;
            EXPECT_EQ(room.layout()->views[i].offset, place.of(view.offset)) << view.name;
            ++holders;
          }
        }
        EXPECT_GE(holders, 1) << view.name;
      }
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
      PackedWeights whole(spec);
      team.run([&](core::Team member) { whole.fill(member, params, 0); });
      SpoilingGate gate(team, params);
      core::Rng rng(5);
      const auto prompt = learn::random_tokens(rng, 9), answer = learn::random_tokens(rng, 12);
      const SampleGroup groups[] = {{prompt, {answer}}};
      GroupPlan plan;
      ASSERT_TRUE(build_group_plan(groups, spec, team.size(), plan));
      ScoreScratch scratch;
      std::vector<float> expected(answer.size()), scored(answer.size());
      score_logprobs(team, whole, plan.plan, plan.targets, 1.0f, scratch, expected);
      score_logprobs(team, gate.panels(), plan.plan, plan.targets, 1.0f, scratch, scored);
      EXPECT_EQ(scored, expected);
      EXPECT_EQ(gate.opened_, (std::vector<std::int64_t>{0, 1, 2, 3}));

      std::vector<std::vector<float>> gradients;
      for (const bool parted : {false, true}) {
        gate.opened_.clear();
        ParamStore grads = params.same_layout();
        const PackedWeights* const weights = parted ? &gate.panels() : &whole;
        TrainForward forward(team, parted ? gate.values() : params, &grads, checkpointing);
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

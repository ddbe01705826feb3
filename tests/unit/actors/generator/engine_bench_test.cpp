// New weights and the step after them: what became of the weights is told also when they are no
// good, and an intake is used up by its turn either way.
#include "actors/generator/engine_bench.hpp"

#include "tests/unit/runtime/engine/tiny_engine.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace troupe::actors {
namespace {

// Weights that are packed already.
class ReadyIntake final : public weights::WeightIntake {
 public:
  explicit ReadyIntake(engine::Weights weights) : weights_(std::move(weights)) {}
  core::Version version() const override { return weights_->version(); }
  bool verified() const override { return true; }
  core::Result<bool> advance(core::TeamRunner&, core::Duration) override { return true; }
  engine::Weights take() override { return weights_; }

 private:
  engine::Weights weights_;
};

class EngineBenchTest : public ::testing::Test {
 protected:
  EngineBenchTest()
      : bench_(engine::make_engine(engine::tiny_weights(1, 1), engine::EngineLimits{}, team_),
               team_) {
    EngineWork work;
    // The short group is done in the first step, which ends the turn: the long one goes on.
    work.submits = {request_, engine::request_of(6, {1, 2, 4}, 1, 1)};
    const auto begun = bench_.turn(std::move(work));
    EXPECT_TRUE(begun && begun->refused.empty() && begun->finished.size() == 1);
  }
  core::Result<EngineTurn> take_in(engine::Weights weights) {
    EngineWork work;
    work.intake = std::make_shared<ReadyIntake>(std::move(weights));
    return bench_.turn(std::move(work));
  }

  const engine::GroupRequest request_ = engine::request_of(5, {1, 2, 3}, 1, 300);
  core::SerialTeam team_;
  EngineBench bench_;
};

TEST_F(EngineBenchTest, WeightsUnderWhichTheNextStepFailsWereSwappedIn) {
  model::ParamStore params(engine::tiny_spec());
  model::randomise(params, 2, 0.25f);
  params.view("model.norm.weight")[2] = std::numeric_limits<float>::quiet_NaN();
  const auto taken = take_in(engine::pack(params, 2));
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_EQ(taken->swapped, core::Version{2});
  EXPECT_FALSE(taken->intake_error);
  const auto failed = bench_.turn({});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, core::ErrorCode::kNumeric);
  EXPECT_EQ(bench_.engine()->broken_group(), core::GroupId{5});
}

TEST_F(EngineBenchTest, WeightsOfAnotherModelFailAndTheGroupsGoOn) {
  model::ModelSpec other = engine::tiny_spec();
  other.vocab += 8;
  model::ParamStore params(other);
  model::randomise(params, 2, 0.25f);
  const auto taken = take_in(engine::pack(params, 2));
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_FALSE(taken->swapped);
  ASSERT_TRUE(taken->intake_error);
  EXPECT_EQ(taken->intake_error->code, core::ErrorCode::kData);
  EXPECT_EQ(bench_.engine()->weights().version(), 1u);
  const std::size_t before = bench_.engine()->drawn({5}, 0).size();
  const auto next = bench_.turn({});
  ASSERT_TRUE(next);
  const bool done = !next->finished.empty();
  EXPECT_GT(done ? next->finished[0].tokens.size() : bench_.engine()->drawn({5}, 0).size(), before);
}

}  // namespace
}  // namespace troupe::actors

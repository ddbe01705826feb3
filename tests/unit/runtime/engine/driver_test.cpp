// Turns of an engine: what is told of groups and of new weights, what a failing step ends, rest.
#include "runtime/engine/driver.hpp"

#include "runtime/engine/step_computer.hpp"
#include "tests/unit/runtime/engine/tiny_engine.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace troupe::engine {
namespace {

// Weights that are packed already, or that want some slices first.
class ReadyIntake final : public weights::WeightIntake {
 public:
  explicit ReadyIntake(Weights weights, int slices = 1)
      : weights_(std::move(weights)), slices_(slices) {}
  core::Version version() const override { return weights_->version(); }
  bool verified() const override { return true; }
  core::Result<bool> advance(core::TeamRunner&, core::Duration) override { return --slices_ <= 0; }
  Weights take() override { return weights_; }

 private:
  Weights weights_;
  int slices_;
};

// One step after the other fails, on nobody's account.
class FailingSteps final : public StepComputer {
 public:
  core::Result<std::span<const Draw>> run(const model::PackedWeights&,
                                          StepPlan&,
                                          model::KvPool&) override {
    return core::fail(core::ErrorCode::kResources, "the device is lost");
  }
  void forget_places() override {}
  std::uint64_t replayed() const override { return 0; }
};

constexpr TurnBounds kOneStep{core::Duration()};

class EngineDriverTest : public ::testing::Test {
 protected:
  EngineDriverTest() : driver_(make_engine(tiny_weights(1, 1), EngineLimits{}, team_), team_) {}
  // A long group goes on after a turn that a short one has ended.
  void begin() {
    EngineWork work;
    work.submits = {{request_}, {request_of(6, {1, 2, 4}, 1, 1)}};
    const EngineTurn begun = driver_.turn(std::move(work));
    ASSERT_EQ(begun.news.size(), 1u);
    EXPECT_EQ(begun.news[0].group, core::GroupId{6});
    EXPECT_EQ(begun.news[0].finished.size(), 1u);
    EXPECT_FALSE(begun.news[0].error);
  }
  EngineTurn take_in(Weights weights) {
    EngineWork work;
    work.intake = std::make_shared<ReadyIntake>(std::move(weights));
    return driver_.turn(std::move(work));
  }
  std::size_t drawn() const { return driver_.engine()->drawn({5}, 0).size(); }

  const GroupRequest request_ = request_of(5, {1, 2, 3}, 1, 300);
  core::SerialTeam team_;
  EngineDriver driver_;
};

TEST_F(EngineDriverTest, WeightsUnderWhichTheNextStepFailsWereSwappedIn) {
  begin();
  model::ParamStore params(tiny_spec());
  model::randomise(params, 2, 0.25f);
  params.view("model.norm.weight")[2] = std::numeric_limits<float>::quiet_NaN();
  const EngineTurn taken = take_in(pack(params, 2));
  EXPECT_EQ(taken.swapped, core::Version{2});
  EXPECT_FALSE(taken.intake_error);
  EXPECT_TRUE(taken.news.empty());
  const EngineTurn failed = driver_.turn({});
  ASSERT_EQ(failed.news.size(), 1u);
  EXPECT_EQ(failed.news[0].group, core::GroupId{5});
  ASSERT_TRUE(failed.news[0].error);
  EXPECT_EQ(failed.news[0].error->code, core::ErrorCode::kNumeric);
  EXPECT_TRUE(driver_.idle()) << "the group is over";
}

TEST_F(EngineDriverTest, WeightsOfAnotherModelFailAndTheGroupsGoOn) {
  begin();
  model::ModelSpec other = tiny_spec();
  other.vocab += 8;
  model::ParamStore params(other);
  model::randomise(params, 2, 0.25f);
  const std::size_t before = drawn();
  const EngineTurn taken = take_in(pack(params, 2));
  EXPECT_FALSE(taken.swapped);
  ASSERT_TRUE(taken.intake_error);
  EXPECT_EQ(taken.intake_error->code, core::ErrorCode::kData);
  EXPECT_EQ(driver_.engine()->weights().version(), 1u);
  EXPECT_GT(drawn(), before) << "one step in the same turn";
}

TEST_F(EngineDriverTest, BesideARunningGroupASliceIsFollowedByOneStep) {
  begin();
  EngineWork work;
  work.intake = std::make_shared<ReadyIntake>(tiny_weights(2, 2), 3);
  for (int slice = 1; slice <= 3; ++slice) {
    const std::size_t before = drawn();
    const EngineTurn turn = driver_.turn(work);
    EXPECT_EQ(turn.swapped.has_value(), slice == 3);
    EXPECT_EQ(drawn() - before, slice == 3 ? 0u : 1u) << "the swap ends its turn";
  }
}

TEST_F(EngineDriverTest, TheFirstWeightsMakeTheEngine) {
  EngineDriver fresh(
      [this](Weights first) { return Engine::create(first, {}, {}, nullptr, team_); }, team_);
  EXPECT_EQ(fresh.engine(), nullptr);
  EngineWork early;
  early.submits = {{request_}};
  const EngineTurn refused = fresh.turn(std::move(early));
  ASSERT_EQ(refused.news.size(), 1u);
  EXPECT_EQ(refused.news[0].error->code, core::ErrorCode::kClosed);
  EngineWork work;
  work.intake = std::make_shared<ReadyIntake>(tiny_weights(1, 4), 3);
  EXPECT_EQ(fresh.turn(std::move(work)).swapped, core::Version{4}) << "with nothing to run at once";
  EXPECT_EQ(fresh.engine()->weights().version(), 4u);
}

TEST_F(EngineDriverTest, AStreamIsToldOfEachTokenOnceAndOthersOfTheFirstAlone) {
  ASSERT_TRUE(driver_.submit(request_of(1, {1, 2, 3}, 2, 4), Watch::kStream));
  ASSERT_TRUE(driver_.submit(request_of(2, {1, 2, 3}, 2, 4), Watch::kFirstToken));
  ASSERT_TRUE(driver_.submit(request_of(3, {1, 2, 3}, 2, 4)));
  std::map<std::int32_t, std::vector<std::int32_t>> streamed;
  for (int step = 1; step <= 3; ++step) {
    const EngineTurn turn = driver_.turn({}, kOneStep);
    ASSERT_EQ(turn.news.size(), step == 1 ? 2u : 1u);
    EXPECT_EQ(turn.news[0].group, core::GroupId{1});
    EXPECT_EQ(turn.news[0].first_token, step == 1);
    ASSERT_EQ(turn.news[0].grown.size(), 2u);
    for (const Sample& part : turn.news[0].grown) {
      EXPECT_EQ(part.tokens.size(), 1u);
      streamed[part.index].push_back(part.tokens[0]);
    }
    if (step > 1) continue;
    EXPECT_EQ(turn.news[1].group, core::GroupId{2});
    EXPECT_TRUE(turn.news[1].first_token);
    EXPECT_TRUE(turn.news[1].grown.empty());
  }
  const EngineTurn last = driver_.turn({}, kOneStep);
  ASSERT_EQ(last.news.size(), 3u);
  for (const GroupNews& news : last.news) {
    ASSERT_EQ(news.finished.size(), 2u);
    EXPECT_TRUE(news.grown.empty()) << "whole samples instead";
    EXPECT_EQ(news.first_token, news.group == core::GroupId{3});
  }
  for (const Sample& whole : last.news[0].finished) {
    const std::vector<std::int32_t> begin(whole.tokens.begin(), whole.tokens.end() - 1);
    EXPECT_EQ(streamed[whole.index], begin);
  }
}

TEST_F(EngineDriverTest, AStepThatFailsOnNobodysAccountEndsAllGroups) {
  begin();
  auto engine = make_engine(tiny_weights(1, 1), EngineLimits{}, team_);
  Engine* const inside = engine.get();
  EngineDriver driver(std::move(engine), team_);
  ASSERT_TRUE(driver.submit(request_, Watch::kStream));
  ASSERT_TRUE(driver.submit(request_of(6, {1, 2}, 1, 300)));
  const std::size_t told = driver.turn({}, kOneStep).news.at(0).grown.at(0).tokens.size();
  EXPECT_EQ(told, 1u);
  inside->wrap_steps([](auto) { return std::make_unique<FailingSteps>(); });
  const EngineTurn failed = driver.turn({});
  ASSERT_EQ(failed.news.size(), 2u);
  for (const GroupNews& news : failed.news) {
    ASSERT_TRUE(news.error);
    EXPECT_EQ(news.error->code, core::ErrorCode::kResources);
  }
  EXPECT_TRUE(driver.idle());
  EXPECT_TRUE(driver.turn({}).news.empty());
}

TEST_F(EngineDriverTest, AnAbortedGroupIsNotToldOf) {
  begin();
  EngineWork work;
  work.aborts = {core::GroupId{5}};
  EXPECT_TRUE(driver_.turn(std::move(work)).news.empty());
  EXPECT_TRUE(driver_.idle());
}

TEST_F(EngineDriverTest, APauseTellsOfWhatItEnded) {
  begin();
  const std::vector<GroupNews> ended = driver_.pause(PauseMode::kAbort);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].group, core::GroupId{5});
  ASSERT_EQ(ended[0].finished.size(), 1u);
  EXPECT_EQ(ended[0].finished[0].finish, FinishReason::kAborted);
  EXPECT_TRUE(driver_.turn({}).news.empty()) << "it was told already";
}

TEST_F(EngineDriverTest, RestsOnceIdleAndWakesForGroups) {
  begin();
  EngineWork rest;
  rest.rest = true;
  EXPECT_FALSE(driver_.turn(rest, kOneStep).resting) << "a group is here";
  driver_.abort({5});
  EXPECT_TRUE(driver_.turn(rest).resting);
  EXPECT_TRUE(driver_.engine()->state().kv_asleep);
  EXPECT_EQ(take_in(tiny_weights(2, 2)).swapped, core::Version{2}) << "without waking";
  EXPECT_TRUE(driver_.engine()->state().kv_asleep);
  EngineWork work;
  work.submits = {{request_of(7, {1, 2, 4}, 1, 1)}};
  const EngineTurn turn = driver_.turn(std::move(work));
  EXPECT_FALSE(turn.resting);
  ASSERT_EQ(turn.news.size(), 1u);
  EXPECT_EQ(turn.news[0].finished.at(0).versions, std::vector<core::Version>{2});
}

TEST_F(EngineDriverTest, AnEngineThatWasPutToSleepByOthersIsNotWoken) {
  ASSERT_TRUE(driver_.sleep({.kv = true}));
  const auto refused = driver_.submit(request_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::ErrorCode::kClosed);
}

TEST_F(EngineDriverTest, RunsUntilNothingIsLeft) {
  const std::vector<GroupRequest> requests = varied_requests(3, 8);
  for (const GroupRequest& request : requests)
    ASSERT_TRUE(driver_.submit(request));
  auto all = driver_.run();
  ASSERT_TRUE(all);
  Samples samples;
  collect(samples, std::move(*all));
  auto alone = make_engine(tiny_weights(1, 1), EngineLimits{}, team_);
  expect_same(samples, run_all(*alone, requests));
}

}  // namespace
}  // namespace troupe::engine

// A process reward model scores the steps of texts: at a placeholder behind each, among the reward
// tokens, the same bits in any batch, and a cause instead of a score where there can be none.
#include "actors/reward/process_reward.hpp"

#include "runtime/model/packed.hpp"
#include "runtime/model/params.hpp"
#include "runtime/model/process_reward.hpp"
#include "runtime/model/score.hpp"
#include "runtime/model/sequence_plan.hpp"
#include "tests/unit/actors/reward/answered.hpp"
#include "tests/unit/actors/reward/tiny_body.hpp"
#include "tests/unit/runtime/store/temp_folder.hpp"
#include "tests/unit/runtime/text/byte_tokenizer.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe::actors::reward {
namespace {

constexpr std::int64_t kProcessContext = 48;

class ProcessRewards : public testing::Test {
 protected:
  ProcessRewards() { save(model::ProcessReward{"#", {"+", "-"}, "\n"}); }

  void save(const std::optional<model::ProcessReward>& facts, bool score_head = false) {
    params_ = std::make_unique<model::ParamStore>(
        score_head ? model::with_score_head(tiny_body(kProcessContext))
                   : tiny_body(kProcessContext));
    model::randomise(*params_, 21, 0.2f);
    if (facts) {
      params_->set_config_json(
          model::with_process_reward(model::format_spec(params_->spec()), *facts));
    }
    std::filesystem::remove_all(folder());
    EXPECT_TRUE(model::save_model(*params_, folder(), model::StorageDtype::kF32, ""));
    troupe::test::write_byte_tokenizer(folder());
  }
  std::filesystem::path folder() const { return temp_ / "prm"; }

  ProcessRewardOptions options() const {
    ProcessRewardOptions options;
    options.folder = folder();
    options.columns.input_key = "prompt";
    return options;
  }
  std::unique_ptr<RewardSource> make(const ProcessRewardOptions& options) {
    auto made = make_process_reward(options, team_);
    EXPECT_TRUE(made) << made.error().message;
    return made ? std::move(*made) : nullptr;
  }
  std::string refusal(const ProcessRewardOptions& options) {
    const auto checked = check_process_folder(options);
    return checked ? "accepted" : checked.error().message;
  }

  // p(+) / (p(+) + p(-)) behind each '#' of a text from byte `from` on, alone and without the
  // source.
  std::vector<double> by_hand(const std::string& text, std::size_t from) {
    std::vector<std::int32_t> ids;
    std::vector<std::uint8_t> places;
    for (std::size_t i = 0; i < text.size(); ++i) {
      ids.push_back(static_cast<unsigned char>(text[i]));
      places.push_back(text[i] == '#' && i >= from ? 1 : 0);
    }
    const model::Sequence sequences[] = {{ids, places}};
    const std::int32_t choices[] = {'+', '-'};
    model::GroupPlan plan;
    EXPECT_TRUE(model::build_choice_plan(sequences, choices, params_->spec(), 1, plan));
    model::PackedWeights packed(params_->spec());
    packed.fill(core::Team{}, *params_, 0);
    const auto logprobs = model::score_logprobs(team_, packed, plan.plan, plan.targets, 1);
    std::vector<double> shares;
    for (std::size_t i = 0; i < logprobs.size(); i += 2)
      shares.push_back(1 / (1 + std::exp(static_cast<double>(logprobs[i + 1]) -
                                         static_cast<double>(logprobs[i]))));
    return shares;
  }
  static void expect_near(const std::vector<StepScore>& steps, const std::vector<double>& wanted) {
    ASSERT_EQ(steps.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i)
      EXPECT_NEAR(steps[i].score, wanted[i], 1e-12) << i;
  }

  troupe::test::TempFolder temp_;
  core::SerialTeam team_;
  std::unique_ptr<model::ParamStore> params_;
};

TEST_F(ProcessRewards, EachStepIsReadAtThePlaceholderBehindIt) {
  auto source = make(options());
  const auto scores = source->score({answered("1+2?", "a=1\n\nb=3 \n")}, {});
  ASSERT_TRUE(scores) << scores.error().message;
  const RewardScore& score = scores->front();
  const auto wanted = by_hand("1+2?a=1#\nb=3#", 4);
  expect_near(score.steps, wanted);
  EXPECT_EQ(score.steps[0].end, 3u);
  EXPECT_EQ(score.steps[1].end, 8u) << "white space at a step's end is not of it";
  EXPECT_NEAR(*score.value, wanted[0] + wanted[1], 1e-12);
  EXPECT_EQ(score.extra, R"({"steps":2})");
  EXPECT_NE(wanted[0], wanted[1]);
}

TEST_F(ProcessRewards, HasTheSameBitsInAnyBatch) {
  const std::vector<RewardGroup> groups = {answered("12?", "x\ny\nz"), answered("12?", "x"),
                                           answered("other", "long text\nand more")};
  const auto together = make(options())->score(groups, {});
  ASSERT_TRUE(together) << together.error().message;
  for (const std::int64_t rows : {1, 12, 20}) {
    auto few = options();
    few.rows_max = rows;
    const auto cut = make(few)->score(groups, {});
    ASSERT_TRUE(cut);
    for (std::size_t i = 0; i < groups.size(); ++i)
      EXPECT_EQ((*cut)[i].steps, (*together)[i].steps) << i << " at " << rows;
  }
}

TEST_F(ProcessRewards, ReducesTheScoresOfSteps) {
  const std::vector<StepScore> steps = {{1, 0.5}, {2, 0.25}, {3, 0.75}};
  EXPECT_EQ(reduced(StepReduce::kLast, steps), 0.75);
  EXPECT_EQ(reduced(StepReduce::kMin, steps), 0.25);
  EXPECT_EQ(reduced(StepReduce::kMean, steps), 0.5);
  EXPECT_EQ(reduced(StepReduce::kProduct, steps), 0.09375);
  EXPECT_EQ(reduced(StepReduce::kSum, steps), 1.5);
  auto own = options();
  own.reduce = StepReduce::kMin;
  own.gives_steps = false;
  const auto scores = make(own)->score({answered("1+2?", "a\nb")}, {});
  ASSERT_TRUE(scores);
  const auto wanted = by_hand("1+2?a#\nb#", 4);
  EXPECT_NEAR(*scores->front().value, std::min(wanted[0], wanted[1]), 1e-12);
  EXPECT_TRUE(scores->front().steps.empty());
}

TEST_F(ProcessRewards, StepsAreCutAtTheSeparator) {
  const MarkedSteps marked = mark_steps("one\n \n\ntwo\nthree", "\n\n", "#");
  EXPECT_EQ(marked.text, "one#\n\ntwo\nthree#");
  EXPECT_EQ(marked.ends, (std::vector<std::uint32_t>{3, 16}));
  EXPECT_EQ(mark_steps("", "\n", "#").text, "#");
  EXPECT_EQ(mark_steps("\n\n", "\n", "#").ends, (std::vector<std::uint32_t>{2}));
  std::string many;
  for (int i = 0; i < 3000; ++i)
    many += "a\n";
  const MarkedSteps bounded = mark_steps(many, "\n", "#");
  EXPECT_EQ(bounded.ends.size(), 1024u);
  EXPECT_EQ(bounded.ends.back(), 5999u) << "the rest is in the last";
}

// A response that writes the placeholder itself gains no step by it; one in the prompt is not read.
TEST_F(ProcessRewards, PlaceholdersThatWereThereAreNoSteps) {
  EXPECT_EQ(mark_steps("a##b", "\n", "#").text, "ab#");
  EXPECT_EQ(mark_steps("a<<s>s>b", "\n", "<s>").text, "ab<s>");
  const auto scores = make(options())->score({answered("#1#", "a#\nb")}, {});
  ASSERT_TRUE(scores);
  expect_near(scores->front().steps, by_hand("#1#a#\nb#", 3));
}

TEST_F(ProcessRewards, WhatCannotBeScoredSaysWhy) {
  const auto scores =
      make(options())->score({answered("1?", std::string(60, 'x')), answered("1?", "fine")}, {});
  ASSERT_TRUE(scores);
  EXPECT_FALSE((*scores)[0].value);
  EXPECT_NE((*scores)[0].cause.find("the process reward model's context is 48"), std::string::npos)
      << (*scores)[0].cause;
  EXPECT_TRUE((*scores)[1].value);
}

TEST_F(ProcessRewards, GivenMarksTakePrecedenceOverTheTrainedOnes) {
  auto own = options();
  own.step_separator = ";";
  own.reward_tokens = {"-", "+"};
  const auto scores = make(own)->score({answered("1?", "a;b")}, {});
  ASSERT_TRUE(scores);
  const auto wanted = by_hand("1?a#;b#", 2);
  expect_near(scores->front().steps, {1 - wanted[0], 1 - wanted[1]});
}

TEST_F(ProcessRewards, FoldersThatDoNotFitAreRefusedBeforeTheRun) {
  auto own = options();
  own.placeholder_token = "ab";
  EXPECT_NE(refusal(own).find("reward.process.placeholder_token: 'ab' is 2 tokens"),
            std::string::npos)
      << refusal(own);
  own = options();
  own.reward_tokens = {"+", "no"};
  EXPECT_NE(refusal(own).find("reward.process.reward_tokens: 'no' is 2 tokens"), std::string::npos);
  save(std::nullopt);
  EXPECT_NE(refusal(options()).find("reward.process.placeholder_token: the config.json"),
            std::string::npos);
  save(model::ProcessReward{"#", {}, "\n"});
  EXPECT_NE(refusal(options()).find("reward.process.reward_tokens: the config.json"),
            std::string::npos);
  save(std::nullopt, true);
  EXPECT_NE(refusal(options()).find("has a score head"), std::string::npos) << refusal(options());
}

TEST_F(ProcessRewards, TheConfigurationKeepsWhatItWasTrainedWith) {
  const auto spec = model::read_spec(folder());
  ASSERT_TRUE(spec);
  const auto facts = model::process_reward_of(*spec);
  ASSERT_TRUE(facts && *facts);
  EXPECT_EQ(**facts, (model::ProcessReward{"#", {"+", "-"}, "\n"}));
  auto broken = *spec;
  broken.config_json = R"({"process_reward": {"placeholder_token": 7}})";
  EXPECT_FALSE(model::process_reward_of(broken));
}

}  // namespace
}  // namespace troupe::actors::reward

// Whole trainers on several ranks: every rank ends with the weights, and the gang with the moments
// and the metrics, that one process has with the same lanes, to the last digit, at every stage.
#include "runtime/learn/ranks/lane_exchange.hpp"
#include "tests/unit/runtime/learn/ranks/rank_runs.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>

namespace troupe::learn {
namespace {

using test::Leavings;
using test::RankRun;

OptimSettings eight_lanes() {
  OptimSettings optim;
  optim.adam.lr = 1e-2;
  optim.lanes = 8;
  optim.lr_warmup_ratio = 0;
  return optim;
}

// Names what differs, which a comparison of everything would bury.
void expect_same(const Leavings& found, const Leavings& expected, const std::string& where) {
  EXPECT_EQ(found.figures, expected.figures) << where;
  EXPECT_TRUE(found.weights == expected.weights) << where;
  ASSERT_EQ(found.files.size(), expected.files.size()) << where;
  for (const auto& [name, text] : expected.files) {
    ASSERT_TRUE(found.files.contains(name)) << where << ": " << name;
    EXPECT_TRUE(found.files.at(name) == text) << where << ": " << name;
  }
}

void expect_no_change(const RankRun& run,
                      const std::vector<int>& sizes = {2, 3, 4, 8},
                      const std::vector<int>& stages = {0, 1, 2, 3}) {
  const Leavings alone = test::run_alone(run);
  ASSERT_FALSE(alone.weights.empty());
  for (const int ranks : sizes) {
    for (const int stage : stages) {
      const auto all = test::run_on_ranks(run, ranks, stage);
      for (std::size_t rank = 0; rank < all.size(); ++rank)
        expect_same(all[rank], alone,
                    "rank " + std::to_string(rank) + " of " + std::to_string(ranks) + ", stage " +
                        std::to_string(stage));
    }
  }
}

test::PolicyRun policy_run() {
  test::PolicyRun run;
  run.settings.optim = eight_lanes();
  run.settings.batch.micro_tokens_max = 64;
  run.settings.total_steps = 12;
  return run;
}

std::shared_ptr<PtxTexts> some_texts() {
  auto texts = std::make_shared<PtxTexts>();
  core::Rng rng(4);
  for (int i = 0; i < 7; ++i)
    texts->texts.push_back(random_tokens(rng, 14));
  texts->coef = 2;
  return texts;
}

TEST(RankTraining, APolicyIsThatOfOneProcess) {
  expect_no_change(policy_run());
}

// Extra forward passes for the anchor, a KL to the reference, entropy, two mini-batches, two
// epochs, a moving average.
TEST(RankTraining, AStalePolicyWithAllTermsToo) {
  auto run = policy_run();
  run.stale = true;
  run.settings.batch.mini_batches = 2;
  run.settings.batch.max_epochs = 2;
  run.settings.algo.kl.init_coef = 0.1;
  run.settings.algo.kl.target = 0.05;
  run.settings.algo.entropy_coef = 0.01;
  run.settings.ema_beta = 0.9;
  run.settings.optim.gradient_checkpointing_enable = true;
  expect_no_change(run, {2, 3, 8});
}

TEST(RankTraining, EpisodesOfTurnsThatForkToo) {
  auto run = policy_run();
  run.episodes = true;
  run.stale = true;
  run.settings.batch.mini_batches = 2;
  run.settings.algo.advantage.estimator = "gae";
  run.settings.algo.credit = "turn";
  run.settings.algo.advantage.gamma = 0.9;
  expect_no_change(run, {2, 3, 8}, {0, 3});
}

TEST(RankTraining, AdaptersAndTextsToo) {
  auto run = policy_run();
  run.settings.optim.trained.lora.rank = 4;
  run.settings.optim.trained.seed = 7;
  run.settings.ptx = some_texts();
  expect_no_change(run, {2, 5, 8});
}

TEST(RankTraining, ExpertsAndTheirBalanceToo) {
  auto run = policy_run();
  run.spec = tiny_moe_spec();
  run.settings.optim.aux_loss_coef = 0.02;
  expect_no_change(run, {2, 3, 8});
}

TEST(RankTraining, FrozenTensorsToo) {
  auto run = policy_run();
  run.settings.optim.trained.freeze = {"mlp", "k_proj", "layers.0.input_layernorm"};
  expect_no_change(run, {2, 3, 8});
}

// At stage 3 no rank need ever have had the whole weights. An average and a reference that begin
// with them are whole.
TEST(RankTraining, ARankThatStartsFromItsOwnBlocksAloneToo) {
  const auto expect_the_same = [](auto run) {
    const Leavings alone = test::run_alone(run);
    run.own_blocks = true;
    for (const Leavings& one : test::run_on_ranks(run, 3, 3))
      expect_same(one, alone, "own blocks");
  };
  auto policy = policy_run();
  policy.settings.ema_beta = 0.9;
  expect_the_same(policy);
  test::CriticRun critic;
  critic.settings.optim = eight_lanes();
  critic.settings.batch = {.max_epochs = 2, .micro_tokens_max = 64, .mini_batches = 2};
  critic.settings.total_steps = 12;
  expect_the_same(critic);
  for (const char* method : {"sft", "dpo"}) {
    test::SupervisedRun run;
    run.settings.loss.method = Chosen<Method>(method);
    run.settings.optim = eight_lanes();
    run.settings.micro_tokens_max = 48;
    run.settings.total_steps = 10;
    expect_the_same(run);
  }
}

// Masks and whitening of the whole update, and values of a critic.
TEST(RankTraining, WhatIsComputedOverTheWholeUpdateToo) {
  auto run = policy_run();
  run.stale = true;
  run.settings.algo.advantage.estimator = "gae";
  run.settings.algo.correction.type = "m2po";
  run.settings.algo.shaping.normalise_running = true;
  expect_no_change(run, {3});
}

// Rank 0 asks for a user's own advantages once an update, and all ranks learn from them.
TEST(RankTraining, OwnAdvantagesAndWeightsToo) {
  class Squares final : public AdvantageSource {
   public:
    core::Result<TokenNumbers> compute(const UpdateArrays& update) override {
      ++asked;
      TokenNumbers numbers;
      for (std::size_t t = 0; t < update.advantages.size(); ++t) {
        numbers.advantages.push_back(update.logprobs[t] * update.advantages[t]);
        numbers.weights.push_back(static_cast<double>(t % 3));
      }
      return numbers;
    }
    std::atomic<int> asked = 0;
  };
  auto run = policy_run();
  run.stale = true;
  run.settings.algo.own_advantage = true;
  const auto source = std::make_shared<Squares>();
  run.settings.advantage = source;
  const Leavings alone = test::run_alone(run);
  EXPECT_EQ(source->asked, 2) << "once an update";
  for (const Leavings& one : test::run_on_ranks(run, 3, 1))
    expect_same(one, alone, "own advantages");
  EXPECT_EQ(source->asked, 4);
  run.settings.algo.own_advantage = false;
  EXPECT_NE(test::run_alone(run).weights, alone.weights);
}

// All ranks stop together: kl_stop reads a sum over the tokens of all.
TEST(RankTraining, AnUpdateEndsEarlyOnAllRanks) {
  auto run = policy_run();
  run.settings.optim.adam.lr = 0.3;
  run.settings.batch.max_epochs = 4;
  run.settings.algo.kl.stop = 1e-4;
  const Leavings alone = test::run_alone(RankRun(run));
  double left_out = 0;
  for (const auto& [name, value] : alone.figures)
    if (name == "policy/left_out_steps") left_out += value;
  EXPECT_GT(left_out, 0.0);
  expect_no_change(run, {3, 4});
}

TEST(RankTraining, ACriticIsThatOfOneProcess) {
  test::CriticRun run;
  run.settings.optim = eight_lanes();
  run.settings.batch = {.max_epochs = 2, .micro_tokens_max = 64, .mini_batches = 2};
  run.settings.total_steps = 12;
  expect_no_change(run);
}

TEST(RankTraining, SupervisedMethodsToo) {
  for (const char* method : {"sft", "rm", "dpo", "kto", "bco", "distill", "prm"}) {
    SCOPED_TRACE(method);
    test::SupervisedRun run;
    run.settings.loss.method = Chosen<Method>(method);
    run.settings.optim = eight_lanes();
    run.settings.micro_tokens_max = 48;
    run.settings.total_steps = 10;
    if (std::string(method) == "dpo") run.settings.optim.trained.lora.rank = 4;
    expect_no_change(run, {2, 3, 8});
  }
  test::SupervisedRun sorted;
  sorted.settings.loss.method = Chosen<Method>("dpo");
  sorted.settings.loss.pair_loss = Chosen<PairLoss>("aot");
  sorted.settings.optim = eight_lanes();
  sorted.settings.micro_tokens_max = 48;
  sorted.settings.total_steps = 10;
  expect_no_change(sorted, {2, 3});
  test::SupervisedRun experts;
  experts.spec = tiny_moe_spec();
  experts.settings.optim = eight_lanes();
  experts.settings.optim.aux_loss_coef = 0.02;
  experts.settings.micro_tokens_max = 48;
  experts.settings.total_steps = 10;
  expect_no_change(experts, {3, 8});
}

// Gradients and weights of more numbers than are moved at a time.
TEST(RankTraining, AModelLargerThanTheStagingToo) {
  test::SupervisedRun run;
  run.spec.hidden = 256;
  run.spec.head_dim = 64;
  run.spec.ffn = 1024;
  run.spec.layers = 5;
  ASSERT_GT(model::ParamLayout(run.spec).total, kStaging_floats);
  run.settings.optim = eight_lanes();
  run.settings.optim.lanes = 3;
  run.steps_max = 1;
  run.settings.micro_tokens_max = 48;
  run.settings.total_steps = 10;
  expect_no_change(run, {3}, {1, 3});
}

}  // namespace
}  // namespace troupe::learn

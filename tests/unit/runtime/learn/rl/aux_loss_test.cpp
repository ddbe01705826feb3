// The load-balancing loss in the policy's trainer: its share in loss and gradient, its metric, its
// bits, and that it balances. The supervised trainer's: supervised_trainer_test.cpp; the loss
// itself: moe_balance_test.cpp.
#include "runtime/learn/rl/micro_batch.hpp"
#include "runtime/learn/rl/trainer.hpp"
#include "tests/unit/runtime/learn/fixture.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

namespace troupe::learn {
namespace {

using Table = std::map<std::string, double>;

TrainerSettings balance_settings(double coef) {
  TrainerSettings settings;
  settings.optim.adam.lr = 1e-3;
  settings.optim.lr_warmup_ratio = 0;
  settings.optim.aux_loss_coef = coef;
  settings.batch.micro_tokens_max = 4096;
  settings.total_steps = 40;
  return settings;
}

std::unique_ptr<PolicyTrainer> make(const TrainerSettings& settings, core::TeamRunner& team) {
  auto params = std::make_unique<model::ParamStore>(tiny_moe_spec());
  model::randomise(*params, 11, 0.2f);
  auto trainer = PolicyTrainer::create(std::move(params), settings, team);
  EXPECT_TRUE(trainer.has_value()) << (trainer ? "" : trainer.error().message);
  return std::move(trainer).value();
}

// With equal scores in each group nothing is to be learnt but the balance.
std::vector<experience::Group> groups_of(PolicyTrainer& trainer, std::uint64_t update, bool flat) {
  auto groups = random_groups(*trainer.packed(), update, 4, 4);
  for (auto& group : groups) {
    for (auto& sample : group.samples)
      if (flat) sample.score = 1;
  }
  return groups;
}

Table run_table(PolicyTrainer& trainer, const std::vector<experience::Group>& groups) {
  auto report = trainer.update(groups);
  EXPECT_TRUE(report.has_value()) << (report ? "" : report.error().message);
  return report ? Table(report->metrics.begin(), report->metrics.end()) : Table{};
}

TEST(AuxLoss, IsLoggedAndCountsInTheLossByItsWeight) {
  core::SerialTeam team;
  auto plain = make(balance_settings(0), team), with = make(balance_settings(0.5), team);
  const auto groups = groups_of(*with, 0, false);
  const Table a = run_table(*plain, groups), b = run_table(*with, groups);
  EXPECT_EQ(a.count("policy/aux_loss"), 0u);
  EXPECT_GT(b.at("policy/aux_loss"), 2.0);  // 2 where the experts are equally used
  EXPECT_LT(b.at("policy/aux_loss"), 6.0);  // where all tokens took the same
  EXPECT_NEAR(b.at("policy/loss"), a.at("policy/loss") + 0.5 * b.at("policy/aux_loss"), 1e-9);
  EXPECT_EQ(b.at("kl/rollout_train"), 0);
}

// A step's loss is the mean over its micro-batches, each by its rows.
TEST(AuxLoss, MicroBatchesCountByTheirRows) {
  core::SerialTeam team;
  auto settings = balance_settings(0.5);
  settings.batch.micro_tokens_max = 90;
  auto cut = make(settings, team), whole = make(balance_settings(0.5), team);
  const auto groups = groups_of(*cut, 0, true);
  const auto plan = plan_update(groups, settings.batch);
  ASSERT_TRUE(plan);
  double expected = 0, rows = 0;
  for (const MicroBatch& micro : plan->mini_batches[0].micro_batches) {
    std::vector<experience::Group> part;
    for (const GroupPart& of : micro.parts)
      part.push_back(groups[of.group]);
    auto alone = make(balance_settings(0.5), team);
    expected += static_cast<double>(micro.rows) * run_table(*alone, part).at("policy/aux_loss");
    rows += static_cast<double>(micro.rows);
  }
  const auto report = cut->update(groups);
  ASSERT_TRUE(report);
  ASSERT_GT(report->micro_batches, 2);
  const Table cut_table(report->metrics.begin(), report->metrics.end());
  EXPECT_NEAR(cut_table.at("policy/aux_loss"), expected / rows, 1e-6);
  EXPECT_NE(run_table(*whole, groups).at("policy/aux_loss"), cut_table.at("policy/aux_loss"));
}

TEST(AuxLoss, ThreadsAndCheckpointingChangeNoBit) {
  core::SerialTeam one;
  ThreadTeam three(3);
  auto settings = balance_settings(0.1);
  settings.batch.micro_tokens_max = 90;
  auto a = make(settings, one);
  settings.optim.gradient_checkpointing_enable = true;
  auto b = make(settings, three);
  for (std::uint64_t update = 0; update < 3; ++update) {
    const auto groups = groups_of(*a, update, update == 1);
    EXPECT_EQ(run_table(*a, groups), run_table(*b, groups));
  }
  const auto bytes = static_cast<std::size_t>(a->master().size()) * sizeof(float);
  EXPECT_EQ(std::memcmp(a->master().data(), b->master().data(), bytes), 0);
}

TEST(AuxLoss, BalancesWhereNothingElseIsToBeLearnt) {
  core::SerialTeam team;
  auto trainer = make(balance_settings(1.0), team);
  const Table first = run_table(*trainer, groups_of(*trainer, 0, true));
  EXPECT_GT(first.at("policy/grad_norm"), 0);
  Table last;
  for (std::uint64_t update = 1; update < 30; ++update)
    last = run_table(*trainer, groups_of(*trainer, update, true));
  EXPECT_LT(last.at("policy/aux_loss") - 2, 0.5 * (first.at("policy/aux_loss") - 2));
}

TEST(AuxLoss, AModelWithoutExpertsIsRefusedByTheKey) {
  core::SerialTeam team;
  auto params = std::make_unique<model::ParamStore>(tiny_spec());
  const auto trainer = PolicyTrainer::create(std::move(params), balance_settings(0.01), team);
  ASSERT_FALSE(trainer);
  EXPECT_EQ(trainer.error().code, core::ErrorCode::kConfig);
  EXPECT_NE(trainer.error().message.find("--actor.aux_loss_coef"), std::string::npos);
  EXPECT_NE(trainer.error().message.find("LlamaForCausalLM"), std::string::npos);
  auto experts = std::make_unique<model::ParamStore>(tiny_moe_spec());
  EXPECT_FALSE(PolicyTrainer::create(std::move(experts), balance_settings(-1), team));
}

}  // namespace
}  // namespace troupe::learn

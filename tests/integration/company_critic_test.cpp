// PPO with a critic of its own and learned reward models, over one process and over many: the same
// bits, resumed from any point, and no harm from the loss of the critic.
#include "company_support.hpp"

#include <cmath>

namespace troupe::test {
namespace {

// A tiny run with a critic, two reward models and the rule: reward = rule + 0.5 a - 0.25 b.
class CriticRun {
 public:
  CriticRun() {
    make_reward_model("rm-a", 31);
    make_reward_model("rm-b", 32);
  }
  std::vector<std::string> flags(std::vector<std::string> more = {},
                                 const std::string& estimator = "gae",
                                 int steps = 5) const {
    std::vector<std::string> all = {"algo.advantage.estimator=" + estimator,
                                    "reward.model_name_or_path=" + (files / "rm-a").string(),
                                    "--reward.model_name_or_path",
                                    (files / "rm-b").string(),
                                    "reward.weights=[1, 0.5, -0.25]",
                                    "critic.adam.lr=1e-3",
                                    "critic.save_value_network=true",
                                    "train.max_steps=" + std::to_string(steps)};
    if (estimator != "reinforce") all.push_back("algo.advantage.lambd=0.95");
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  TinyRun files;

 private:
  void make_reward_model(const std::string& name, std::uint64_t seed) {
    const auto body = model::read_spec(files.model());
    ASSERT_TRUE(body);
    model::ParamStore params(model::with_score_head(*body));
    model::randomise(params, seed, 0.2f);
    ASSERT_TRUE(model::save_model(params, files / name, model::StorageDtype::kF32, {}));
    write_byte_tokenizer(files / name);
  }
};

void expect_weighted_sums(const std::filesystem::path& run) {
  std::size_t samples = 0;
  for (const auto& entry : std::filesystem::directory_iterator(run / "rollouts")) {
    std::ifstream in(entry.path());
    for (std::string text; std::getline(in, text); ++samples) {
      const auto line = nlohmann::json::parse(text);
      const auto& parts = line["rewards"];
      const double sum = parts["regex"].get<double>() + 0.5 * parts["rm-a"].get<double>() -
                         0.25 * parts["rm-b"].get<double>();
      EXPECT_DOUBLE_EQ(line["reward"].get<double>(), sum);
      EXPECT_NE(parts["rm-a"], parts["rm-b"]);
    }
  }
  EXPECT_GT(samples, 0u);
}

}  // namespace

TEST(CompanyCritic, ProcessesDoNotChangeTheRunAndRewardsAddUp) {
  const CriticRun run;
  CompanyRun one(run.files, "one", run.flags({"--cluster.transport", "loopback"}));
  ASSERT_EQ(one.wait(), 0) << one.output();
  CompanyRun many(run.files, "many", run.flags());
  EXPECT_TRUE(within(30, [&] { return many.nodes().size() == 7; })) << many.output();
  ASSERT_EQ(many.wait(), 0) << many.output();
  EXPECT_TRUE(many.all_nodes_gone());
  expect_clean_ledger(many.folder());
  expect_same_bits(one.folder(), many.folder(), 5);
  expect_weighted_sums(many.folder());
  const auto ckpt = many.folder() / "ckpt" / checkpoint_name(5);
  EXPECT_TRUE(hashes_of(ckpt).contains("critic/weights.safetensors"));
  EXPECT_TRUE(hashes_of(ckpt).contains("critic/adam_v.safetensors"));
  const auto critic = model::read_spec(ckpt / "critic_model");
  ASSERT_TRUE(critic) << critic.error().message;
  EXPECT_EQ(critic->head, model::HeadKind::kScore);
  for (const auto& [step, row] : metrics_of(many.folder())) {
    for (const char* name : {"value/loss", "value/clipfrac", "value/explained_var",
                             "value/grad_norm", "value/lr", "reward/rm-a", "reward/rm-b"}) {
      EXPECT_TRUE(row.contains(name)) << name << " after update " << step;
    }
  }
}

TEST(CompanyCritic, AKilledRunGoesOnWithTheSameBits) {
  const CriticRun run;
  const auto flags = run.flags({"--cluster.transport", "loopback"});
  CompanyRun whole(run.files, "whole", flags);
  ASSERT_EQ(whole.wait(), 0) << whole.output();
  for (const std::size_t steps : {std::size_t{1}, std::size_t{3}}) {
    CompanyRun killed(run.files, "killed", flags);
    ASSERT_TRUE(killed.await_steps(steps)) << killed.output();
    killed.signal(SIGKILL);
    EXPECT_EQ(killed.wait(), 128 + SIGKILL);
  }
  CompanyRun resumed(run.files, "killed", flags);
  ASSERT_EQ(resumed.wait(), 0) << resumed.output();
  expect_same_bits(whole.folder(), resumed.folder(), 5);
  expect_clean_ledger(resumed.folder());
}

TEST(CompanyCritic, ItsLossGoesBackToTheLastCommitAndChangesNoBit) {
  const CriticRun run;
  CompanyRun whole(run.files, "whole", run.flags({"--cluster.transport", "loopback"}));
  ASSERT_EQ(whole.wait(), 0) << whole.output();
  CompanyRun struck(run.files, "struck", run.flags());
  const pid_t critic = struck.node_after("critic", 2);
  ASSERT_GT(critic, 0) << struck.output();
  ASSERT_EQ(::kill(critic, SIGKILL), 0);
  ASSERT_EQ(struck.wait(), 0) << struck.output();
  EXPECT_NE(struck.log().find("critic/0 is lost"), std::string::npos) << struck.log();
  EXPECT_NE(struck.log().find("going on from "), std::string::npos) << struck.log();
  expect_clean_ledger(struck.folder());
  EXPECT_EQ(hashes_of(whole.folder() / "ckpt" / checkpoint_name(5)),
            hashes_of(struck.folder() / "ckpt" / checkpoint_name(5)));
}

TEST(CompanyCritic, AheadOfTheTrainerItsLossLosesAndDoublesNothing) {
  const CriticRun run;
  CompanyRun ahead(
      run.files, "ahead",
      run.flags({"--train.staleness_max", "1", "--rollout.generators", "2"}, "vtrace", 10));
  const pid_t critic = ahead.node_after("critic", 4);
  ASSERT_GT(critic, 0) << ahead.output();
  ASSERT_EQ(::kill(critic, SIGKILL), 0);
  ASSERT_EQ(ahead.wait(), 0) << ahead.output();
  expect_clean_ledger(ahead.folder());
  EXPECT_LE(oldest_age(ahead.folder()), 1u);
  EXPECT_EQ(metrics_of(ahead.folder()).size(), 10u);
}

TEST(CompanyCritic, GroupsOfOneSampleLearnToo) {
  const CriticRun run;
  for (const std::string estimator : {"gae", "reinforce"}) {
    CompanyRun one(run.files, estimator,
                   run.flags({"--cluster.transport", "loopback", "rollout.n_samples_per_prompt=1"},
                             estimator, 2));
    ASSERT_EQ(one.wait(), 0) << one.output();
    expect_clean_ledger(one.folder());
    EXPECT_EQ(metrics_of(one.folder()).at(2).contains("value/loss"), estimator == "gae");
  }
}

TEST(CompanyCritic, AFolderWithoutAScoreHeadIsNoRewardModel) {
  const CriticRun run;
  for (const std::string transport : {"loopback", "caf"}) {
    CompanyRun wrong(
        run.files, transport,
        {"--cluster.transport", transport, "--reward.model_name_or_path", run.files.model()});
    EXPECT_NE(wrong.wait(), 0);
    EXPECT_NE(wrong.output().find("has no score head"), std::string::npos) << wrong.output();
  }
}

TEST(CompanyFilter, FilteredGroupsAreReplacedAndTheRunIsAFunctionOfIds) {
  const TinyRun files;
  const std::vector<std::string> filter = {"--algo.dynamic_filtering_enable", "true",
                                           "--train.max_steps", "4"};
  auto local = filter;
  local.insert(local.end(), {"--cluster.transport", "loopback"});
  CompanyRun one(files, "one", local);
  ASSERT_EQ(one.wait(), 0) << one.output();
  auto two_generators = filter;
  two_generators.insert(two_generators.end(), {"--rollout.generators", "2"});
  CompanyRun many(files, "many", two_generators);
  ASSERT_EQ(many.wait(), 0) << many.output();
  expect_same_bits(one.folder(), many.folder(), 4);
  expect_clean_ledger(many.folder());
  double filtered = 0;
  for (const auto& [step, row] : metrics_of(many.folder())) {
    filtered += row.at("reward/filtered_groups").get<double>();
    EXPECT_GT(row.at("reward/group_min").get<double>(), 0);
    EXPECT_LT(row.at("reward/group_max").get<double>(), 1);
  }
  EXPECT_GT(filtered, 0) << "nothing was filtered: the test shows nothing";
}

TEST(CompanyFilter, TheEndOfTheDataKeepsWhatWasLearnedAndMoreDataGoesOn) {
  const TinyRun files;
  const std::vector<std::string> flags = {"--algo.dynamic_filtering_enable",
                                          "true",
                                          "--train.max_steps",
                                          "0",
                                          "--cluster.transport",
                                          "loopback"};
  CompanyRun ended(files, "run", flags);
  EXPECT_EQ(ended.wait(), 4) << ended.output();
  EXPECT_NE(ended.output().find("prompts are used up"), std::string::npos) << ended.output();
  const std::size_t steps = ended.steps();
  ASSERT_GT(steps, 0u);
  EXPECT_TRUE(std::filesystem::exists(ended.folder() / "ckpt" /
                                      checkpoint_name(static_cast<int>(steps)) / "policy"));
  expect_clean_ledger(ended.folder());
}

}  // namespace troupe::test

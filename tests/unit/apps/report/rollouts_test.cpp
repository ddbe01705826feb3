// The rollouts of a report: which are shown, their advantages against values worked out by hand,
// and their tokens as the experience log has them.
#include "apps/report/rollouts.hpp"

#include "apps/cli/byte_tokenizer.hpp"
#include "made_run.hpp"

#include <fstream>

namespace troupe::report {
namespace {

using nlohmann::ordered_json;
using test::MadeRun;
using test::rollout;

ordered_json read(const MadeRun& run, Notes& notes, std::uint64_t samples_max = 1000) {
  Budget budget(1 << 20, 1000);
  return rollouts_json(run.path(), samples_max, {(run.path() / "model").string()}, budget, notes);
}

ordered_json read(const MadeRun& run, std::uint64_t samples_max = 1000) {
  Notes notes;
  ordered_json out = read(run, notes, samples_max);
  EXPECT_TRUE(notes.empty()) << notes.all().front();
  return out;
}

void put_tokenizer(MadeRun& run) {
  run.put("model/tokenizer.json", cli::byte_tokenizer().dump());
  run.put("model/tokenizer_config.json", cli::kByteTokenizerConfig);
  run.put("model/config.json", "{}");
}

experience::Trajectory sampled(const std::string& text, float first) {
  experience::Trajectory sample;
  for (const char c : text) {
    sample.tokens.push_back(static_cast<unsigned char>(c));
    sample.behaviour.push_back(first - static_cast<float>(sample.behaviour.size()));
  }
  sample.versions = experience::VersionRuns::all(3, sample.tokens.size());
  sample.text = text;
  return sample;
}

// Group 0 has the scores 1 and 0, group 1 has 3 and 3.
void put_two_groups(MadeRun& run) {
  run.put_rollouts(1, {rollout(0, 0, "ab", 2, 1), rollout(0, 1, "cde", 3, 0),
                       rollout(1, 0, "f", 1, 3), rollout(1, 1, "g", 1, 3)});
}

std::vector<double> advantages_of(const ordered_json& read) {
  std::vector<double> out;
  for (const auto& group : read["groups"]) {
    for (const auto& sample : group["samples"])
      out.push_back(sample.contains("adv") ? sample["adv"].get<double>() : -99);
  }
  return out;
}

}  // namespace

TEST(ReportRollouts, ShowWhatTheFilesHold) {
  MadeRun run;
  run.configure({});
  put_two_groups(run);
  const ordered_json all = read(run);
  EXPECT_EQ(all["files"], 1);
  EXPECT_EQ(all["samples"], 4);
  EXPECT_EQ(all["all"], true);
  ASSERT_EQ(all["groups"].size(), 2u);
  const auto& sample = all["groups"][0]["samples"][1];
  EXPECT_EQ(all["groups"][0]["p"], "p0");
  EXPECT_EQ(sample["y"], "cde");
  EXPECT_EQ(sample["r"], 0.0);
  EXPECT_EQ(sample["parts"], ordered_json({{"rule", 0.0}}));
  EXPECT_EQ(sample["v0"], 3);
  EXPECT_EQ(sample["v1"], 4);
  EXPECT_FALSE(sample.contains("tok"));
  EXPECT_NE(all["no_tokens"].get<std::string>().find("run.keep_experience"), std::string::npos);
}

// A score that a file does not have is none, and not 0; the update's advantages are unknown then.
TEST(ReportRollouts, ALostScoreIsNoZero) {
  MadeRun run;
  run.configure({});
  ordered_json row = rollout(0, 0, "x", 1, 1);
  row.erase("reward");
  run.put_rollouts(1, {row, rollout(0, 1, "y", 1, 1)});
  const ordered_json all = read(run);
  EXPECT_TRUE(all["groups"][0]["samples"][0]["r"].is_null());
  EXPECT_EQ(advantages_of(all), (std::vector<double>{-99, -99}));
  EXPECT_NE(all["no_advantages"], "");
}

// group_norm: (1 - 0.5) / (sqrt(0.5) + 1e-4) = 0.707007; rloo: 1 - 0; dr_grpo: 1 - 0.5. Equal
// scores give 0.
TEST(ReportAdvantages, OfEachEstimatorByHand) {
  for (const auto& [name, value] : std::vector<std::pair<std::string, double>>{
           {"group_norm", 0.707007}, {"rloo", 1}, {"dr_grpo", 0.5}}) {
    MadeRun run;
    run.configure({"--algo.advantage.estimator", name});
    put_two_groups(run);
    EXPECT_EQ(advantages_of(read(run)), (std::vector<double>{value, -value, 0, 0})) << name;
  }
}

// reinforce_baseline: 0.5 on 2 tokens, -0.5 on 3, 0 on 2. Mean -0.5/7 = -1/14, variance
// 1.25/7 - 1/196 = 34/196; (0.5 + 1/14) / (sqrt(34)/14) = 8/sqrt(34) = 1.37199.
TEST(ReportAdvantages, AreWhitenedOverTheTokensOfTheUpdate) {
  MadeRun run;
  run.configure({"--algo.advantage.estimator", "reinforce_baseline"});
  put_two_groups(run);
  const auto found = advantages_of(read(run));
  EXPECT_NEAR(found[0], 8 / std::sqrt(34.0), 1e-5);
  EXPECT_NEAR(found[1], -6 / std::sqrt(34.0), 1e-5);
  EXPECT_NEAR(found[2], 1 / std::sqrt(34.0), 1e-5);
}

TEST(ReportAdvantages, AreNotShownWhereTheyCannotBeKnown) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> table = {
      {{"--algo.advantage.estimator", "gae"}, "the critic's values"},
      {{"--reward.normalize", "running"}, "all scores since the start"},
      {{"--algo.kl.init_coef", "0.1", "--algo.kl.use_loss", "false", "--algo.kl.target", "6"},
       "was steered"},
      {{"--algo.kl.init_coef", "0.1", "--algo.kl.use_loss", "false"}, "run.keep_experience"},
      {{"--method", "dpo"}, "only reinforcement learning"},
  };
  for (const auto& [words, why] : table) {
    MadeRun run;
    run.configure(words);
    put_two_groups(run);
    const ordered_json all = read(run);
    EXPECT_EQ(advantages_of(all), (std::vector<double>(4, -99))) << words[1];
    EXPECT_NE(all["no_advantages"].get<std::string>().find(why), std::string::npos)
        << all["no_advantages"];
  }
  MadeRun strange;
  strange.put("resolved_config.yaml", "method: \"ppo\"\nnew_key: 3\n");
  put_two_groups(strange);
  EXPECT_NE(read(strange)["no_advantages"].get<std::string>().find("cannot read"),
            std::string::npos);
}

// Both samples have the score 1. The one that was cut by length gets 1 - (1 - 0.25) * 1 = 0.25, so
// dr_grpo gives (0.25 - 1) / 2 and its opposite.
TEST(ReportAdvantages, ASampleCutByLengthIsShaped) {
  MadeRun run;
  run.configure(
      {"--algo.advantage.estimator", "dr_grpo", "--reward.stop_properly_penalty_coef", "0.25"});
  ordered_json cut = rollout(0, 0, "ab", 2, 1);
  cut["finish_reason"] = "length";
  run.put_rollouts(1, {cut, rollout(0, 1, "c", 1, 1)});
  EXPECT_EQ(advantages_of(read(run)), (std::vector<double>{-0.375, 0.375}));
}

// A KL in the loss changes no advantage and needs no reference.
TEST(ReportAdvantages, AKlInTheLossLeavesThem) {
  MadeRun run;
  run.configure({"--algo.advantage.estimator", "rloo", "--algo.kl.init_coef", "0.1",
                 "--algo.kl.use_loss", "true"});
  put_two_groups(run);
  EXPECT_EQ(advantages_of(read(run)), (std::vector<double>{1, -1, 0, 0}));
}

// Another program computed them, whatever estimator the configuration names.
TEST(ReportAdvantages, OfTheUsersOwnFileAreNotShown) {
  MadeRun run;
  run.configure({"--algo.advantage_file", "mine.py"});
  put_two_groups(run);
  EXPECT_EQ(read(run)["no_advantages"],
            "algo.advantage_file computes them by a file of the user's own");
}

// A damaged line may be a sample: the advantages of its update are unknown.
TEST(ReportAdvantages, AreNotShownOfADamagedUpdate) {
  MadeRun run;
  run.configure({});
  const std::string good = rollout(0, 0, "a", 1, 1).dump() + "\n";
  run.put("rollouts/step_000001.jsonl", good + good + "{\"damaged\n");
  Notes notes;
  const ordered_json all = read(run, notes);
  EXPECT_EQ(advantages_of(all), (std::vector<double>{-99, -99}));
  EXPECT_FALSE(notes.empty());
}

TEST(ReportTokens, AreThoseOfTheExperienceLog) {
  MadeRun run;
  run.configure({});
  put_tokenizer(run);
  put_two_groups(run);
  run.log_events(1,
                 {actors::data::GroupTaken{{0, 0, 0}, {sampled("ab", -0.5f), sampled("cde", -1)}},
                  actors::data::GroupReferenced{{0, 0, 0}, {{-0.25f, -3}, {-1, -2, -3}}}});
  const ordered_json all = read(run);
  const auto& group = all["groups"][0];
  EXPECT_EQ(group["samples"][0]["tok"],
            ordered_json::parse(R"({"t":["a","b"],"lp":[-0.5,-1.5],"ref":[-0.25,-3.0]})"));
  EXPECT_EQ(group["samples"][1]["tok"]["t"], ordered_json({"c", "d", "e"}));
  EXPECT_FALSE(all["groups"][1]["samples"][0].contains("tok"));
  EXPECT_EQ(all["no_tokens"], "");
}

// The middle sample got no score: it was not learned from, and the rollout file has the others.
TEST(ReportTokens, SkipSamplesWithoutAScore) {
  MadeRun run;
  run.configure({});
  put_tokenizer(run);
  run.put_rollouts(1, {rollout(0, 0, "ab", 2, 1), rollout(0, 1, "ef", 2, 0)});
  run.log_events(
      1, {actors::data::GroupTaken{{0, 0, 0},
                                   {sampled("ab", -1), sampled("cd", -2), sampled("ef", -3)}},
          actors::data::GroupScored{{0, 0, 0}, 0, {1.0, std::nullopt, 0.0}, {"", "no", ""}, {}}});
  const auto all = read(run);
  EXPECT_EQ(all["groups"][0]["samples"][1]["tok"]["t"], ordered_json({"e", "f"}));
}

// Without the events that say which sample was left out, nothing is shown rather than another's.
TEST(ReportTokens, AreNotShownWhenTheyDoNotFit) {
  MadeRun run;
  run.configure({});
  put_tokenizer(run);
  put_two_groups(run);
  run.log_events(1, {actors::data::GroupTaken{{0, 0, 0}, {sampled("ab", -1), sampled("cd", -2)}},
                     actors::data::GroupTaken{{0, 1, 0}, {sampled("f", -1)}}});
  const auto all = read(run);
  EXPECT_FALSE(all["groups"][0]["samples"][0].contains("tok"));
  EXPECT_FALSE(all["groups"][1]["samples"][0].contains("tok"));
  EXPECT_NE(all["no_tokens"], "");
}

// The file is as it was: a run may be writing it.
TEST(ReportTokens, ADamagedEndIsSaidAndLeftAlone) {
  MadeRun run;
  run.configure({});
  put_tokenizer(run);
  put_two_groups(run);
  run.log_events(1, {actors::data::GroupTaken{{0, 0, 0}, {sampled("ab", -1), sampled("cde", -1)}}});
  const auto file = run.path() / "experience" / "step_000001.log";
  std::ofstream(file, std::ios::app | std::ios::binary) << "torn";
  const std::string before = test::read_file(file);
  Notes notes;
  const auto all = read(run, notes);
  EXPECT_TRUE(all["groups"][0]["samples"][0].contains("tok"));
  ASSERT_EQ(notes.all().size(), 1u);
  EXPECT_EQ(notes.all()[0],
            "experience/step_000001.log: the end is incomplete or damaged; what stands before it "
            "is read");
  EXPECT_EQ(test::read_file(file), before);
}

// The KL in the reward: k1 of d = l_mu - l_ref, taken off each token with coefficient 0.5, and
// rewards to go with gamma 1. Sample "ab": d = {-0.5+1, -1.5+1.5} = {0.5, 0}, so -0.25 on the first
// token. Scores 1 and 0 give 0.707007.
TEST(ReportAdvantages, WithAKlInTheRewardDifferByToken) {
  MadeRun run;
  run.configure(
      {"--algo.kl.init_coef", "0.5", "--algo.kl.use_loss", "false", "--algo.kl.estimator", "k1"});
  put_tokenizer(run);
  run.put_rollouts(1, {rollout(0, 0, "ab", 2, 1), rollout(0, 1, "c", 1, 0)});
  run.log_events(1, {actors::data::GroupTaken{{0, 0, 0}, {sampled("ab", -0.5f), sampled("c", -1)}},
                     actors::data::GroupReferenced{{0, 0, 0}, {{-1, -1.5f}, {-1}}}});
  const auto all = read(run);
  const auto& tokens = all["groups"][0]["samples"][0]["tok"];
  ASSERT_TRUE(tokens.contains("adv")) << all;
  EXPECT_EQ(tokens["adv"], ordered_json({0.457007, 0.707007}));
}

// Of 100 updates with 8 groups of 4, 160 samples: 16 of each of 10 updates, 4 whole groups each.
TEST(ReportRollouts, OfManyAreWholeGroupsSpreadOverTheRun) {
  MadeRun run;
  run.configure({});
  for (std::uint64_t step = 1; step <= 100; ++step) {
    std::vector<ordered_json> rows;
    for (std::uint64_t i = 0; i < 32; ++i)
      rows.push_back(rollout(i / 4, i % 4, "r", 1, 0));
    run.put_rollouts(step, rows);
  }
  const auto all = read(run, 160);
  EXPECT_EQ(all["samples"], 160);
  EXPECT_EQ(all["steps"], 10);
  EXPECT_EQ(all["all"], false);
  ASSERT_EQ(all["groups"].size(), 40u);
  EXPECT_EQ(all["groups"].front()["u"], 1);
  EXPECT_EQ(all["groups"].back()["u"], 100);
  std::vector<std::uint64_t> slots;
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(all["groups"][i]["samples"].size(), 4u);
    slots.push_back(all["groups"][i]["s"].get<std::uint64_t>());
  }
  EXPECT_EQ(slots, (std::vector<std::uint64_t>{0, 2, 4, 6}));
}

TEST(ReportRollouts, TheBudgetOfTextsEndsThem) {
  MadeRun run;
  run.configure({});
  for (std::uint64_t step = 1; step <= 20; ++step)
    run.put_rollouts(step, {rollout(0, 0, std::string(1000, 'x'), 1, 0)});
  Budget budget(5000, 10);
  Notes notes;
  const auto all = rollouts_json(run.path(), 1000, {}, budget, notes);
  EXPECT_LT(all["samples"], 8);
  EXPECT_GE(all["samples"], 4);
  EXPECT_EQ(all["all"], false);
}

}  // namespace troupe::report

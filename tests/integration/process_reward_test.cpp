// Process reward models with the real program: steps of a file are scored, a run that rewards steps
// has the same bits when the reward's process is killed in between, one may come and go on a live
// run, and mistakes are said with the key to change.
#include "runtime/model/process_reward.hpp"

#include "company_support.hpp"

namespace troupe::test {
namespace {

class ProcessRewardRuns : public ::testing::Test {
 protected:
  // The policy's own weights as a process reward model; '#' stands behind steps, "a" between them.
  std::string process_model(const std::string& name = "prm", bool marked = true) {
    auto params = model::load_model(files_.model());
    EXPECT_TRUE(params) << (params ? "" : params.error().message);
    if (marked) {
      (*params)->set_config_json(
          model::with_process_reward((*params)->spec().config_json, {"#", {"+", "-"}, "a"}));
    }
    const auto folder = files_ / name;
    EXPECT_TRUE(model::save_model(**params, folder, model::StorageDtype::kF32, files_.model()));
    return folder.string();
  }
  Ended run(const std::vector<std::string>& words) {
    return troupe_ends(words, files_ / "log.txt", 60);
  }
  void expect_error(const std::vector<std::string>& words,
                    const std::string& part,
                    int status = 2) {
    const Ended ended = run(words);
    EXPECT_EQ(ended.status, status) << ended.text;
    EXPECT_NE(ended.text.find(part), std::string::npos) << ended.text;
  }
  std::vector<std::string> score(const std::string& model, std::vector<std::string> more = {}) {
    std::ofstream(files_ / "answers.jsonl") << R"({"prompt": "1?", "response": "xayaz"})"
                                            << "\n"
                                            << R"({"prompt": "1?", "response": "xa y"})"
                                            << "\n";
    std::vector<std::string> words = {"score",
                                      "--data",
                                      (files_ / "answers.jsonl").string(),
                                      "--out",
                                      (files_ / "scored.jsonl").string(),
                                      "--process-model",
                                      model,
                                      "--threads",
                                      "1"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  TinyRun files_;
};

TEST_F(ProcessRewardRuns, TheStepsOfAFileAreScored) {
  const std::string prm = process_model();
  const Ended ended = run(score(prm, {"--reduce", "product"}));
  ASSERT_EQ(ended.status, 0) << ended.text;
  std::ifstream in(files_ / "scored.jsonl");
  std::string line;
  ASSERT_TRUE(std::getline(in, line));
  const auto row = nlohmann::json::parse(line);
  ASSERT_EQ(row["reward_steps"].size(), 3u) << line;
  double product = 1;
  for (const auto& step : row["reward_steps"]) {
    EXPECT_GT(step, 0);
    EXPECT_LT(step, 1);
    product *= step.get<double>();
  }
  EXPECT_DOUBLE_EQ(row["reward"], product);
  ASSERT_TRUE(std::getline(in, line));
  const auto other = nlohmann::json::parse(line);
  EXPECT_EQ(other["reward_steps"].size(), 2u);
  EXPECT_EQ(other["reward_steps"][0], row["reward_steps"][0]) << "its text so far is the same";
}

TEST_F(ProcessRewardRuns, MistakesAreSaidWithTheKey) {
  const std::string prm = process_model(), bare = process_model("bare", false);
  expect_error(score(prm, {"--reduce", "steps"}), "expected last, min, mean or product");
  expect_error(score(prm, {"--rule", "exact", "--label-key", "prompt"}), "give one of --model");
  expect_error(score(bare), "does not say which token follows a step");
  expect_error(score(bare, {"--placeholder-token", "#"}), "names no tokens among which");
  expect_error(score(bare, {"--placeholder-token", "##", "--reward-tokens", "+,-"}),
               "'##' is 2 tokens");
  expect_error(score(prm, {"--reward-key", "prompt"}), "has a column 'prompt' already");
  auto train = files_.words("run");
  train.insert(train.end(), {"--reward.process.model_name_or_path", (files_ / "none").string()});
  expect_error(train, "none");
  train.back() = bare;
  expect_error(train, "reward.process.placeholder_token");
  std::ofstream(files_ / "steps.jsonl") << R"({"input": "a# b#", "label": ["+"]})"
                                        << "\n";
  std::vector<std::string> prm_words = {"train",
                                        "prm",
                                        "--actor.model_name_or_path",
                                        files_.model(),
                                        "--data.dataset",
                                        (files_ / "steps.jsonl").string(),
                                        "--prm.placeholder_token",
                                        "#",
                                        "--run.path",
                                        (files_ / "prm_run").string()};
  expect_error(prm_words, "has 1 labels, but the text has 2 tokens '#'", 4);
  prm_words[7] = "##";
  expect_error(prm_words, "prm.placeholder_token: '##' is 2 tokens");
  EXPECT_FALSE(std::filesystem::exists(files_ / "prm_run"));
}

TEST_F(ProcessRewardRuns, AKilledRewardChangesNoBit) {
  const std::vector<std::string> more = {"--reward.process.model_name_or_path",
                                         process_model(),
                                         "--rollout.max_new_tokens",
                                         "12",
                                         "--train.max_steps",
                                         "60",
                                         "--ckpt.save_steps",
                                         "60"};
  CompanyRun whole(files_, "whole",
                   more + std::vector<std::string>{"--cluster.transport", "loopback"});
  ASSERT_EQ(whole.wait(), 0) << whole.output();
  CompanyRun killed(files_, "killed", more);
  const pid_t pid = killed.node_after("reward-prm", 3);
  ASSERT_GT(pid, 0) << killed.output();
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  ASSERT_EQ(killed.wait(), 0) << killed.output();
  EXPECT_NE(killed.log().find("node/reward-prm is lost"), std::string::npos) << killed.log();
  expect_clean_ledger(killed.folder());
  EXPECT_EQ(hashes_of(whole.folder() / "ckpt" / checkpoint_name(60)),
            hashes_of(killed.folder() / "ckpt" / checkpoint_name(60)));
  std::size_t stepped = 0;
  for (int update = 1; update <= 60; ++update) {
    char name[40];
    std::snprintf(name, sizeof name, "rollouts/step_%06d.jsonl", update);
    std::ifstream in(killed.folder() / name);
    for (std::string line; std::getline(in, line);) {
      const auto row = nlohmann::json::parse(line);
      ++stepped;
      double sum = row["rewards"]["regex"].get<double>();
      for (const auto& step : row["steps"])
        sum += step[1].get<double>();
      EXPECT_DOUBLE_EQ(row["reward"], sum) << line;
      EXPECT_LT(row["steps"].back()[0], row["tokens"]);
    }
  }
  EXPECT_EQ(stepped, 960u);
}

// Without a checkpoint: what was sampled and scored comes from the experience log, steps and all.
TEST_F(ProcessRewardRuns, AKilledHeadGoesOnWithTheStepsOfItsLog) {
  const std::vector<std::string> more = {"--reward.process.model_name_or_path",
                                         process_model(),
                                         "--rollout.max_new_tokens",
                                         "12",
                                         "--ckpt.save_steps",
                                         "0",
                                         "--cluster.transport",
                                         "loopback",
                                         "--train.max_steps",
                                         "60"};
  CompanyRun whole(files_, "whole", more);
  ASSERT_EQ(whole.wait(), 0) << whole.output();
  {
    CompanyRun killed(files_, "killed", more);
    ASSERT_TRUE(killed.await_steps(8)) << killed.output();
    killed.signal(SIGKILL);
    ASSERT_TRUE(killed.wait());
  }
  CompanyRun again(files_, "killed", more);
  ASSERT_EQ(again.wait(), 0) << again.output();
  EXPECT_NE(again.output().find("are in the experience log"), std::string::npos) << again.output();
  EXPECT_EQ(hashes_of(whole.folder() / "ckpt" / checkpoint_name(60)),
            hashes_of(again.folder() / "ckpt" / checkpoint_name(60)));
}

TEST_F(ProcessRewardRuns, OneComesAndGoesOnALiveRun) {
  CompanyRun run(files_, "live", {"--train.max_steps", "100000", "--ckpt.save_steps", "0"});
  ASSERT_TRUE(run.await_steps(1)) << run.output();
  const std::string join = run.folder().string();
  Background attach({troupe_program(), "attach", "reward", "--join", join, "--name", "steps",
                     "--process-model", process_model(), "--weight", "0.5"},
                    files_ / "attach.txt");
  ASSERT_TRUE(within(60, [&] {
    return text_of(files_ / "attach.txt").find("scores from update") != std::string::npos;
  })) << text_of(files_ / "attach.txt");
  const std::size_t then = run.steps();
  ASSERT_TRUE(run.await_steps(then + 4)) << run.output();
  const Ended detached = this->run({"detach", "reward", "--join", join, "--name", "steps"});
  EXPECT_EQ(detached.status, 0) << detached.text;
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(), 130) << run.output();
  expect_clean_ledger(run.folder());
  std::size_t with = 0;
  for (const auto& entry : std::filesystem::directory_iterator(run.folder() / "rollouts")) {
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      const auto row = nlohmann::json::parse(line);
      EXPECT_EQ(row.contains("steps"), row["rewards"].contains("steps")) << line;
      with += row.contains("steps") ? 1 : 0;
    }
  }
  EXPECT_GT(with, 0u);
}

}  // namespace
}  // namespace troupe::test

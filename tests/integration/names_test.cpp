// Names that users give to rewards, with the real program: none takes the place of what is the
// run's own, and none makes a file before it is checked.
#include "processes.hpp"
#include "runtime/config/reward_names.hpp"

namespace troupe::test {
namespace {

class Names : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return (files_ / name).string(); }
  Ended run(std::vector<std::string> words) {
    return troupe_ends(std::move(words), files_ / "log.txt", 60);
  }
  std::string reward(const std::string& name) const {
    std::ofstream(files_ / (name + ".py"))
        << "def reward_func(queries, prompts, labels):\n    return [7.0 for _ in queries]\n";
    return path(name + ".py");
  }
  // A run of one update without a reward.
  std::vector<std::string> run_words(const std::vector<std::string>& more) const {
    std::ofstream(files_ / "bare.yaml")
        << "rollout: {batch_size: 4, n_samples_per_prompt: 2, max_new_tokens: 4}\n"
           "data: {input_key: prompt, label_key: answer, prompt_max_len: 32}\n"
           "train: {max_steps: 1, threads: 2, seed: 5}\n";
    std::vector<std::string> words = {"train",
                                      "ppo",
                                      path("bare.yaml"),
                                      "--actor.model_name_or_path",
                                      files_.model(),
                                      "--data.prompt_dataset",
                                      path("train.jsonl"),
                                      "--run.path",
                                      path("run")};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  static std::vector<std::string> own_words() {
    std::vector<std::string> words(config::kRewardFigures.begin(), config::kRewardFigures.end());
    words.emplace_back("rest");
    return words;
  }

  TinyRun files_;
};

}  // namespace

TEST_F(Names, AFileThatWouldNameAFigureIsRefusedBeforeTheRun) {
  for (const std::string& word : own_words()) {
    const Ended refused = run(run_words({"--reward.python", reward(word)}));
    EXPECT_EQ(refused.status, 2) << word << refused.text;
    EXPECT_NE(refused.text.find("no reward may be called '" + word + "'"), std::string::npos)
        << refused.text;
    EXPECT_FALSE(std::filesystem::exists(files_ / "run")) << word;
  }
}

TEST_F(Names, AnAttachedRewardIsRefusedBeforeAnythingIsMade) {
  std::filesystem::create_directories(files_ / "run" / "nodes");
  auto names = own_words();
  for (const char* name : {"0", "12", "eval-a-exact", "a\x1b[31m", "<b>x", "../x", "a/b", "."})
    names.emplace_back(name);
  for (const std::string& name : names) {
    for (const bool background : {false, true}) {
      std::vector<std::string> words = {"attach", "reward", "--join", path("run"), "--name",
                                        name,     "--rule", "regex",  "--pattern", "x"};
      if (background) words.emplace_back("--background");
      const Ended refused = run(words);
      EXPECT_EQ(refused.status, 2) << name << refused.text;
      EXPECT_NE(refused.text.find("--name"), std::string::npos) << refused.text;
      EXPECT_TRUE(std::filesystem::is_empty(files_ / "run" / "nodes")) << name;
    }
  }
}

// A file called as the run's own feedback gets another name, not the feedback's place.
TEST_F(Names, TheRunsOwnFiguresAreItsOwn) {
  std::ofstream(files_ / "env.py") << "class Environment:\n"
                                      "    def step(self, message):\n"
                                      "        return {'done': True, 'reward': 0.5}\n";
  const Ended ended =
      run(run_words({"--reward.python", reward("feedback"), "--env.python", path("env.py")}));
  ASSERT_EQ(ended.status, 0) << ended.text;
  const auto metrics = metrics_of(files_ / "run").at(1);
  EXPECT_EQ(metrics.value("reward/feedback", -1.0), 0.5) << metrics.dump();
  EXPECT_EQ(metrics.value("reward/feedback-2", -1.0), 7.0) << metrics.dump();
  EXPECT_EQ(metrics.value("reward/mean", -1.0), 7.5) << metrics.dump();
}

}  // namespace troupe::test

// Forty spellings of numbers, through the real program: rows, labels, answers, bodies of rewards
// and logs keep each as it was written.
#include "processes.hpp"
#include "tests/unit/runtime/parse/number_spellings.hpp"

#include <algorithm>
#include <set>

namespace troupe::test {
namespace {

class Numbers : public ::testing::Test {
 protected:
  Numbers() {
    std::ofstream rows(files_ / "rows.jsonl"), scored(files_ / "scored.jsonl");
    for (const std::string number : kNumberSpellings) {
      rows << row_of(number) << "}\n";
      scored << row_of(number) << ",\"response\":\"" << number << "\"}\n";
    }
  }
  // Without the closing brace.
  static std::string row_of(const std::string& number) {
    return R"({"prompt":"1+1=","answer":)" + number + R"(,"x":{"y":[)" + number + "]}";
  }
  std::string path(const std::string& name) const { return (files_ / name).string(); }
  Ended run(std::vector<std::string> words) {
    return troupe_ends(std::move(words), files_ / "log.txt", 60);
  }
  std::vector<std::string> lines(const std::string& name) const {
    std::vector<std::string> all;
    std::ifstream in(files_ / name);
    for (std::string line; std::getline(in, line);)
      all.push_back(line);
    return all;
  }
  // Each line of a file begins with a row's columns as they were.
  void expect_rows(const std::string& name) const {
    const auto all = lines(name);
    ASSERT_EQ(all.size(), kNumberSpellings.size()) << name;
    for (std::size_t i = 0; i < all.size(); ++i)
      EXPECT_TRUE(all[i].starts_with(row_of(kNumberSpellings[i]) + ",")) << name << ": " << all[i];
  }

  TinyRun files_;
};

}  // namespace

TEST_F(Numbers, AnswersOfBatchCommandsAreTheDataStill) {
  const Ended generated =
      run({"generate", "--model", files_.model(), "--data", path("rows.jsonl"), "--out",
           path("out.jsonl"), "--max-new-tokens", "2", "--threads", "1"});
  ASSERT_EQ(generated.status, 0) << generated.text;
  expect_rows("out.jsonl");
  const Ended scored = run({"score", "--data", path("scored.jsonl"), "--rule", "exact",
                            "--label-key", "answer", "--out", path("best.jsonl")});
  ASSERT_EQ(scored.status, 0) << scored.text;
  expect_rows("best.jsonl");
  EXPECT_NE(scored.text.find("40 rows scored, mean 1.0000"), std::string::npos) << scored.text;
  const Ended evaluated = run({"eval", "--model", files_.model(), "--data", path("rows.jsonl"),
                               "--rule", "exact", "--label-key", "answer", "--n", "1", "--out",
                               path("eval.jsonl"), "--max-new-tokens", "2", "--threads", "1"});
  ASSERT_EQ(evaluated.status, 0) << evaluated.text;
  expect_rows("eval.jsonl");
}

TEST_F(Numbers, LabelsReachAPythonRewardAsWritten) {
  std::ofstream(files_ / "labels.py")
      << "def reward_func(queries, prompts, labels):\n"
         "    with open('" +
             path("labels.txt") +
             "', 'a') as file:\n"
             "        file.writelines(label + '\\n' for label in labels)\n"
             "    return [0.0 for _ in labels]\n";
  const Ended scored = run({"score", "--data", path("scored.jsonl"), "--python", path("labels.py"),
                            "--label-key", "answer", "--out", path("out.jsonl")});
  ASSERT_EQ(scored.status, 0) << scored.text;
  EXPECT_EQ(lines("labels.txt"),
            std::vector<std::string>(kNumberSpellings.begin(), kNumberSpellings.end()));
}

// What a run gives its reward, and what it writes down.
TEST_F(Numbers, ARunGivesAndLogsThemAsWritten) {
  std::ofstream(files_ / "seen.py")
      << "def reward(completions, answer, x, **others):\n"
         "    with open('" +
             path("seen.txt") +
             "', 'a') as file:\n"
             "        for a, one in zip(answer, x):\n"
             "            file.write(repr(a) + ' ' + repr(one['y'][0]) + '\\n')\n"
             "    return [float(len(c)) for c in completions]\n";
  std::ofstream(files_ / "numbers.yaml")
      << "rollout: {batch_size: 40, n_samples_per_prompt: 1, max_new_tokens: 2}\n"
         "data: {input_key: prompt, label_key: answer, prompt_max_len: 32}\n"
         "algo: {advantage: {estimator: reinforce}}\n"
         "train: {max_steps: 1, threads: 2, seed: 5}\ncluster: {transport: loopback}\n";
  const Ended run_ended = run({"train", "ppo", path("numbers.yaml"), "--actor.model_name_or_path",
                               files_.model(), "--data.prompt_dataset", path("rows.jsonl"),
                               "--reward.python", path("seen.py"), "--run.path", path("run")});
  ASSERT_EQ(run_ended.status, 0) << run_ended.text;
  const auto seen = lines("seen.txt");
  EXPECT_EQ(seen.size(), kNumberSpellings.size());
  for (const std::string python :
       {"123456789012345678901234567890", "18446744073709551616", "9007199254740993", "0.1"}) {
    EXPECT_NE(std::ranges::find(seen, python + " " + python), seen.end()) << python;
  }
  std::set<std::string> logged;
  for (const std::string& line : lines("run/rollouts/step_000001.jsonl")) {
    const std::string label = nlohmann::json::parse(line).at("label");
    logged.insert(label);
  }
  for (const std::string number : kNumberSpellings)
    EXPECT_TRUE(logged.contains(number)) << "label " << number;
}

TEST_F(Numbers, ARowWithAColumnTwiceIsRefused) {
  std::ofstream(files_ / "twice.jsonl") << R"({"prompt":"a","answer":"1","prompt":"b"})"
                                        << "\n";
  const Ended refused = run({"generate", "--model", files_.model(), "--data", path("twice.jsonl"),
                             "--out", path("out.jsonl")});
  EXPECT_EQ(refused.status, 4) << refused.text;
  EXPECT_NE(refused.text.find("twice.jsonl:1 has the name `prompt` twice"), std::string::npos)
      << refused.text;
}

}  // namespace troupe::test

// Inputs that are wrong, through the real program: each ends with one clear error and the exit code
// that scripts rely on, and starts nothing.
#include "processes.hpp"

#include <sys/mount.h>

namespace troupe::test {
namespace {

class TrainInputs : public ::testing::Test {
 protected:
  Ended train(const std::vector<std::string>& more) {
    auto words = files_.words("run");
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  Ended run(const std::vector<std::string>& words) {
    return troupe_ends(words, files_ / "log.txt", 100);
  }
  void expect(const Ended& outcome, int status, const std::string& part) {
    EXPECT_EQ(outcome.status, status) << outcome.text;
    EXPECT_NE(outcome.text.find("error: "), std::string::npos) << outcome.text;
    EXPECT_NE(outcome.text.find(part), std::string::npos) << outcome.text;
  }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(files_ / name, std::ios::binary) << text;
    return (files_ / name).string();
  }
  std::filesystem::path broken_model() {
    const auto folder = files_ / "broken";
    std::filesystem::remove_all(folder);
    std::filesystem::copy(files_.model(), folder, std::filesystem::copy_options::recursive);
    return folder;
  }

  TinyRun files_;
};

}  // namespace

TEST_F(TrainInputs, MissingModelFolder) {
  expect(train({"--actor.model_name_or_path", "/nonexistent/model"}), 2, "/nonexistent/model");
}

TEST_F(TrainInputs, PickledWeights) {
  const auto folder = broken_model();
  std::filesystem::rename(folder / "model.safetensors", folder / "pytorch_model.bin");
  const auto outcome = train({"--actor.model_name_or_path", folder.string()});
  EXPECT_TRUE(outcome.status == 2 || outcome.status == 4) << outcome.text;
  EXPECT_NE(outcome.text.find("pytorch_model.bin"), std::string::npos) << outcome.text;
}

TEST_F(TrainInputs, TruncatedWeights) {
  const auto folder = broken_model();
  const auto file = folder / "model.safetensors";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  expect(train({"--actor.model_name_or_path", folder.string()}), 4, "model.safetensors");
}

TEST_F(TrainInputs, UnknownArchitecture) {
  const auto folder = broken_model();
  auto config = nlohmann::json::parse(text_of(folder / "config.json"));
  config["architectures"] = {"MambaForCausalLM"};
  config["model_type"] = "mamba";
  std::ofstream(folder / "config.json") << config.dump();
  const auto outcome = train({"--actor.model_name_or_path", folder.string()});
  EXPECT_NE(outcome.text.find("MambaForCausalLM"), std::string::npos) << outcome.text;
  EXPECT_TRUE(outcome.status == 2 || outcome.status == 4) << outcome.text;
}

TEST_F(TrainInputs, UnknownKeyNamesTheNearest) {
  expect(train({"--rollout.batch_sise", "4"}), 2, "rollout.batch_size");
}

TEST_F(TrainInputs, ValueOutOfRange) {
  expect(train({"--rollout.temperature", "-1"}), 2, "rollout.temperature");
}

TEST_F(TrainInputs, BadLineOfADataset) {
  const auto file = write("bad.jsonl", "{\"prompt\": \"1+1=\", \"answer\": \"a\"}\n{oops\n");
  expect(train({"--data.prompt_dataset", file}), 4, "bad.jsonl:2 is not valid JSON");
}

TEST_F(TrainInputs, EmptyDataset) {
  expect(train({"--data.prompt_dataset", write("empty.jsonl", "\n")}), 4, "no rows");
}

TEST_F(TrainInputs, MissingColumn) {
  const auto outcome = train({"--data.input_key", "question"});
  expect(outcome, 4, "train.jsonl:1: no column 'question'");
  expect(outcome, 4, "--data.input_key");
}

TEST_F(TrainInputs, PromptLongerThanTheBound) {
  const auto file =
      write("long.jsonl", "{\"prompt\": \"" + std::string(100, 'x') + "\", \"answer\": \"a\"}\n");
  expect(train({"--data.prompt_dataset", file}), 4, "data.prompt_max_len");
}

TEST_F(TrainInputs, LengthsBeyondTheContext) {
  expect(train({"--data.prompt_max_len", "255", "--rollout.max_new_tokens", "64"}), 2, "context");
}

TEST_F(TrainInputs, AGroupBeyondItsBound) {
  const auto outcome =
      train({"--rollout.n_samples_per_prompt", "64", "--rollout.max_new_tokens", "131072"});
  expect(outcome, 2, "rollout.n_samples_per_prompt: 64 samples of 131072 tokens are a group of ");
  expect(outcome, 2, "a group may have at most 67108864");
  EXPECT_FALSE(std::filesystem::exists(files_ / "run" / "rollouts"));
}

// A row is long in a column that one function reads and the other does not.
TEST_F(TrainInputs, ARowThatIsTooLongForItsRewardAndALongOneThatIsNot) {
  const auto row = [](std::size_t bytes) {
    return "{\"prompt\": \"1+1=\", \"answer\": \"a\", \"tests\": \"" + std::string(bytes, 'x') +
           "\"}\n";
  };
  const std::string small = row(1);
  const auto huge = write("huge.jsonl", small + small + row(8'600'000) + small);
  const auto large =
      write("large.jsonl", row(2'000'000) + row(2'000'000) + row(2'000'000) + row(2'000'000));
  const auto reads =
      write("reads.py",
            "def f(prompts, completions, tests):\n"
            "    return [len(c) % 3 + len(t) % 2 for c, t in zip(completions, tests)]\n");
  const auto does_not = write("does_not.py",
                              "def reward_func(queries, prompts, labels):\n"
                              "    return [len(q) % 3 for q in queries]\n");
  const auto with = [&](const std::string& data, const std::string& reward) {
    std::filesystem::remove_all(files_ / "run");
    return train({"--reward.rule", "", "--reward.rule_pattern", "", "--reward.python", reward,
                  "--data.prompt_dataset", data, "--rollout.n_samples_per_prompt", "16",
                  "--cluster.transport", "loopback", "--train.max_steps", "1"});
  };
  const auto refused = with(huge, reads);
  expect(refused, 4, "huge.jsonl:3: ");
  expect(refused, 4, "(columns tests; messages) have 8600");
  EXPECT_FALSE(std::filesystem::exists(files_ / "run" / "rollouts"));
  const auto unread = with(huge, does_not);
  EXPECT_EQ(unread.status, 0) << unread.text;
  const auto trained = with(large, reads);
  EXPECT_EQ(trained.status, 0) << trained.text;
  EXPECT_EQ(metrics_of(files_ / "run").size(), 1u);
}

TEST_F(TrainInputs, RewardFunctionThatRaises) {
  const auto file = write("raises.py",
                          "def reward_func(queries, prompts, labels):\n"
                          "    raise ValueError('broken on purpose')\n");
  expect(train({"--reward.rule", "", "--reward.rule_pattern", "", "--reward.python", file}), 4,
         "broken on purpose");
}

TEST_F(TrainInputs, RewardFunctionOfWrongLength) {
  const auto file = write("short.py",
                          "def reward_func(queries, prompts, labels):\n"
                          "    return [1.0]\n");
  expect(train({"--reward.rule", "", "--reward.rule_pattern", "", "--reward.python", file}), 4,
         "1 values for 4 samples");
}

TEST_F(TrainInputs, RewardFileThatDoesNotLoad) {
  const auto file = write("syntax.py", "def (:\n");
  expect(train({"--reward.rule", "", "--reward.rule_pattern", "", "--reward.python", file}), 2,
         "syntax.py");
}

TEST_F(TrainInputs, RunFolderThatCannotBeMade) {
  const auto file = write("file", "x");
  expect(train({"--run.path", file + "/run"}), 2, file);
}

// A full disk pauses the run: the checkpoint is written when there is room. Nothing of the run
// differs.
TEST_F(TrainInputs, AFullDiskPausesTheRunUntilThereIsRoom) {
  const std::string disk = (files_ / "disk").string();
  std::filesystem::create_directories(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=4m") != 0) {
    GTEST_SKIP() << "needs the right to mount a small file system";
  }
  auto words = files_.words("run");
  words.insert(words.end(), {"--run.path", disk + "/run"});
  Background run = start_troupe(words, files_ / "log.txt");
  for (int look = 0; look < 600 && !run.says("the run continues when there is room"); ++look)
    ASSERT_FALSE(run.wait(0.1)) << run.text();
  EXPECT_TRUE(run.says("No space left on device")) << run.text();
  ASSERT_EQ(::mount("tmpfs", disk.c_str(), "tmpfs", MS_REMOUNT, "size=256m"), 0);
  EXPECT_EQ(run.wait(100), 0) << run.text();
  const auto roomy = train({"--run.path", (files_ / "roomy").string()});
  EXPECT_EQ(roomy.status, 0) << roomy.text;
  EXPECT_EQ(metrics_of(disk + "/run"), metrics_of(files_ / "roomy"));
  EXPECT_EQ(hashes_of(disk + "/run/ckpt/step_000010"),
            hashes_of(files_ / "roomy/ckpt/step_000010"));
  EXPECT_EQ(::umount(disk.c_str()), 0);
}

}  // namespace troupe::test

// Settings of TRL that are one key only together, and Python scripts with their settings as
// literals.
#include "tests/unit/runtime/config/peer_files.hpp"

namespace troupe::config {
namespace {

// Batches of a device are multiplied by what accelerate, torchrun or TRL's own command start.
TEST_F(PeerFiles, ProcessesOfALauncherAreAFactorOfTheBatch) {
  const auto batch = [&](const std::string& line) {
    recipe("trl", file("l.sh", line));
    return values()["train.batch_size"];
  };
  const std::string sizes = " --per_device_train_batch_size 2 --gradient_accumulation_steps 4\n";
  EXPECT_EQ(batch("python -m trl.scripts.sft" + sizes), "8");
  EXPECT_EQ(batch("accelerate launch --num_processes 3 trl/scripts/sft.py" + sizes), "24");
  EXPECT_EQ(batch("accelerate launch --num_processes=3 -m trl.scripts.sft" + sizes), "24");
  EXPECT_EQ(batch("torchrun --nproc_per_node 2 sft.py" + sizes), "16");
  EXPECT_EQ(batch("torchrun --nnodes=3 --nproc_per_node=2 sft.py" + sizes), "48");
  EXPECT_EQ(batch("trl sft --num_processes 5" + sizes), "40");
  EXPECT_EQ(batch("trl sft --num_processes 5\n"), "40") << "theirs is 8 where it is not given";
  const std::string yaml =
      recipe("trl", file("n.sh", "torchrun --nproc_per_node $(nproc) sft.py" + sizes));
  EXPECT_NE(yaml.find("num_processes = $(nproc) (n.sh:1): what $(nproc) is"), yaml.npos) << yaml;
}

// TRL counts completions: 2 of a device x 4 processes x 8 steps are 64 of a generation, of 16 to a
// prompt 4 prompts; the oracle test has TRL's own sums.
TEST_F(PeerFiles, TrlsBatchesOfCompletions) {
  const auto sizes = [&](const std::string& flags) {
    recipe("trl", file("g.sh", "accelerate launch --num_processes 4 grpo.py " + flags + "\n"));
    Values all = values();
    return all["train.batch_size"] + " " + all["rollout.batch_size"] + " " +
           all["rollout.n_samples_per_prompt"];
  };
  const std::string two = "--per_device_train_batch_size 2 --gradient_accumulation_steps 8 ";
  EXPECT_EQ(sizes(two + "--num_generations 16"), "64 4 16");
  EXPECT_EQ(sizes(two), "64 8 8") << "num_generations is 8 where it is not given";
  EXPECT_EQ(sizes(two + "--steps_per_generation 16 --num_generations 16"), "64 8 16");
  EXPECT_EQ(sizes(two + "--generation_batch_size 256 --num_generations 16"), "64 16 16");
  EXPECT_EQ(sizes("--num_generations 4"), "32 8 4") << "8 of a device where nothing is said";
  recipe("trl", file("r.sh", "trl rloo --per_device_train_batch_size 4\n"));
  EXPECT_EQ(values()["rollout.n_samples_per_prompt"], "2");
  EXPECT_EQ(values()["rollout.batch_size"], "2");
  const std::string odd =
      recipe("trl", file("o.sh", "trl grpo --per_device_train_batch_size 3 --num_generations 2\n"));
  EXPECT_NE(odd.find("# - per_device_train_batch_size = 3 (o.sh:1)"), odd.npos)
      << "which TRL refuses" << odd;
}

TEST_F(PeerFiles, TheSidesOfAClipAreOneKey) {
  const auto clip = [&](const std::string& flags) {
    recipe("trl", file("c.sh", "trl grpo --learning_rate 1e-6 " + flags + "\n"));
    Values all = values();
    return all["actor.eps_clip"] + all["actor.eps_clip_low_high"];
  };
  EXPECT_EQ(clip("--epsilon 0.1"), "0.1");
  EXPECT_EQ(clip("--epsilon_high 0.28"), "[0.2, 0.28]") << "0.2 below, as TRL has it";
  EXPECT_EQ(clip("--epsilon 0.1 --epsilon_high 0.28"), "[0.1, 0.28]");
  EXPECT_EQ(clip("--epsilon_high None"), "");
}

TEST_F(PeerFiles, SplitsArePartsOfTheName) {
  const auto sets = [&](const std::string& flags) {
    recipe("trl", file("s.sh", "trl sft --learning_rate 1e-6 " + flags + "\n"));
    Values all = values();
    return all["data.dataset"] + all["eval.dataset"];
  };
  EXPECT_EQ(sets("--dataset_name org/rows"), "\"org/rows\"");
  EXPECT_EQ(sets("--dataset_name org/rows --dataset_train_split train_sft"),
            "\"org/rows::train_sft\"");
  EXPECT_EQ(sets("--dataset_name org/rows --dataset_config main --dataset_train_split train"),
            "\"org/rows:main:train\"");
  EXPECT_EQ(sets("--dataset_name org/rows --dataset_test_split held --eval_strategy steps"),
            "\"org/rows\"\"org/rows::held\"");
  EXPECT_EQ(sets("--dataset_name org/rows --dataset_test_split held"), "\"org/rows\"")
      << "TRL does not evaluate then";
  EXPECT_EQ(sets("--dataset_name ./rows --dataset_train_split x"), "\"./rows\"");
}

TEST_F(PeerFiles, APythonScriptIsItsConfigsLiterals) {
  PythonScript script;
  script.configs = {{"DPOConfig", 7}};
  script.settings = {{{"beta", {"0.2"}, false, "train_dpo.py:8"}, false, {}, {}},
                     {{"per_device_train_batch_size", {"2"}, false, "x.py:9"}, false, {}, {}},
                     {{"output_dir", {"null"}, false, "train_dpo.py:9"}, false, "here()", {}}};
  python_ = [&](const auto&) { return core::Result<PythonScript>(script); };
  const std::string yaml = recipe("trl", file("train_dpo.py", ""));
  EXPECT_EQ(values(),
            (Values{{"method", "\"dpo\""}, {"dpo.beta", "0.2"}, {"train.batch_size", "2"}}))
      << yaml;
  EXPECT_NE(yaml.find("what here() is, only Python knows"), yaml.npos) << yaml;
  recipe("trl", file("l.sh", "accelerate launch --num_processes 8 train_dpo.py\n"));
  EXPECT_EQ(values()["train.batch_size"], "16");
  script.configs.push_back({"SFTConfig", 9});
  EXPECT_EQ(recipe("trl", file("train_dpo.py", "")),
            "train_dpo.py: makes several settings of TRL, DPOConfig in line 7 and SFTConfig in "
            "line 9; keep one of them in the file");
  script.configs.clear();
  EXPECT_TRUE(
      recipe("trl", file("train_dpo.py", ""))
          .starts_with("train_dpo.py: makes no settings of TRL by a call such as DPOConfig("));
}

}  // namespace
}  // namespace troupe::config

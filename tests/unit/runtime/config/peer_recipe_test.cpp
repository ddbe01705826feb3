// Configurations of other trainers as their users have them, and what becomes of each setting.
#include "runtime/config/peer_recipe.hpp"

#include "runtime/config/peer_names.hpp"
#include "tests/unit/runtime/config/peer_files.hpp"

#include <cstdlib>
#include <set>

namespace troupe::config {
namespace {

// In the style of OpenRLHF's examples/scripts: Ray, backslashes, comments behind the command.
TEST_F(PeerFiles, OpenRlhfScript) {
  const std::string script = file("ppo.sh", R"(set -x

ray job submit --address="http://127.0.0.1:8265" \
   --runtime-env-json='{"working_dir": "/openrlhf"}' \
   -- python3 -m openrlhf.cli.train_ppo_ray \
   --ref.num_nodes 1 \
   --actor.num_nodes 1 \
   --actor.num_gpus_per_node 4 \
   --vllm.num_engines 2 \
   --actor.model_name_or_path OpenRLHF/Llama-3-8b-sft-mixture \
   --reward.remote_url /openrlhf/examples/python/reward_func.py \
   --ckpt.output_dir ./checkpoint/llama3-8b-rlhf \
   --train.batch_size 128 \
   --rollout.batch_size 1024 \
   --actor.eps_clip_low_high 0.2 0.27 \
   --data.max_len 2048 \
   --ds.packing_samples \
   --actor.adam.lr 5e-7 \
   --data.prompt_dataset OpenRLHF/prompt-collection-v0.1 \
   --data.apply_chat_template

# You could also try
#   --data.input_key question
)");
  const std::string yaml = recipe("openrlhf", script);
  EXPECT_EQ(values(), (Values{{"method", "\"ppo\""},
                              {"actor.ranks", "4"},
                              {"actor.eps_clip_low_high", "[0.2, 0.27]"},
                              {"actor.model_name_or_path", "\"OpenRLHF/Llama-3-8b-sft-mixture\""},
                              {"actor.adam.lr", "5e-07"},
                              {"rollout.generators", "2"},
                              {"rollout.batch_size", "1024"},
                              {"reward.python", "\"/openrlhf/examples/python/reward_func.py\""},
                              {"run.path", "\"./checkpoint/llama3-8b-rlhf\""},
                              {"train.batch_size", "128"},
                              {"data.prompt_dataset", "\"OpenRLHF/prompt-collection-v0.1\""},
                              {"data.apply_chat_template", "true"}}))
      << yaml;
  EXPECT_NE(yaml.find("# From OpenRLHF (openrlhf.cli.train_ppo_ray): FILE."), yaml.npos) << yaml;
  EXPECT_NE(yaml.find("# - data.max_len = 2048 (ppo.sh:16): 'data.max_len' is two lengths here"),
            yaml.npos)
      << yaml;
  EXPECT_NE(yaml.find("# - (ppo.sh:17) 'ds.packing_samples' has no effect"), yaml.npos) << yaml;
  EXPECT_EQ(made_.keys, 11u);
  EXPECT_EQ(made_.held, 2u) << yaml;
  EXPECT_EQ(made_.others, 1u) << yaml;
}

// The form of its older scripts: the command is a here-document.
TEST_F(PeerFiles, OpenRlhfHereDocument) {
  const std::string script = file("dpo.sh", R"(set -x
read -r -d '' training_commands <<EOF
openrlhf.cli.train_dpo \
   --save_path ./checkpoint/llama3-8b-dpo \
   --pretrain OpenRLHF/Llama-3-8b-sft-mixture \
   --ipo \
   --max_epochs 1 \
   --learning_rate 5e-7 \
   --dataset OpenRLHF/preference
EOF
     # --use_wandb [WANDB_TOKENS]
if [[ ${1} != "slurm" ]]; then
    deepspeed --module $training_commands
fi
)");
  const std::string yaml = recipe("openrlhf", script);
  EXPECT_EQ(values(), (Values{{"method", "\"ipo\""},
                              {"actor.model_name_or_path", "\"OpenRLHF/Llama-3-8b-sft-mixture\""},
                              {"actor.adam.lr", "5e-07"},
                              {"run.path", "\"./checkpoint/llama3-8b-dpo\""},
                              {"train.max_epochs", "1"},
                              {"data.dataset", "\"OpenRLHF/preference\""}}))
      << yaml;
}

// In the style of TRL's docs: `trl sft --config`, with flags that count after the file.
TEST_F(PeerFiles, TrlCommandWithItsFile) {
  file("sft.yaml",
       "model_name_or_path: Qwen/Qwen2-0.5B\n"
       "dataset_name: trl-lib/Capybara\n"
       "learning_rate: 2.0e-5\n"
       "per_device_train_batch_size: 2\n"
       "gradient_accumulation_steps: 8\n"
       "packing: true\n"
       "use_peft: true\n"
       "lora_r: 32\n"
       "report_to: none\n"
       "model_init_kwargs:\n"
       "  revision: main\n");
  const std::string script =
      file("run.sh",
           "accelerate launch --num_processes 2 x.py\n"
           "trl sft --config sft.yaml \\\n    --learning_rate 1.0e-4 --eval_strategy steps "
           "--eval_steps 100 --output_dir \"out/${NAME:-mine}\"\n");
  const std::string yaml = recipe("trl", script);
  EXPECT_EQ(values(), (Values{{"method", "\"sft\""},
                              {"actor.model_name_or_path", "\"Qwen/Qwen2-0.5B\""},
                              {"actor.adam.lr", "1e-04"},
                              {"actor.lora.rank", "32"},
                              {"data.dataset", "\"trl-lib/Capybara\""},
                              {"eval.steps", "100"},
                              {"logger.wandb", "false"},
                              {"run.path", "\"out/mine\""},
                              {"train.batch_size", "16"}}))
      << yaml;
  EXPECT_EQ(yaml.find("'use_peft'"), yaml.npos) << "a hint that did not count" << yaml;
  EXPECT_NE(yaml.find("# - model_init_kwargs = {...} (sft.yaml:10): 'model_init_kwargs' has no"),
            yaml.npos)
      << yaml;
}

TEST_F(PeerFiles, TrlFileNeedsTheMethodAndGrpoSaysItsEstimator) {
  const std::string json =
      file("grpo.json", R"({"model_name_or_path": "Qwen/Qwen2.5-0.5B", "num_generations": 4,
 "beta": 0.04, "reward_funcs": ["accuracy_reward"], "max_completion_length": 64})");
  EXPECT_EQ(recipe("trl", json).substr(0, 41), "grpo.json: does not say what is trained; ");
  recipe("trl", json, kPpo);
  EXPECT_EQ(values()["algo.kl.init_coef"], "0.04");
  EXPECT_EQ(values()["rollout.n_samples_per_prompt"], "4");
  recipe("trl", file("g.sh", "trl grpo --num_generations 8 --scale_rewards none\n"));
  EXPECT_EQ(values()["algo.advantage.estimator"], "\"dr_grpo\"") << "what is written counts last";
  recipe("trl", file("r.sh", "python examples/scripts/rloo.py --num_generations 8\n"));
  EXPECT_EQ(values()["algo.advantage.estimator"], "\"rloo\"");
}

// In the style of verl's examples: variables, lists in quotes, sums, arrays.
TEST_F(PeerFiles, VerlScript) {
  const std::string script = file("grpo.sh", R"(set -x
data=/data
gsm8k_train_path=$data/gsm8k/train.parquet
math_train_path=$data/math/train.parquet
train_files="['$gsm8k_train_path', '$math_train_path']"
max_response_length=$((1024 * 2))
ROLLOUT=(
    actor_rollout_ref.rollout.n=5
    actor_rollout_ref.rollout.name=vllm
)
python3 -m verl.trainer.main_ppo \
    algorithm.adv_estimator=grpo \
    data.train_files="$train_files" \
    data.train_batch_size=1024 \
    data.max_response_length=${max_response_length} \
    +actor_rollout_ref.model.path=Qwen/Qwen2-7B-Instruct \
    actor_rollout_ref.actor.optim.lr=1e-6 \
    actor_rollout_ref.actor.ppo_mini_batch_size=256 \
    actor_rollout_ref.actor.use_kl_loss=True \
    trainer.logger='["console","wandb"]' \
    trainer.experiment_name="$NAME" \
    "${ROLLOUT[@]}" \
    trainer.total_epochs=15 $@
)");
  const std::string yaml = recipe("verl", script);
  EXPECT_EQ(
      values(),
      (Values{{"method", "\"ppo\""},
              {"actor.model_name_or_path", "\"Qwen/Qwen2-7B-Instruct\""},
              {"actor.adam.lr", "1e-06"},
              {"algo.advantage.estimator", "\"group_norm\""},
              {"algo.kl.use_loss", "true"},
              {"data.prompt_dataset", "\"/data/gsm8k/train.parquet,/data/math/train.parquet\""},
              {"rollout.batch_size", "1024"},
              {"rollout.max_new_tokens", "2048"},
              {"rollout.n_samples_per_prompt", "5"},
              {"train.num_episodes", "15"}}))
      << yaml;
  EXPECT_NE(yaml.find("# - trainer.experiment_name = $NAME (grpo.sh:21): what $NAME is, only"),
            yaml.npos)
      << yaml;
  EXPECT_NE(yaml.find("(grpo.sh:9)"), yaml.npos) << "where an item of an array is written" << yaml;
  EXPECT_EQ(made_.others, 3u) << yaml;
}

TEST_F(PeerFiles, VerlYamlAndBareWords) {
  const std::string path = file("ppo.yaml",
                                "data:\n  train_files: a.jsonl\n  train_batch_size: 64\n"
                                "actor_rollout_ref:\n  actor:\n    optim: {lr: 2e-6}\n"
                                "  rollout:\n    n: ${oc.select:x,1}\n"
                                "trainer:\n  nosuch: 1\n");
  const std::string yaml = recipe("verl", path);
  EXPECT_EQ(values(), (Values{{"method", "\"ppo\""},
                              {"actor.adam.lr", "2e-06"},
                              {"data.prompt_dataset", "\"a.jsonl\""},
                              {"rollout.batch_size", "64"}}))
      << yaml;
  EXPECT_NE(yaml.find("(ppo.yaml:10): unknown key 'trainer.nosuch'"), yaml.npos) << yaml;
  EXPECT_NE(yaml.find("only its shell or Hydra knows"), yaml.npos) << yaml;
  recipe("verl", file("words.txt", "data.train_batch_size=64\ndata.train_files=b.jsonl\n"));
  EXPECT_EQ(values()["data.prompt_dataset"], "\"b.jsonl\"");
}

// The oracle is the table of names itself: what it makes of each word of the published command
// lines is what stands in the recipe.
TEST_F(PeerFiles, EachWordOfPublishedCommandsIsWhereTheTablePutsIt) {
  const char* source = std::getenv("TROUPE_SOURCE_DIR");
  std::ifstream in(std::string(source == nullptr ? "." : source) +
                   "/tests/data/peer_names/commands.txt");
  int lines = 0, words = 0;
  for (std::string line; std::getline(in, line);) {
    const auto first = line.find('\t'), second = line.find('\t', first + 1);
    if (line.empty() || line[0] == '#' || second == line.npos) continue;
    const std::string title = line.substr(first + 1, 4);
    const std::string peer = title == "Open" ? "openrlhf" : title == "TRL " ? "trl" : "verl";
    if (title == "LLaM") continue;
    const Methods method = method_named(line.substr(0, first));
    const std::string script = file("c.sh", line.substr(second + 1) + "\n");
    const auto read = read_peer_file(keys(), peer, script, method, no_variables, no_python);
    ASSERT_TRUE(read) << line << "\n" << read.error().message;
    made_ = make_recipe(keys(), *read, "FILE");
    const Values kept = values();
    ++lines;
    std::size_t held = 0, refused = 0;
    std::set<std::string> set = {"method"};
    for (const PeerSetting& setting : read->settings) {
      ++words;
      const auto meant = understand(keys(), method, setting.written);
      const std::string comment = "# - " + setting.written.name + " = ";
      if (meant && !meant->setting) {
        held += meant->note.empty() ? 0 : 1;
      } else if (meant && made_.yaml.find(comment) == std::string::npos) {
        set.insert(meant->setting->name);
      } else {
        ++refused;
        EXPECT_NE(made_.yaml.find(comment), std::string::npos) << comment << made_.yaml;
      }
    }
    EXPECT_EQ(made_.held, held) << line;
    EXPECT_EQ(made_.others, refused) << line << made_.yaml;
    for (const std::string& key : set)
      EXPECT_TRUE(kept.contains(key)) << key << made_.yaml;
    EXPECT_EQ(set.size(), kept.size()) << line;
  }
  EXPECT_EQ(lines, 28);
  EXPECT_GE(words, 500);
}

TEST_F(PeerFiles, WhatARunWouldRefuseIsSaid) {
  const std::string yaml = recipe("trl", file("a.sh", "trl dpo --learning_rate 1e-6\n"));
  ASSERT_EQ(made_.missing.size(), 2u) << yaml;
  EXPECT_NE(yaml.find(" Still to do: actor.model_name_or_path"), yaml.npos) << yaml;
  EXPECT_NE(made_.missing[0].find("actor.model_name_or_path"), std::string::npos);
  EXPECT_NE(made_.missing[1].find("data.dataset"), std::string::npos);
}

TEST_F(PeerFiles, BadFilesAreNamed) {
  const auto starts = [&](const std::string& said, const std::string& with) {
    EXPECT_TRUE(said.starts_with(with)) << said;
  };
  starts(recipe("axolotl", "x"), "there is no trainer 'axolotl' to read from; use openrlhf");
  starts(recipe("trl", (folder_ / "none.sh").string()), "none.sh: no such configuration file");
  starts(recipe("trl", "/tmp"), "/tmp: is a folder");
  starts(recipe("trl", file("empty.sh", "")), "empty.sh: no command of TRL in it (trl sft");
  starts(recipe("openrlhf", file("t.sh", "trl sft --learning_rate 1\n")),
         "t.sh: no command of OpenRLHF in it");
  starts(recipe("trl", file("flags.sh", "--learning_rate 1e-5\n")),
         "flags.sh: does not say what is trained; give --method");
  starts(recipe("trl", file("two.sh", "trl sft --a 1\n\ntrl dpo --b 2\n")),
         "two.sh: has several commands of TRL, in lines 1 and 3; keep one");
  starts(recipe("verl", file("sft.sh", "torchrun -m verl.trainer.fsdp_sft_trainer data.x=1\n")),
         "sft.sh: no command of verl in it (verl.trainer.main_ppo");
  starts(recipe("openrlhf", file("q.sh", "openrlhf.cli.train_sft --a 'b\n")),
         "q.sh:1: a ' has no end");
  starts(recipe("trl", file("c.sh", "trl sft --config gone.yaml\n")),
         "c.sh:1: gone.yaml: no such configuration file");
  starts(recipe("trl", file("d.sh", "trl sft --config $GONE\n")),
         "d.sh:1: --config: which file it is cannot be read here");
  starts(recipe("trl", file("l.yaml", "- a\n- b\n"), kSft),
         "l.yaml: expected `key: value` pairs at the top");
  starts(recipe("trl", file("e.yaml", ""), kSft), "e.yaml: expected `key: value` pairs");
  starts(recipe("trl", file("b.yaml", "a: [1\n"), kSft), "b.yaml:2: not valid YAML");
  starts(recipe("trl", file("m.yaml", "a: 1\n---\nb: 2\n"), kSft), "m.yaml: holds several YAML");
  starts(recipe("trl", file("j.json", "{\"a\": ]"), kSft), "j.json:1: not valid YAML");
  starts(recipe("verl", file("n.yaml", "? [a, b]\n: 1\n")), "n.yaml:1: a key must be a plain word");
  std::string deep;
  for (int i = 0; i < 20; ++i)
    deep += std::string(static_cast<std::size_t>(i), ' ') + "s" + std::to_string(i) + ":\n";
  starts(recipe("verl", file("deep.yaml", deep + std::string(20, ' ') + "x: 1\n")),
         "deep.yaml:14: sections nested too deeply");
  starts(recipe("trl", file("nothing.sh", "trl sft\n")), "nothing.sh: has no setting in it");
  starts(recipe("openrlhf", file("zero.sh", std::string("a\0b", 3))), "zero.sh: is no text");
}

// Text of others cannot leave its comment.
TEST_F(PeerFiles, CommentsStayComments) {
  recipe("trl", file("x.yaml", "hub_token: \"a\\nmethod: dpo\\u0085b\"\nlearning_rate: 1e-5\n"),
         kSft);
  EXPECT_EQ(values()["method"], "\"sft\"");
  EXPECT_EQ(values().size(), 2u) << made_.yaml;
  EXPECT_EQ(made_.yaml.find("\xC2\x85"), std::string::npos) << "a line ends there in YAML";
}

}  // namespace
}  // namespace troupe::config

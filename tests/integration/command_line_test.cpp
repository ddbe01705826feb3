// What a user who makes a mistake gets from the real program: one clear error, the right exit code,
// and nothing half done.
#include "tests/integration/exact_support.hpp"
#include "tests/unit/runtime/core/listing1.hpp"
#include "tests/unit/runtime/text/byte_tokenizer.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace troupe::test {
namespace {

struct Refused {
  int status = -1;
  std::string errors;
};

class CommandLine : public testing::Test {
 protected:
  // Runs troupe with its standard error in a file.
  Refused troupe(const std::vector<std::string>& words) {
    const char* folder = std::getenv("TROUPE_BUILD_DIR");
    std::string command = shell_word(std::string(folder != nullptr ? folder : "build") + "/troupe");
    for (const std::string& word : words)
      command += " " + shell_word(word);
    const std::string errors = (scratch_ / "errors").string();
    const int status = std::system((command + " >/dev/null 2>" + shell_word(errors)).c_str());
    std::ifstream in(errors);
    std::stringstream text;
    text << in.rdbuf();
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text.str()};
  }

  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(scratch_ / name) << text;
    return (scratch_ / name).string();
  }

  void expect(const std::vector<std::string>& words,
              int status,
              const std::vector<std::string>& parts) {
    const Refused outcome = troupe(words);
    EXPECT_EQ(outcome.status, status) << outcome.errors;
    EXPECT_EQ(outcome.errors.rfind("error: ", 0), 0u) << outcome.errors;
    for (const std::string& part : parts) {
      EXPECT_NE(outcome.errors.find(part), std::string::npos) << part << "\n" << outcome.errors;
    }
  }

  // A whole configuration; `model` and `prompts` as given.
  std::vector<std::string> train(const std::string& model, const std::string& prompts) {
    return {"train",
            "ppo",
            "--actor.model_name_or_path",
            model,
            "--data.prompt_dataset",
            prompts,
            "--data.label_key",
            "answer",
            "--reward.rule",
            "exact",
            "--rollout.max_new_tokens",
            "4",
            "--data.prompt_max_len",
            "16",
            "--run.path",
            (scratch_ / "run").string()};
  }

  ScratchFolder scratch_;
};

TEST_F(CommandLine, UnknownKeyNamesTheNearestAndTheLine) {
  const std::string yaml = file("c.yaml", "actor:\n  adam:\n    lrr: 1e-6\n");
  expect({"config", "validate", yaml}, 2,
         {"c.yaml:3: unknown key 'actor.adam.lrr'", "hint: did you mean 'actor.adam.lr'?"});
  expect({"train", "ppo", yaml}, 2, {"c.yaml:3"});
}

TEST_F(CommandLine, WrongValuesNameKeyRangeAndLine) {
  const std::string yaml = file("c.yaml", "rollout:\n  batch_size: 0\n");
  expect({"config", "show", yaml}, 2, {"c.yaml:2: rollout.batch_size = 0", "1 to 1048576"});
  expect({"config", "show", "--train.seed", "x"}, 2, {"train.seed = x", "whole number"});
  expect({"config", "show", "--train.staleness_max", "65"}, 2, {"0 to 64"});
  expect({"config", "show", "--vllm_gpu_memory_utilization", "0.5"}, 2, {"'rollout.kv_cache_gb'"});
  expect({"config", "show", "/no/such.yaml"}, 2, {"/no/such.yaml"});
}

// A name belongs to the method, and what is so anyway is taken with a line.
TEST_F(CommandLine, NamesOfOtherTrainersAreAnsweredByTheMethod) {
  const Refused taken = troupe({"config", "show", "--method", "sft", "--packing_samples",
                                "--flash_attn", "--save_steps", "-1", "--output_dir", "here"});
  EXPECT_EQ(taken.status, 0) << taken.errors;
  EXPECT_NE(taken.errors.find("note: the command line: 'packing_samples' has no effect"),
            std::string::npos)
      << taken.errors;
  expect({"train", "ppo", "actor_rollout_ref.nosuch.path=x"}, 2, {"`troupe train ppo --help`"});
  expect({"train", "ppo", "--reward.pattern", "x"}, 2, {"'reward.rule_pattern'"});
  expect({"train", "sft", "--num_generations", "8"}, 2,
         {"'rollout.n_samples_per_prompt'", "not read by `train sft`"});
  expect({"train", "dpo", "--beta", "x"}, 2, {"dpo.beta = x"});
}

TEST_F(CommandLine, MissingModelFolder) {
  const std::string prompts = file("p.jsonl", "{\"input\": \"a\", \"answer\": \"b\"}\n");
  expect(train("/no/such/model", prompts), 2, {"/no/such/model"});
  expect({"generate", "--model", "/no/such/model", "--prompt", "x"}, 2, {"/no/such/model"});
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "run")) << "nothing is made before the checks";
}

TEST_F(CommandLine, UnknownArchitectureIsNamed) {
  std::filesystem::create_directories(scratch_ / "odd");
  file("odd/config.json", R"({"architectures": ["MambaForCausalLM"], "model_type": "mamba"})");
  expect({"generate", "--model", (scratch_ / "odd").string(), "--prompt", "x"}, 2,
         {"MambaForCausalLM"});
}

TEST_F(CommandLine, UnknownSubcommandsAndFlags) {
  expect({"frobnicate"}, 2, {"'frobnicate'"});
  expect({"train", "dop", "c.yaml"}, 2, {"`train dop`", "`train dpo`"});
  expect({"train", "grpo", "c.yaml"}, 2, {"train ppo", "estimator group_norm"});
  expect({"bench", "nothing"}, 2, {"'nothing'"});
  expect({"generate", "--modle", "x"}, 2, {"--model"});
  expect({"generate", "--model", "x", "--prompt", "a", "--n", "0"}, 2, {"--n"});
}

// The paper's first listing as its readers type it: each flag is taken, or answered at once with
// all others.
TEST_F(CommandLine, TheListingOfOpenRlhfsPaperIsAnsweredAtOnce) {
  std::vector<std::string> words = {"train", "ppo", "--deepspeed_enable_sleep", "--actor_num_nodes",
                                    "1"};
  for (const std::string& word : listing1())
    words.push_back(word);
  const Refused outcome = troupe(words);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.errors.find("unknown key"), std::string::npos) << outcome.errors;
  std::size_t answered = 0;
  for (auto at = outcome.errors.find("error: the command line: '"); at != std::string::npos;
       at = outcome.errors.find("error: the command line: '", at + 1))
    ++answered;
  EXPECT_EQ(answered, 4u) << outcome.errors;  // 19 of the 23 are taken
  for (const char* name :
       {"'ref.device'", "'reward.device'", "'train.zero_stage'", "'ref_reward_offload'"})
    EXPECT_NE(outcome.errors.find(name), std::string::npos) << name << "\n" << outcome.errors;
}

TEST_F(CommandLine, SwitchesTakeAWordInEveryCommand) {
  // The word is taken: what is wrong is the model alone.
  const std::string rows = file("rows.jsonl", "{\"input\": \"a\"}\n");
  const std::vector<std::string> switched = {
      "--model", "/no/such/model", "--data", rows, "--data.apply_chat_template", "true"};
  for (std::vector<std::string> words :
       {std::vector<std::string>{"eval", "--rule", "regex", "--pattern", "x"},
        std::vector<std::string>{"generate", "--out", "y.jsonl", "--json", "no"}}) {
    words.insert(words.end(), switched.begin(), switched.end());
    const Refused outcome = troupe(words);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_NE(outcome.errors.find("/no/such/model"), std::string::npos) << outcome.errors;
    EXPECT_EQ(outcome.errors.find("unknown argument"), std::string::npos) << outcome.errors;
  }
}

TEST_F(CommandLine, ValidateLooksAtFiles) {
  const std::string prompts = file("p.jsonl", "{\"input\": \"a\", \"answer\": \"b\"}\n");
  std::vector<std::string> words = train("/no/such/model", "/no/such/rows.jsonl");
  words.erase(words.begin(), words.begin() + 2);
  words.insert(words.begin(), {"config", "validate"});
  words.insert(words.end(), {"--eval.dataset", prompts + ",/no/held.jsonl"});
  expect(words, 2,
         {"error: actor.model_name_or_path: no model folder at /no/such/model",
          "error: data.prompt_dataset: dataset /no/such/rows.jsonl: no such file",
          "error: eval.dataset: dataset /no/held.jsonl: no such file"});

  // A folder that is a model but for one file, then whole.
  const ScratchFolder folder;
  const std::string model = make_tiny_model(folder, tiny_llama());
  write_byte_tokenizer(model);
  words = train(model, prompts);
  words.erase(words.begin(), words.begin() + 2);
  words.insert(words.begin(), {"config", "validate"});
  EXPECT_EQ(troupe(words).status, 0) << troupe(words).errors;
  std::filesystem::resize_file(model + "/model.safetensors", 1000);
  expect(words, 4, {"error: actor.model_name_or_path: ", "model.safetensors"});
  std::filesystem::remove(model + "/model.safetensors");
  expect(words, 2, {"error: actor.model_name_or_path: no model.safetensors"});
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "run")) << "nothing is made";
}

TEST_F(CommandLine, FullStandardOutputIsAnError) {
  const char* folder = std::getenv("TROUPE_BUILD_DIR");
  const std::string program = std::string(folder != nullptr ? folder : "build") + "/troupe";
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "needs /dev/full";
  const int status =
      std::system((shell_word(program) + " config show >/dev/full 2>/dev/null").c_str());
  EXPECT_EQ(WEXITSTATUS(status), 3);
}

TEST_F(CommandLine, HelpAndVersionSucceed) {
  EXPECT_EQ(troupe({"--help"}).status, 0);
  EXPECT_EQ(troupe({"version"}).status, 0);
  EXPECT_EQ(troupe({"doctor"}).status, 0);
  EXPECT_EQ(troupe({"config", "show"}).status, 0);
}

}  // namespace
}  // namespace troupe::test

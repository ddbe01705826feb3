// What cannot work is refused before it starts, all of it at once, and what fails while it runs
// keeps its cause to the last line. Words of others are never hints, and make no lines that look
// like ours.
#include "processes.hpp"
#include "runtime/core/shell_word.hpp"
#include "serve_support.hpp"

namespace troupe::test {
namespace {

std::size_t lines_beginning(const std::string& text, const std::string& word) {
  std::size_t count = text.starts_with(word) ? 1 : 0;
  for (auto at = text.find("\n" + word); at != text.npos; at = text.find("\n" + word, at + 1))
    ++count;
  return count;
}

// From the last line that begins with `error: `.
std::string last_error(const std::string& text) {
  const auto at = text.rfind("error: ");
  return at == text.npos ? "" : text.substr(at);
}

class RefusedBefore : public ::testing::Test {
 protected:
  RefusedBefore() {
    std::ofstream rows(files_ / "asked.jsonl");
    for (int i = 0; i < 8; ++i)
      rows << nlohmann::json(
                  {{"prompt", "say\nIs this it; do it " + std::to_string(i)}, {"answer", "a"}})
           << '\n';
    write("bare.yaml",
          "rollout: {batch_size: 2, n_samples_per_prompt: 4, max_new_tokens: 6}\n"
          "data: {input_key: prompt, label_key: answer, prompt_max_len: 64}\n"
          "train: {max_steps: 1, threads: 1}\n");
  }
  std::string path(const std::string& name) const { return (files_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(files_ / name, std::ios::binary) << text;
    return path(name);
  }
  Ended ends(const std::vector<std::string>& words) {
    return troupe_ends(words, files_ / "log.txt", 100);
  }
  // `config validate`, `plan` or `train ppo` of the tiny run.
  std::vector<std::string> command(const std::vector<std::string>& first,
                                   const std::vector<std::string>& more) {
    auto words = files_.words("run");
    words.erase(words.begin(), words.begin() + 2);
    return first + words + more;
  }
  // The same without a reward.
  std::vector<std::string> bare(const std::vector<std::string>& first,
                                const std::vector<std::string>& more) {
    auto words = command(first, more);
    words[first.size()] = path("bare.yaml");
    return words;
  }
  // A run of episodes on the prompts of two lines; it fails in its first update.
  Ended episodes(const std::vector<std::string>& more) {
    return ends(
        bare({"train", "ppo"},
             std::vector<std::string>{"--data.prompt_dataset", path("asked.jsonl")} + more));
  }

  TinyRun files_;
};

const std::vector<std::string> kTrain = {"train", "ppo"}, kValidate = {"config", "validate"},
                               kPlan = {"plan"};

void expect_all(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in:\n" << text;
}

}  // namespace

TEST_F(RefusedBefore, ACacheThatHoldsNoLongestSample) {
  for (const auto& first : {kPlan, kValidate, kTrain}) {
    const Ended ended = ends(command(first, {"--rollout.kv_cache_gb", "0.00001"}));
    EXPECT_EQ(ended.status, 2) << first.back() << ": " << ended.text;
    expect_all(ended.text,
               {"--rollout.kv_cache_gb 1e-05 (10737 bytes) cannot hold the longest sample",
                "bytes for keys and values", "\n  hint: give --rollout.kv_cache_gb "});
  }
  // What the hint names is enough, and one millionth less is not asked for.
  const Ended refused = ends(command(kValidate, {"--rollout.kv_cache_gb", "0.00001"}));
  const auto at = refused.text.find("hint: give --rollout.kv_cache_gb ");
  ASSERT_NE(at, std::string::npos);
  const std::string enough =
      refused.text.substr(at + 33, refused.text.find(' ', at + 33) - at - 33);
  EXPECT_EQ(ends(command(kValidate, {"--rollout.kv_cache_gb", enough})).status, 0) << enough;
  const Ended plan = ends(command(kPlan, {"--rollout.kv_cache_gb", "0.001"}));
  EXPECT_EQ(plan.status, 0) << plan.text;
  expect_all(plan.text, {"keys and values of an engine hold ", " of the longest at once"});
}

TEST_F(RefusedBefore, AServerPromisesNoLongerContextThanItsCacheHolds) {
  const std::vector<std::string> small = {"serve",  "--model", files_.model(),
                                          "--port", "0",       "--kv-cache-memory-bytes"};
  const Ended ended = ends(small + std::vector<std::string>{"20000", "--max-model-len", "128"});
  EXPECT_EQ(ended.status, 2) << ended.text;
  expect_all(ended.text,
             {"--max-model-len 128: --kv-cache-memory-bytes 20000 holds", "hint: give at least "});
}

TEST_F(RefusedBefore, GenerateNamesTheFlagOfItsCache) {
  const Ended ended = ends({"generate", "--model", files_.model(), "--prompt",
                            "1+1=", "--max-new-tokens", "100", "--kv-cache-memory-bytes", "16384"});
  EXPECT_EQ(ended.status, 3) << ended.text;
  expect_all(ended.text, {"blocks of 16 tokens for keys and values, and there are 2",
                          "hint: raise rollout.kv_cache_gb (--kv-cache-memory-bytes)"});
}

// Ten blocks of 8,192 bytes hold the keys of 159 positions; the token behind them has none.
TEST_F(RefusedBefore, TheLongestContextOfAServerIsTrue) {
  Served served({"--kv-cache-memory-bytes", "81920"}, [](const ScratchFolder& folder) {
    const std::string model = make_tiny_model(folder);
    write_byte_tokenizer(model);
    return model;
  });
  EXPECT_EQ(served.call("GET", "/v1/models").json()["data"][0]["max_model_len"], 160);
  expect_all(served.program().text(), {"warning: max_model_len is 160 in place of the model's 256",
                                       "--kv-cache-memory-bytes 81920 holds"});
  const auto ask = [&](std::size_t prompt, int more) {
    return served
        .post("/v1/completions", {{"model", "tiny"},
                                  {"prompt", std::vector<int>(prompt, 40)},
                                  {"max_tokens", more},
                                  {"ignore_eos", true}})
        .status;
  };
  EXPECT_EQ(ask(150, 10), 200);
  EXPECT_EQ(ask(10, 150), 200);
  EXPECT_EQ(ask(150, 11), 400);
}

TEST_F(RefusedBefore, ColumnsThatARewardTakes) {
  const std::string file = write("f.py", "def f(completions, tests, level=1):\n    return [0.0]\n");
  for (const auto& first : {kValidate, kTrain}) {
    const Ended ended = ends(bare(first, {"--reward.python", file}));
    EXPECT_EQ(ended.status, 2) << ended.text;
    expect_all(ended.text, {"takes 'tests', and data.prompt_dataset has no column 'tests'",
                            "hint: there are: answer, prompt"});
    EXPECT_EQ(ended.text.find("'level'"), std::string::npos) << ended.text;
  }
}

// The commands that score rows ask for the same, before a model is loaded or a row is scored.
TEST_F(RefusedBefore, ColumnsThatARewardTakesWhereRowsAreScored) {
  const std::string file =
      write("f.py",
            "def f(completions, tests, level=1):\n    open(__file__ + '.called', 'w')\n"
            "    return [float(t) for t in tests]\n");
  const auto rows = [](const std::string& more) {
    return "{\"prompt\": \"1+1=\", \"response\": \"2\", \"chosen\": \"2\", \"rejected\": \"3\"" +
           more + "}\n";
  };
  const std::string bad = write("bad.jsonl", rows("")),
                    good = write("good.jsonl", rows(", \"tests\": 4"));
  using Line = std::vector<std::string>;
  const std::vector<Line> commands = {
      {"score", "--out", path("scored.jsonl")},
      {"eval", "--out", path("judged.jsonl")},
      {"eval", "--model", files_.model(), "--n", "1", "--max-new-tokens", "4"},
      {"eval", "--compare", files_.model(), files_.model(), "--max-new-tokens", "4"}};
  for (const Line& command : commands) {
    SCOPED_TRACE(command[1] + " " + command[2]);
    const Ended ended = ends(command + Line{"--python", file, "--data", bad});
    EXPECT_EQ(ended.status, 2) << ended.text;
    expect_all(ended.text, {"--python: the function of " + file +
                                " takes 'tests', and --data has no column 'tests'",
                            "hint: there are: prompt, response, chosen, rejected"});
    EXPECT_FALSE(std::filesystem::exists(file + ".called"));
  }
  EXPECT_FALSE(std::filesystem::exists(path("scored.jsonl.part")));
  const Ended well = ends(commands[0] + Line{"--python", file, "--data", good});
  EXPECT_EQ(well.status, 0) << well.text;
}

TEST_F(RefusedBefore, AllMistakesOfTheInputsAtOnce) {
  const Ended ended =
      ends(command(kTrain, {"--rollout.max_new_tokens", "100000", "--data.input_key", "question",
                            "--reward.formula", "nothing + 1"}));
  EXPECT_EQ(ended.status, 2) << ended.text;
  expect_all(ended.text,
             {"together exceed the model's context", "no column 'question'", "reward.formula: "});
  EXPECT_EQ(lines_beginning(ended.text, "error: "), 3u) << ended.text;
}

TEST_F(RefusedBefore, DefaultsThatNothingUsesRefuseNothing) {
  EXPECT_EQ(ends(command(kValidate, {"--rollout.n_samples_per_prompt", "2", "--train.batch_size",
                                     "0", "--rollout.max_num_seqs", "3"}))
                .status,
            0);
  // The length of prompts follows the context where nobody has given it.
  write("plain.yaml",
        "rollout: {batch_size: 4, n_samples_per_prompt: 4}\n"
        "data: {input_key: prompt, label_key: answer}\nreward: {rule: exact}\n");
  const Ended fitted =
      ends({"config", "validate", path("plain.yaml"), "--actor.model_name_or_path", files_.model(),
            "--data.prompt_dataset", path("train.jsonl"), "--rollout.max_new_tokens", "16"});
  EXPECT_EQ(fitted.status, 0) << fitted.text;
}

TEST_F(RefusedBefore, TheInterpreterIsNamedAndChosen) {
  const std::vector<std::string> python = {"--reward.python"};
  const std::string lacks = write("lacks.py", "import no_such_package_here\n");
  const Ended missing = ends(
      bare(kTrain, python + std::vector<std::string>{lacks, "--cluster.transport", "loopback"}));
  EXPECT_EQ(missing.status, 2) << missing.text;
  expect_all(missing.text, {"does not load (read by /", ", Python 3.",
                            "ModuleNotFoundError: No module named 'no_such_package_here'",
                            "hint: install it there, or name another Python by PATH or "
                            "--reward.interpreter"});
  const std::string well = write(
      "well.py", "def reward_func(queries, prompts, labels):\n    return [0.5] * len(queries)\n");
  const Ended none = ends(bare(
      kTrain, python + std::vector<std::string>{well, "--reward.interpreter", "/nowhere/python",
                                                "--cluster.transport", "loopback"}));
  EXPECT_EQ(none.status, 2) << none.text;
  expect_all(none.text, {"there is no Python '/nowhere/python'", "--reward.interpreter"});
  write("own_python", "#!/bin/sh\necho used >> '" + path("used") + "'\nexec python3 \"$@\"\n");
  std::filesystem::permissions(path("own_python"), std::filesystem::perms::owner_all);
  const Ended chosen = ends(bare(
      kTrain, python + std::vector<std::string>{well, "--reward.interpreter", path("own_python"),
                                                "--cluster.transport", "loopback"}));
  EXPECT_EQ(chosen.status, 0) << chosen.text;
  EXPECT_TRUE(std::filesystem::exists(path("used")));
}

TEST_F(RefusedBefore, AnEnvironmentsExceptionIsInTheLastLine) {
  const std::string file = write(
      "env.py",
      "class Environment:\n"
      "    def reset(self, row):\n        return {'text': 'go'}\n"
      "    def step(self, message):\n"
      "        raise RuntimeError('stock file missing; run make stock\\nerror: forged line')\n");
  const Ended ended = episodes({"--env.python", file});
  EXPECT_EQ(ended.status, 4) << ended.text;
  const std::string last = last_error(ended.text);
  expect_all(last, {"groups in a row failed", "RuntimeError: stock file missing; run make stock"});
  expect_all(ended.text,
             {"\n  | RuntimeError: stock file missing; run make stock\n  | error: forged line"});
  EXPECT_EQ(lines_beginning(ended.text, "error: "), 1u) << ended.text;
  EXPECT_EQ(ended.text.find("hint: run make stock"), std::string::npos) << ended.text;
  EXPECT_EQ(last.find("raised: Is"), std::string::npos) << ended.text;  // words of the prompt
}

TEST_F(RefusedBefore, AnAgentsExceptionIsInTheLastLine) {
  write("agent.py", "import no_such_package_here\n");
  const Ended ended = episodes({"--env.command", "python3 " + core::shell_word(path("agent.py")),
                                "--env.confined", "false"});
  EXPECT_EQ(ended.status, 4) << ended.text;
  expect_all(last_error(ended.text),
             {"groups in a row failed", "ended with status 1 (run by /",
              "ModuleNotFoundError: No module named 'no_such_package_here'"});
}

TEST_F(RefusedBefore, ASumOfRewardsThatIsNoNumberNamesTheReward) {
  const std::string file = write("env.py",
                                 "class Environment:\n"
                                 "    def reset(self, row):\n        return {'text': 'go'}\n"
                                 "    def step(self, message):\n"
                                 "        return {'text': 'on', 'reward': 1.7e308}\n");
  const Ended ended = episodes({"--env.python", file});
  EXPECT_EQ(ended.status, 4) << ended.text;
  expect_all(last_error(ended.text), {"ValueError: `reward` is 1.7e+308"});
}

TEST_F(RefusedBefore, WordsThatSayWhatToDo) {
  const std::string broken = write("b.yaml", "train:\n  seed: 1\n actor: 2\n");
  expect_all(ends({"config", "validate", broken}).text,
             {"end of map not found", "hint: this line is indented"});
  expect_all(ends(command(kValidate, {"--train.batch_size", "7"})).text,
             {"7 does not divide the 16 samples", "hint: give 1, 2, 4, 8 or 16"});
  const Ended help = ends({"train", "ppo", "--help", "nosuch"});
  EXPECT_EQ(help.status, 2) << help.text;
  expect_all(help.text, {"has no group 'nosuch'"});
  const std::string none = write(
      "none.py", "def reward_func(queries, prompts, labels):\n    return [None] * len(queries)\n");
  const Ended scored = ends(bare(kTrain, {"--reward.python", none}));
  expect_all(scored.text, {"returned None, which is not a finite number"});
  const Ended plan = ends(command(kPlan, {"--cluster", "8xH100-80"}));
  EXPECT_EQ(plan.status, 0) << plan.text;
  expect_all(plan.text, {"devices are idle; --engines "});
}

}  // namespace troupe::test

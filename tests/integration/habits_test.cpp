// What a command line is used to: completion in real shells, `init` to the first update, files of
// other trainers, a line that shows how far a run is.
#include "processes.hpp"
#include "supervised_support.hpp"
#include "terminal.hpp"

#include <cstdlib>

namespace troupe::test {
namespace {

std::string program_folder() {
  return std::filesystem::path(troupe_program()).parent_path().string();
}

// A script that begins where completion is set up; what it prints.
std::string in_bash(const ScratchFolder& folder, const std::string& script) {
  std::ofstream(folder / "complete.sh") << script;
  const std::vector<std::string> words = {"bash", "--norc", (folder / "complete.sh").string()};
  Background bash(words, folder / "out");
  EXPECT_EQ(bash.wait(60), 0) << bash.text();
  return bash.text();
}

// Completes the words in bash; the last one is being written. What bash would offer, sorted.
std::string offered(const std::vector<std::string>& words, const std::string& at = ".") {
  const ScratchFolder folder;
  std::string script = "cd " + shell_word(at) + "\nsource <(" + shell_word(troupe_program()) +
                       " completion bash)\nCOMP_WORDS=(" + shell_word(troupe_program());
  for (const std::string& word : words)
    script += " " + shell_word(word);
  script += ")\nCOMP_CWORD=" + std::to_string(words.size()) +
            "\ncomplete -p troupe >/dev/null\n_troupe\nprintf '%s\\n' \"${COMPREPLY[@]}\" | sort\n";
  std::string text = in_bash(folder, script);
  std::ranges::replace(text, '\n', ' ');
  return text;
}

Ended ended(const std::vector<std::string>& words) {
  const ScratchFolder folder;
  return troupe_ends(words, folder / "out", 120);
}

}  // namespace

TEST(Completion, BashOffersCommandsMethodsKeysAndTheirWords) {
  EXPECT_EQ(offered({"tr"}), "trace train ");
  EXPECT_EQ(offered({"train", "dp"}), "dpo ");
  EXPECT_EQ(offered({"train", "dpo", "--dpo.b"}), "--dpo.beta ");
  EXPECT_EQ(offered({"train", "sft", "--dpo.b"}), " ") << "a key that sft does not read";
  EXPECT_EQ(offered({"train", "ppo", "--algo.advantage.estimator", "r"}),
            "reinforce reinforce_baseline rloo ");
  EXPECT_EQ(offered({"train", "ppo", "--algo.advantage.estimator", "=", "rl"}), "rloo ");
  EXPECT_EQ(offered({"train", "ppo", "--help", "roll"}), "rollout ");
  EXPECT_EQ(offered({"config", "from-"}), "from-openrlhf from-trl from-verl ");
  EXPECT_EQ(offered({"generate", "--max-new"}), "--max-new-tokens ");
  EXPECT_EQ(offered({"completion", ""}), "bash zsh ");
  const std::string node = offered({"node", "drain", "--"});
  EXPECT_NE(node.find("--join "), node.npos) << node;
}

TEST(Completion, BashOffersFilesWhereOneMayStand) {
  const ScratchFolder folder;
  std::ofstream(folder / "my run.yaml") << "method: sft\n";
  std::filesystem::create_directory(folder / "models");
  const std::string at = (folder / "").string();
  EXPECT_EQ(offered({"train", "sft", "my"}, at), "my run.yaml ");
  EXPECT_EQ(offered({"generate", "--model", "mo"}, at), "models ");
  EXPECT_EQ(offered({"train", "ppo", "--run.path", "mo"}, at), "models ");
  EXPECT_EQ(offered({"train", "ppo", "--algo.advantage.estimator", "mo"}, at), " ");
}

TEST(Completion, ZshCompletesTheLine) {
  if (std::system("command -v zsh >/dev/null") != 0) GTEST_SKIP() << "zsh is not installed";
  const ScratchFolder folder;
  const std::string path = program_folder() + ":" + std::getenv("PATH");
  Terminal zsh({"zsh", "-f", "-i"},
               {{"PATH", path}, {"TERM", "xterm"}, {"HOME", (folder / "").string()}, {"PS1", "% "}},
               120);
  zsh.type(
      "autoload -Uz compinit && compinit -u -D && source <(troupe completion zsh) && echo se''t\n");
  ASSERT_TRUE(zsh.shows("set\r\n")) << zsh.screen();
  std::size_t at = zsh.screen().size();
  zsh.type("echo troupe; troupe completion b\t");
  ASSERT_TRUE(zsh.shows("ash", at)) << zsh.screen().substr(at);  // a bell may stand before it
  zsh.type("\n");
  ASSERT_TRUE(zsh.shows("complete -F _troupe troupe", at)) << zsh.screen().substr(at);
  at = zsh.screen().size();
  zsh.type("troupe train simpo --simpo.gam\t");
  ASSERT_TRUE(zsh.shows("ma", at)) << zsh.screen().substr(at);
}

TEST(Init, RecipesOfSupervisedMethodsPassTheirChecksAndTrain) {
  const TinySupervised tiny;
  for (const auto& [method, rows] : std::vector<std::pair<std::string, std::string>>{
           {"sft", "answers.jsonl"}, {"dpo", "pairs.jsonl"}, {"rm", "pairs.jsonl"}}) {
    const std::string recipe = tiny.file(method + ".yaml");
    const Ended made = ended({"init", method, "--data", tiny.file(rows), "--model", tiny.model(),
                              "--out", recipe, "--run.path", tiny.file("run_" + method)});
    ASSERT_EQ(made.status, 0) << made.text;
    EXPECT_EQ(made.text, recipe + " is written; check it, then train:\n  troupe config validate " +
                             recipe + "\n  troupe train " + method + " " + recipe + "\n");
    const Ended valid = ended({"config", "validate", recipe});
    EXPECT_EQ(valid.status, 0) << valid.text << text_of(recipe);
    EXPECT_NE(valid.text.find("valid for `troupe train " + method + "`"), std::string::npos);
    const Ended plan = ended({"plan", recipe});
    EXPECT_EQ(plan.status, 0) << plan.text << text_of(recipe);
    const Ended trained = ended({"train", method, recipe, "--train.max_steps", "2"});
    EXPECT_EQ(trained.status, 0) << trained.text << text_of(recipe);
    EXPECT_EQ(steps_in(tiny.file("run_" + method)), 2u);
  }
  const std::string text = text_of(tiny.file("sft.yaml"));
  EXPECT_NE(text.find("# 12 rows: a prompt in 'input' and its answer in 'output'"), text.npos)
      << text;
  EXPECT_NE(text.find("\n  batch_size: 2  # rows of an optimiser step"), text.npos) << text;
  const std::string pairs = text_of(tiny.file("dpo.yaml"));
  EXPECT_NE(pairs.find("\n  prompt_key: \"input\"  # the column of the prompt"), pairs.npos)
      << pairs;
}

// Rows of messages are as long as the template makes them, with the tools that it shows.
TEST(Init, LengthsAreThoseOfRenderedRows) {
  const TinySupervised tiny;
  std::ofstream(std::filesystem::path(tiny.model()) / "chat_template.jinja")
      << "{% for t in tools or [] %}{% for n in range(8) %}{{ t.function.name }}{% endfor %}{% "
         "endfor %}"
         "{% for m in messages %}{{ m.content }}{% endfor %}";
  const std::string name(40, 't'), rows = tiny.file("tools.jsonl"),
                                   recipe = tiny.file("tools.yaml");
  std::ofstream(rows) << R"({"messages": [{"role": "user", "content": "12"}, {"role": "assistant",)"
                      << R"( "content": "34"}], "tools": [{"type": "function", "function":)"
                      << R"( {"name": ")" << name << "\"}}]}\n";
  const Ended made =
      ended({"init", "sft", "--data", rows, "--model", tiny.model(), "--out", recipe});
  ASSERT_EQ(made.status, 0) << made.text;
  const Ended checked = ended(
      {"data", "check", "sft", "--data.dataset", rows, "--actor.model_name_or_path", tiny.model()});
  EXPECT_EQ(checked.status, 0) << checked.text;
  const std::string text = text_of(recipe);
  const auto at = text.find("was looked at has ");
  ASSERT_NE(at, text.npos) << text;
  EXPECT_GE(std::stoi(text.substr(at + 18)), 8 * 40 + 4) << text << checked.text;
}

TEST(Init, RecipesOfReinforcementLearningPassTheirChecksAndTrain) {
  const TinyRun tiny;
  for (const std::string word : {"ppo", "grpo"}) {
    const std::string recipe = (tiny / (word + ".yaml")).string();
    const Ended made =
        ended({"init", word, "--data", (tiny / "train.jsonl").string(), "--model", tiny.model(),
               "--out", recipe, "--run.path", (tiny / ("run_" + word)).string()});
    ASSERT_EQ(made.status, 0) << made.text;
    const Ended valid = ended({"config", "validate", recipe});
    EXPECT_EQ(valid.status, 0) << valid.text << text_of(recipe);
    EXPECT_EQ(ended({"plan", recipe}).status, 0) << text_of(recipe);
    const Ended trained =
        ended({"train", "ppo", recipe, "--train.max_steps", "1", "--rollout.max_new_tokens", "4",
               "--rollout.n_samples_per_prompt", "2"});
    EXPECT_EQ(trained.status, 0) << trained.text << text_of(recipe);
  }
  const std::string text = text_of(tiny / "grpo.yaml");
  EXPECT_NE(text.find("estimator: \"group_norm\"  # this makes it grpo"), text.npos) << text;
  EXPECT_NE(text.find("label_key: \"answer\"  # the expected answer"), text.npos) << text;
  EXPECT_NE(text.find("rule: \"exact\""), text.npos) << text;
}

TEST(ConfigFrom, AFileOfAnotherTrainerPassesTheCheckOfKeys) {
  const TinySupervised tiny;
  std::ofstream(tiny.file("run.sh"))
      << "trl sft \\\n  --model_name_or_path " << tiny.model() << " \\\n  --dataset_name "
      << tiny.file("answers.jsonl")
      << " \\\n  --learning_rate 1e-4 --per_device_train_batch_size 4 --packing "
         "--gradient_accumulation_steps 1 \\\n  --eval_strategy no --hub_token x --output_dir "
      << tiny.file("out") << "\n";
  const std::string recipe = tiny.file("from.yaml");
  const Ended made = ended({"config", "from-trl", tiny.file("run.sh"), "--out", recipe});
  ASSERT_EQ(made.status, 0) << made.text;
  EXPECT_NE(made.text.find("note: 5 keys; 2 settings ask for what is so anyway, 1 have"),
            std::string::npos)
      << made.text << text_of(recipe);
  const Ended valid = ended({"config", "validate", recipe});
  EXPECT_EQ(valid.status, 0) << valid.text << text_of(recipe);
  const Ended again = ended({"config", "from-trl", tiny.file("run.sh"), "--out", recipe});
  EXPECT_EQ(again.status, 2) << "nothing is overwritten";
  EXPECT_NE(again.text.find("is there already"), std::string::npos) << again.text;
}

namespace {

// What stands between the beginning of each drawing of the live line and its end, without colours.
std::vector<std::string> drawings(const std::string& screen) {
  const std::string begin = "\r\x1b[?7l", end = "\x1b[K";
  std::vector<std::string> out;
  for (auto at = screen.find(begin); at != screen.npos; at = screen.find(begin, at + 1)) {
    const auto stop = screen.find(end, at);
    if (stop == screen.npos) break;
    std::string line = screen.substr(at + begin.size(), stop - at - begin.size());
    for (const std::string colour : {"\x1b[2m", "\x1b[0m"}) {
      if (const auto there = line.find(colour); there != line.npos)
        line.erase(there, colour.size());
    }
    out.push_back(line);
  }
  return out;
}

std::vector<std::string> with_program(std::vector<std::string> words) {
  words.insert(words.begin(), troupe_program());
  return words;
}

}  // namespace

TEST(LiveLine, ARunShowsOneLineOnATerminal) {
  const TinyRun tiny;
  const auto words = with_program(tiny.words("run"));
  Terminal run(words, {{"TERM", "xterm"}, {"NO_COLOR", ""}}, 120);
  EXPECT_EQ(run.ends(), 0) << run.screen();
  const auto lines = drawings(run.screen());
  ASSERT_GE(lines.size(), 10u) << run.screen();
  for (const std::string& line : lines) {
    EXPECT_LE(line.size(), 119u) << line;
    EXPECT_TRUE(line.starts_with("step ")) << line;
  }
  const std::string& last = lines.back();
  EXPECT_TRUE(last.starts_with("step 10/10  [########################]  reward ")) << last;
  EXPECT_NE(last.find(" tokens/s"), last.npos) << last;
  const auto middle = std::ranges::find_if(
      lines, [](const std::string& line) { return line.starts_with("step 5/10"); });
  ASSERT_NE(middle, lines.end());
  EXPECT_NE(middle->find(" left"), middle->npos) << *middle;
  EXPECT_NE(run.screen().find("\x1b[2m"), std::string::npos) << "what goes on is dim";
  EXPECT_EQ(run.count("step=1/10"), 0u) << "no plain lines";
}

TEST(LiveLine, NoColourAndNoTerminalThatCanGoBack) {
  const TinyRun tiny;
  Terminal grey(with_program(tiny.words("grey")), {{"TERM", "xterm"}, {"NO_COLOR", "1"}}, 120);
  EXPECT_EQ(grey.ends(), 0) << grey.screen();
  EXPECT_GE(drawings(grey.screen()).size(), 10u);
  EXPECT_EQ(grey.count("\x1b[2m"), 0u) << grey.screen();
  Terminal dumb(with_program(tiny.words("dumb")), {{"TERM", "dumb"}}, 120);
  EXPECT_EQ(dumb.ends(), 0) << dumb.screen();
  EXPECT_EQ(dumb.count("\x1b"), 0u) << dumb.screen();
  EXPECT_EQ(dumb.count("step=10/10 reward="), 1u) << dumb.screen();
  Terminal plain(with_program(with(tiny.words("plain"), {"--log.format", "plain"})),
                 {{"TERM", "xterm"}}, 120);
  EXPECT_EQ(plain.ends(), 0) << plain.screen();
  EXPECT_EQ(plain.count("\x1b"), 0u) << plain.screen();
}

TEST(LiveLine, FollowsTheWidthOfTheWindow) {
  const TinyRun tiny;
  const auto words = with_program(
      with(tiny.words("run"), {"--train.max_steps", "100000", "--train.num_episodes", "1000000"}));
  Terminal run(words, {{"TERM", "xterm"}}, 120);
  ASSERT_TRUE(run.shows("step 2/100000")) << run.screen();
  const std::size_t wide = drawings(run.screen()).back().size();
  EXPECT_GT(wide, 39u);
  run.resize(40);
  const auto narrow = [&] {
    const auto lines = drawings(run.screen());
    return lines.back().size() <= 39;
  };
  std::size_t seen = run.screen().size();
  for (int looks = 0; looks < 10'000 && !narrow(); ++looks) {
    ASSERT_TRUE(run.shows_more_than(seen)) << run.screen();
    seen = run.screen().size();
  }
  EXPECT_TRUE(narrow()) << drawings(run.screen()).back();
  EXPECT_TRUE(drawings(run.screen()).back().starts_with("step ")) << drawings(run.screen()).back();
  run.type("\x03");
  run.type("\x03");
  EXPECT_TRUE(run.ends().has_value());
}

}  // namespace troupe::test

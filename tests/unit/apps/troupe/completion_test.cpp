// What may stand at the end of a command line, and bad command lines of the habits.
#include "apps/session/roles/run_settings.hpp"
#include "apps/troupe/commands.hpp"
#include "apps/troupe/completion/candidates.hpp"
#include "runtime/config/method.hpp"
#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>

namespace troupe::app {
namespace {

Candidates at(std::vector<std::string> words) {
  return candidates_for(words);
}

TEST(Candidates, EveryCommandIsOfferedAndShowsFlagsOrWords) {
  const Candidates all = at({""});
  EXPECT_EQ(all.words.size(), command_names().size());
  for (const std::string& command : all.words) {
    if (command == "bench" || command == "version" || command == "completion") continue;
    testing::internal::CaptureStdout();
    const Candidates words = at({command, ""}), flags = at({command, "--"});
    const std::string printed = testing::internal::GetCapturedStdout();
    EXPECT_EQ(printed, "") << command << " prints while its flags are collected";
    EXPECT_TRUE(words.files || !words.words.empty()) << command;
    EXPECT_NE(std::ranges::count(flags.words, "--help"), 0) << command;
  }
}

TEST(Candidates, ACommandWithItsOwnFlagsHasThem) {
  for (const auto& [command, flag] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"generate"}, "--prompt"},
           {{"chat"}, "--model"},
           {{"attach", "reward"}, "--join"},
           {{"attach", "environment"}, "--join"},
           {{"re-weight", "reward"}, "--weight"},
           {{"node"}, "--join"},
           {{"node", "drain"}, "--join"},
           {{"ca", "init"}, "--out"},
           {{"plan"}, "--cluster"},
           {{"plan"}, "--actor.adam.lr"},
           {{"config", "validate"}, "--actor.adam.lr"},
           {{"config", "from-verl"}, "--method"},
           {{"data", "check"}, "--rows"},
           {{"data", "check"}, "--data"},
           {{"data", "preview", "sft"}, "--data.max_len"},
           {{"init", "sft"}, "--data"},
           {{"init", "sft"}, "--data.max_len"},
           {{"train", "sft"}, "--help-all"}}) {
    std::vector<std::string> words = command;
    words.push_back(flag);
    EXPECT_EQ(std::ranges::count(at(words).words, flag), 1) << command.back() << " " << flag;
  }
}

TEST(Candidates, KeysAreThoseOfTheMethod) {
  for (const config::MethodRow& method : config::kMethodRows) {
    const Candidates keys = at({"train", std::string(method.name), "--"});
    const std::set<std::string> offered(keys.words.begin(), keys.words.end());
    EXPECT_EQ(offered.size(), keys.words.size()) << "none twice";
    for (const config::Row& row : session::run_table().rows()) {
      if (row.name == "method") continue;
      EXPECT_EQ(offered.contains("--" + row.name), row.is_read_by(method.bit))
          << method.name << " " << row.name;
    }
  }
}

TEST(Candidates, ValuesAreWordsOrFiles) {
  EXPECT_EQ(at({"train", "ppo", "--algo.objective", "gs"}).words, std::vector<std::string>{"gspo"});
  EXPECT_FALSE(at({"train", "ppo", "--algo.objective", "gs"}).files);
  EXPECT_TRUE(at({"train", "ppo", "--run.path", ""}).files);
  EXPECT_TRUE(at({"train", "ppo", "--data.apply_chat_template", ""}).files)
      << "a switch needs no value";
  EXPECT_EQ(at({"config", "show", "--method", "or"}).words, std::vector<std::string>{"orpo"});
  EXPECT_EQ(at({"train", "ppo", "--log.format", "="}).words,
            (std::vector<std::string>{"auto", "plain", "json"}));
  EXPECT_TRUE(at({"nosuch", "x"}).files);
  EXPECT_TRUE(at({}).words.empty());
}

std::string refusal(const std::vector<std::string>& words) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const auto done = run_command(words);
  testing::internal::GetCapturedStdout();
  testing::internal::GetCapturedStderr();
  return done ? "accepted" : done.error().message;
}

class Habits : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  void starts(const std::vector<std::string>& words, const std::string& with) {
    const std::string said = refusal(words);
    EXPECT_TRUE(said.starts_with(with)) << said;
  }
  void has(const std::vector<std::string>& words, const std::string& part) {
    const std::string said = refusal(words);
    EXPECT_NE(said.find(part), said.npos) << said;
  }
  test::TempFolder folder_;
};

TEST_F(Habits, BadCommandLinesAreNamed) {
  const std::string rows = file("rows.jsonl", "{\"a\": 1, \"b\": \"x\"}\n");
  const std::string there = file("there.yaml", "method: sft\n");
  const std::string script = file("run.sh", "trl sft --learning_rate 1e-5\n");
  starts({"completion", "fish"}, "there is no completion for 'fish'; choose bash or zsh");
  starts({"completion", "bash", "x"}, "troupe completion: one shell is expected");
  starts({"train", "--help-all"}, "train --help-all: of which method?");
  starts({"train", "sft", "--help", "rollout"}, "train sft has no group 'rollout' of keys");
  starts({"config", "from-axolotl", script}, "there is no trainer 'axolotl' to read from");
  starts({"config", "from-trl"}, "troupe config from-trl: one FILE is expected, none was given");
  starts({"config", "from-trl", script, script}, "troupe config from-trl: one FILE is expected, 2");
  starts({"config", "from-trl", script, "--method", "grop"}, "--method: there is no method 'grop'");
  starts({"config", "from-trl", script, "--outt", "x"},
         "troupe config from-trl: unknown argument '--outt'; did you mean --out?");
  starts({"config", "from-trl", script, "--out", there}, "--out: " + there + " is there already");
  starts({"config", "from-trl", script, "--out", "/nosuch/a.yaml"},
         "--out: cannot write /nosuch/a.yaml: No such file or directory");
  starts({"init", "gpro"},
         "there is no method 'gpro' to begin with; did you mean `troupe init grpo`");
  starts({"init", "sft", "--out", there}, "--out: " + there + " is there already");
  starts({"init", "sft", "--dat", rows}, "the command line: unknown key 'dat'");
  starts({"init", "sft", "--data"}, "troupe init METHOD: --data");
  starts({"init", "sft", "--data.dataset", rows}, "troupe init: --data.dataset is not looked at");
  starts({"init", "sft", "--rollout.top_k", "1"}, "the command line: rollout.top_k is not read by");
  has({"init", "sft", "--data", "/nosuch.jsonl"}, "--data: ");
  has({"init", "sft", "--data", rows},
      "no column of the prompt is known by its name (there is: a, b)");
  has({"init", "dpo", "--data", rows}, "no column of the better answer is known by its name");
  has({"init", "kto", "--data", file("k.jsonl", "{\"prompt\": \"a\", \"completion\": \"b\"}\n")},
      "no column of the rating, true or false, is known by its name");
  has({"init", "sft", "--data", file("none.jsonl", "")}, "holds no rows");
  has({"init", "sft", "--data", file("bad.jsonl", "{\"input\": }\n")}, "bad.jsonl:1");
  has({"init", "sft", "--model", "/nosuch"}, "--model: ");
  has({"init", "sft", "--model", (folder_ / "").string()}, "--model: ");
}

TEST_F(Habits, InitWithoutDataOrModelSaysWhatIsNeeded) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  ASSERT_TRUE(run_command(std::vector<std::string>{"init", "rloo"}));
  const std::string page = testing::internal::GetCapturedStdout();
  const std::string notes = testing::internal::GetCapturedStderr();
  EXPECT_NE(page.find("# model_name_or_path: \"FOLDER\"  # needed"), page.npos) << page;
  EXPECT_NE(page.find("# python: \"reward.py\""), page.npos) << page;
  EXPECT_NE(page.find("estimator: \"rloo\""), page.npos) << page;
  EXPECT_NE(notes.find("note: still to do: actor.model_name_or_path"), notes.npos) << notes;
}

}  // namespace
}  // namespace troupe::app

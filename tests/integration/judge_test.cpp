// A judge that is a real HTTP process with known faults (fake_judge.py), or `troupe serve`: what
// `eval --compare`, `score`, `train ppo`, `attach` and named held-out sets make of its answers.
#include "company_support.hpp"
#include "serve_support.hpp"

#include <cstdlib>

namespace troupe::test {
namespace {

using nlohmann::json;

std::vector<json> json_lines(const std::filesystem::path& file) {
  std::vector<json> rows;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    rows.push_back(json::parse(line, nullptr, false));
  return rows;
}

class FakeJudge {
 public:
  FakeJudge(const TinyRun& files, const std::string& mode) : asked_(files / ("asked_" + mode)) {
    const char* source = std::getenv("TROUPE_SOURCE_DIR");
    const std::string script =
        std::string(source == nullptr ? "." : source) + "/tests/integration/fake_judge.py";
    program_ = Background({"/usr/bin/env", "python3", "-B", script, mode, asked_.string()},
                          files / ("judge_" + mode + ".txt"));
    within(30, [&] { return program_.says("port ") || !program_.running(); });
    const std::string text = program_.text();
    const auto at = text.find("port ");
    EXPECT_NE(at, text.npos) << text;
    if (at != text.npos)
      url = "http://127.0.0.1:" + std::to_string(std::atoi(&text[at + 5])) + "/v1";
  }
  std::vector<json> asked() const { return json_lines(asked_); }

  std::string url;

 private:
  std::filesystem::path asked_;
  Background program_;
};

class Judge : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return (files_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(files_ / name, std::ios::binary) << text;
    return path(name);
  }
  std::string pairs() {
    return write("pairs.yaml",
                 "kind: pairwise\nprompt: '{prompt}: A<<<{response_a}>>>B<<<{response_b}>>>'\n");
  }
  std::string points() {
    return write("points.yaml",
                 "kind: pointwise\nprompt: '{response}'\nrange: [0, 10]\ntries: 2\n");
  }
  // Responses to the same twelve prompts; the k-th has lengths[k % size] letters.
  std::string responses(const std::string& name, const std::vector<int>& lengths) {
    std::string lines;
    for (int i = 0; i < 12; ++i) {
      const auto length =
          static_cast<std::size_t>(lengths[static_cast<std::size_t>(i) % lengths.size()]);
      lines += json{{"prompt", "p" + std::to_string(i)},
                    {"response", std::string(length, 'x')},
                    {"datasource", i % 2 == 0 ? "even" : "odd"}}
                   .dump() +
               "\n";
    }
    return write(name, lines);
  }
  Ended run(std::vector<std::string> words) {
    return troupe_ends(std::move(words), files_ / "log.txt", 60);
  }
  void expect_error(std::vector<std::string> words, int status, const std::string& part) {
    const Ended ended = run(std::move(words));
    EXPECT_EQ(ended.status, status) << ended.text;
    EXPECT_NE(ended.text.find(part), std::string::npos) << ended.text;
  }
  std::vector<std::string> trained(const std::string& run, std::vector<std::string> more) {
    std::vector<std::string> words = files_.words(run);
    words.insert(words.end(),
                 {"--cluster.transport", "loopback", "--train.max_steps", "2", "--ckpt.save_steps",
                  "0", "--reward.rule", "", "--reward.rule_pattern", ""});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  TinyRun files_;
};

}  // namespace

// The judge loves length, and the report says so whatever the win rate looks like.
TEST_F(Judge, ALoveOfLengthIsUnmaskedAndBothOrdersAgree) {
  const FakeJudge judge(files_, "longer");
  const std::string a = responses("a.jsonl", {9, 3, 5, 8}), b = responses("b.jsonl", {4, 4, 5});
  const std::vector<std::string> how = {"--judge", judge.url, "--rubric", pairs(), "--json"};
  const auto compared = [&](const std::string& one, const std::string& other) {
    const Ended ended = run(std::vector<std::string>{"eval", "--compare", one, other} + how);
    EXPECT_EQ(ended.status, 0) << ended.text;
    return json::parse(ended.text.substr(ended.text.find("{\"a\"")), nullptr, false);
  };
  const json ab = compared(a, b), ba = compared(b, a);
  ASSERT_TRUE(ab.is_object());
  // A has 9 3 5 8 again and again, B 4 4 5: 12 pairs, by hand.
  EXPECT_EQ(ab["wins"], 8);
  EXPECT_EQ(ab["ties"], 1);
  EXPECT_EQ(ab["losses"], 3);
  EXPECT_DOUBLE_EQ(ab["win_rate"].get<double>(), 8.5 / 12);
  // Outcomes 1 x 8, 0.5, 0 x 3: a sum of squares of 8.25, less 8.5 x 8.5 / 12, / 11, / 12.
  EXPECT_DOUBLE_EQ(ab["se"].get<double>(), std::sqrt((8.25 - 8.5 * 8.5 / 12) / 11 / 12));
  EXPECT_EQ(ab["longer_wins"], 1.0) << "the longer one always wins";
  EXPECT_GT(ab["length_spearman"].get<double>(), 0.8);
  EXPECT_DOUBLE_EQ(ab["length_a"].get<double>(), 6.25);
  EXPECT_EQ(ab["length_unit"], "characters");
  EXPECT_EQ(ab["sets"]["even"]["pairs"], 6);
  EXPECT_EQ(ba["win_rate"].get<double>(), 1 - ab["win_rate"].get<double>());
  EXPECT_EQ(ba["se"], ab["se"]);
  EXPECT_EQ(ba["losses"], ab["wins"]);
  EXPECT_EQ(judge.asked().size(), 48u) << "each pair in both orders";
  const Ended table = run({"eval", "--compare", a, b, "--judge", judge.url, "--rubric", pairs()});
  EXPECT_NE(table.text.find("0.7083"), std::string::npos) << table.text;
  EXPECT_NE(table.text.find("0.2917"), std::string::npos) << table.text;
  EXPECT_NE(table.text.find("the longer response wins 1.0000 of 11 decided pairs"),
            std::string::npos)
      << table.text;
}

// The sides may be a model and a run's folder, which answer the prompts themselves.
TEST_F(Judge, AModelAndARunAreSidesOfAComparison) {
  const FakeJudge judge(files_, "longer");
  const Ended trained_run =
      run(files_.words("run") +
          std::vector<std::string>{"--cluster.transport", "loopback", "--train.max_steps", "1"});
  ASSERT_EQ(trained_run.status, 0) << trained_run.text;
  const auto compared = [&](const std::string& one, const std::string& other) {
    const Ended ended = run({"eval", "--compare", one, other, "--data", path("train.jsonl"),
                             "--input-key", "prompt", "--max-new-tokens", "6", "--temperature", "1",
                             "--seed", "3", "--judge", judge.url, "--rubric", pairs(), "--json"});
    EXPECT_EQ(ended.status, 0) << ended.text;
    return json::parse(ended.text.substr(ended.text.find("{\"a\"")), nullptr, false);
  };
  const json same = compared(files_.model(), files_.model());
  EXPECT_EQ(same["ties"], same["pairs"]) << "the same draws of the same model";
  const json ab = compared(path("run"), files_.model()), ba = compared(files_.model(), path("run"));
  EXPECT_EQ(ab["pairs"], 24) << ab;
  EXPECT_LT(ab["ties"], ab["pairs"]) << "an update at this learning rate changes some answers";
  EXPECT_EQ(ab["wins"], ba["losses"]);
  EXPECT_EQ(ab["losses"], ba["wins"]);
}

TEST_F(Judge, OneThatNamesTheFirstAnswerGivesTies) {
  const FakeJudge judge(files_, "first");
  const Ended ended =
      run({"eval", "--compare", responses("a.jsonl", {9}), responses("b.jsonl", {1}), "--judge",
           judge.url, "--rubric", pairs(), "--json"});
  ASSERT_EQ(ended.status, 0) << ended.text;
  const json line = json::parse(ended.text.substr(ended.text.find("{\"a\"")), nullptr, false);
  EXPECT_EQ(line["ties"], 12);
  EXPECT_EQ(line["win_rate"], 0.5);
}

TEST_F(Judge, NonsenseIsLostAndNeverAZero) {
  const FakeJudge judge(files_, "nonsense");
  const Ended ended = run({"score", "--data", responses("a.jsonl", {3}), "--judge", judge.url,
                           "--rubric", points(), "--out", path("scored.jsonl")});
  EXPECT_EQ(ended.status, 4) << ended.text;
  EXPECT_NE(ended.text.find("does not parse (2 tries)"), std::string::npos) << ended.text;
  EXPECT_FALSE(std::filesystem::exists(files_ / "scored.jsonl"));
  for (const json& row : json_lines(files_ / "scored.jsonl.part"))
    EXPECT_TRUE(row["reward"].is_null()) << row;
  EXPECT_EQ(judge.asked().size(), 24u);
}

// A run that learns from the judge: its questions carry the key, which is nowhere in the run
// folder.
TEST_F(Judge, ARunLearnsFromItAndKeepsItsKeySecret) {
  const FakeJudge judge(files_, "warming");
  const std::string key = "sk-troupe-test-5f2d";
  ::setenv("TROUPE_TEST_JUDGE_KEY", key.c_str(), 1);
  const Ended ended = run(trained(
      "run", {"--reward.judge", judge.url, "--reward.judge_rubric", pairs(), "--reward.judge_model",
              "big", "--reward.judge_key", "env:TROUPE_TEST_JUDGE_KEY"}));
  ::unsetenv("TROUPE_TEST_JUDGE_KEY");
  ASSERT_EQ(ended.status, 0) << ended.text;
  EXPECT_NE(ended.text.find("reward judge is away"), std::string::npos) << "503 three times";
  EXPECT_NE(ended.text.find("reward judge is back"), std::string::npos) << ended.text;
  int updates = 0;
  for (const auto& [step, row] : metrics_of(files_ / "run")) {
    if (!row.contains("reward/mean")) continue;
    ++updates;
    EXPECT_DOUBLE_EQ(row["reward/mean"].get<double>(), 0.5) << "of pairs in a group, always";
    EXPECT_EQ(row["reward/extra/judge_contradictions"], 0.0);
    EXPECT_EQ(row["reward/missing"], 0.0);
    if (!row.contains("reward/length_spearman")) continue;
    EXPECT_GT(row["reward/length_spearman"].get<double>(), 0) << "it loves length";
  }
  EXPECT_EQ(updates, 2);
  const std::vector<json> asked = judge.asked();
  ASSERT_FALSE(asked.empty());
  EXPECT_EQ(asked.back()["auth"], "Bearer " + key);
  EXPECT_EQ(asked.back()["body"]["model"], "big");
  EXPECT_EQ(ended.text.find(key), std::string::npos);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(files_ / "run")) {
    if (!entry.is_regular_file()) continue;
    EXPECT_EQ(text_of(entry.path()).find(key), std::string::npos) << entry.path();
  }
}

// Two named sets beside eval.dataset, one with a rule and one with the judge.
TEST_F(Judge, NamedSetsHaveRewardsOfTheirOwn) {
  const FakeJudge judge(files_, "longer");
  write("more.yaml",
        "eval:\n  dataset: " + path("train.jsonl") +
            "\n  n_samples_per_prompt: 2\n  sets:\n    letters: {dataset: " + path("train.jsonl") +
            ", rule: regex, rule_pattern: '^[^A]'}\n    judged:\n      dataset: " +
            path("train.jsonl") + "\n      judge: " + judge.url +
            "\n      judge_rubric: " + points() + "\n");
  std::vector<std::string> words = files_.words("run");
  words.insert(words.begin() + 3, path("more.yaml"));
  words.insert(words.end(), {"--train.max_steps", "1", "--ckpt.save_steps", "0"});
  const Ended ended = run(words);
  ASSERT_EQ(ended.status, 0) << ended.text;
  EXPECT_EQ(ended.text.find("could not be"), std::string::npos) << ended.text;
  json last;
  for (const json& row : json_lines(files_ / "run" / "metrics.jsonl"))
    if (row.contains("eval/judged/reward")) last = row;
  ASSERT_TRUE(last.is_object());
  EXPECT_TRUE(last.contains("eval/pass@1"));
  EXPECT_TRUE(last.contains("eval/letters/pass@1"));
  EXPECT_TRUE(last.contains("alarm/reward_up_truth_down"));
  EXPECT_GT(last["eval/judged/reward"].get<double>(), 1) << "points, not the run's rule";
  std::map<std::string, int> problems;
  for (const json& row : json_lines(files_ / "run" / "eval" / "step_000001.jsonl"))
    ++problems[row.value("set", "") + "/" + row["mode"].get<std::string>()];
  EXPECT_EQ(problems, (std::map<std::string, int>{{"/greedy", 24},
                                                  {"/sampled", 24},
                                                  {"judged/greedy", 24},
                                                  {"judged/sampled", 24},
                                                  {"letters/greedy", 24},
                                                  {"letters/sampled", 24}}));
  EXPECT_NE(ended.text.find("held-out judged after 1 updates: sampled"), std::string::npos)
      << ended.text;
  EXPECT_NE(ended.text.find("held-out reward, letters, 24 problems"), std::string::npos);
}

// The judge of a set is gone: the set is left out of the evaluation, and the run goes on.
TEST_F(Judge, ASetWhoseJudgeIsAwayIsLeftOut) {
  const FakeJudge judge(files_, "error200");
  std::vector<std::string> words = files_.words("run");
  words.insert(words.end(),
               {"--cluster.transport", "loopback", "--train.max_steps", "1", "--ckpt.save_steps",
                "0", "--reward.away_s", "0.5", "--eval.n_samples_per_prompt", "2", "--eval.dataset",
                path("train.jsonl"), "--eval.sets",
                "judged: {dataset: " + path("train.jsonl") + ", judge: '" + judge.url +
                    "', judge_rubric: " + points() + "}"});
  const Ended ended = run(words);
  ASSERT_EQ(ended.status, 0) << ended.text;
  EXPECT_NE(ended.text.find("cannot be scored and is left out"), std::string::npos) << ended.text;
  EXPECT_NE(ended.text.find("status 200, but the reply is an error"), std::string::npos);
  bool found = false;
  for (const json& row : json_lines(files_ / "run" / "metrics.jsonl")) {
    if (!row.contains("eval/pass@1")) continue;
    found = true;
    EXPECT_EQ(row["eval/judged/missing"], 24);
    EXPECT_FALSE(row.contains("eval/judged/reward")) << "nothing, and not 0";
  }
  EXPECT_TRUE(found);
}

TEST_F(Judge, IsAttachedToARunThatGoesOn) {
  const FakeJudge judge(files_, "longer");
  CompanyRun company(
      files_, "run",
      {"--train.max_steps", "100000", "--train.num_episodes", "100000", "--ckpt.save_steps", "0"});
  ASSERT_TRUE(company.await_steps(1)) << company.output();
  const std::string folder = company.folder().string();
  const Ended attached =
      run({"attach", "reward", "--join", folder, "--name", "taste", "--judge", judge.url,
           "--rubric", pairs(), "--formula", "min(taste, rest)", "--background"});
  ASSERT_EQ(attached.status, 0) << attached.text;
  const std::filesystem::path ledger = company.folder() / "ledger.log";
  EXPECT_TRUE(within(60, [&] { return text_of(ledger).find("\"taste\"") != std::string::npos; }))
      << company.output();
  const Ended weighed = run({"re-weight", "reward", "--join", folder, "--name", "taste", "--weight",
                             "0.5", "--formula", "rest"});
  EXPECT_EQ(weighed.status, 0) << weighed.text;
  const Ended detached = run({"detach", "reward", "--join", folder, "--name", "taste"});
  EXPECT_EQ(detached.status, 0) << detached.text;
  company.signal(SIGINT);
  company.wait(60);
}

// How good a judge is, and on what: its accuracy on pairs, by category.
TEST_F(Judge, ItsAccuracyOnPairsIsMeasured) {
  const FakeJudge judge(files_, "longer");
  std::string lines;
  for (int i = 0; i < 8; ++i) {  // of the category `long` the longer answer is the better one
    const bool right = i < 5;
    lines += json{{"prompt", "p" + std::to_string(i)},
                  {"chosen", right ? "yyyy" : "y"},
                  {"rejected", right ? "n" : "nnnn"},
                  {"category", right ? "long" : "short"}}
                 .dump() +
             "\n";
  }
  const Ended ended = run({"eval", "--data", write("pairs.jsonl", lines), "--judge", judge.url,
                           "--rubric", pairs(), "--source-key", "category", "--json"});
  ASSERT_EQ(ended.status, 0) << ended.text;
  const json line = json::parse(ended.text, nullptr, false);
  EXPECT_EQ(line["pairs"], 8);
  EXPECT_EQ(line["accuracy"]["mean"], 0.625);
  EXPECT_EQ(line["sets"]["long"]["accuracy"]["mean"], 1.0);
  EXPECT_EQ(line["sets"]["short"]["accuracy"]["mean"], 0.0);
}

// `troupe serve` is such a judge. This model is random: most answers do not parse, some do.
TEST_F(Judge, TroupeServeIsOne) {
  const std::string chat =
      write("chat.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}");
  const Served served({"--chat-template", chat});
  const std::string rubric =
      write("digit.yaml",
            "kind: pointwise\nprompt: '{response}'\npattern: '([1-9])'\nrange: [1, 9]\n"
            "max_tokens: 60\ntries: 3\n");
  const Ended ended = run({"score", "--data", responses("a.jsonl", {1, 2, 3}), "--judge",
                           "http://127.0.0.1:" + std::to_string(served.port), "--rubric", rubric,
                           "--out", path("scored.jsonl")});
  ASSERT_EQ(ended.status, 0) << ended.text;
  int scored = 0;
  for (const json& row : json_lines(files_ / "scored.jsonl")) {
    if (row["reward"].is_null()) {
      EXPECT_NE(row["reward_error"].get<std::string>().find("does not parse"), std::string::npos);
      continue;
    }
    ++scored;
    EXPECT_GE(row["reward"].get<double>(), 1);
  }
  EXPECT_GT(scored, 0);
}

TEST_F(Judge, MistakesAreSaidBeforeTheWork) {
  const std::string a = responses("a.jsonl", {3}), b = responses("b.jsonl", {4});
  const std::string rubric = pairs(), url = "http://127.0.0.1:1/v1";
  const std::vector<std::string> compare = {"eval", "--compare", a, b};
  const auto with = [&](std::vector<std::string> more) { return compare + more; };
  expect_error(compare, 2, "no judge is given: give --judge and --rubric");
  expect_error({"eval", "--compare", a}, 2, "--compare");
  expect_error(with({"--judge", url}), 2, "give --rubric");
  expect_error(with({"--rubric", rubric}), 2, "are read with --judge");
  expect_error(with({"--judge", url, "--rubric", path("no.yaml")}), 2, "no.yaml");
  expect_error(with({"--judge", "127.0.0.1:1", "--rubric", rubric}), 2,
               "neither http:// nor https://");
  expect_error(
      with({"--judge", url, "--rubric", rubric, "--rule", "last_number", "--label-key", "prompt"}),
      2, "give one of");
  expect_error(with({"--judge", url, "--rubric", rubric, "--judge-key", "sk-0"}), 2,
               "env:NAME or file:PATH");
  expect_error(with({"--judge", url, "--rubric", rubric, "--judge-key", "env:TROUPE_NO_SUCH_KEY"}),
               2, "no variable TROUPE_NO_SUCH_KEY");
  expect_error(with({"--judge", url, "--rubric", rubric, "--model", files_.model()}), 2,
               "leave --model out");
  expect_error({"eval", "--compare", a, files_.model(), "--judge", url, "--rubric", rubric}, 2,
               "give --data");
  expect_error(
      {"eval", "--compare", a, write("short.jsonl", "{\"prompt\":\"p0\",\"response\":\"\"}\n"),
       "--judge", url, "--rubric", rubric},
      4, "A has 1 responses to this prompt and B 0");
  expect_error(
      {"eval", "--compare", a, write("other.jsonl", "{\"prompt\":\"q\",\"response\":\"\"}\n"),
       "--judge", url, "--rubric", rubric},
      4, "a response to a prompt that is not compared");
  expect_error({"eval", "--compare", a, write("mute.jsonl", "{\"prompt\":\"p0\"}\n"), "--judge",
                url, "--rubric", rubric},
               4, "no text in column 'response'");
  expect_error({"eval", "--compare", path("run"), a, "--data", path("train.jsonl"), "--judge", url,
                "--rubric", rubric},
               2, "run");
  expect_error(trained("r", {"--reward.judge", url}), 2, "reward.judge_rubric: is not set");
  expect_error(trained("r", {"--reward.judge_rubric", rubric}), 2, "reward.judge: is not set");
  expect_error(trained("r", {"--reward.judge", url, "--reward.judge_rubric",
                             write("bad.yaml", "kind: pairwise\nprompt: '{response}'\n")}),
               2, "there is no {response}");
  EXPECT_FALSE(std::filesystem::exists(files_ / "r")) << "before anything is made";
}

}  // namespace troupe::test

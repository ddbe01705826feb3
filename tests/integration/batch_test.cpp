// `troupe generate --data` and `troupe score` with the real program on a tiny model: what the rows
// hold, that a killed run ends with the bytes of an unbroken one, and what mistakes give.
#include "processes.hpp"

namespace troupe::test {
namespace {

std::vector<nlohmann::json> rows_of(const std::filesystem::path& file) {
  std::vector<nlohmann::json> rows;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    rows.push_back(nlohmann::json::parse(line, nullptr, false));
  return rows;
}

class Batch : public ::testing::Test {
 protected:
  std::vector<std::string> generate(const std::string& out, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {
        "generate", "--model", files_.model(), "--data", path("train.jsonl"), "--n", "4",
        "--out",    path(out), "--seed",       "3",      "--threads",         "1"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Ended run(std::vector<std::string> words) {
    return troupe_ends(std::move(words), files_ / "log.txt", 30);
  }
  void expect_error(std::vector<std::string> words, int status, const std::string& part) {
    const Ended ended = run(std::move(words));
    EXPECT_EQ(ended.status, status) << ended.text;
    EXPECT_NE(ended.text.find(part), std::string::npos) << ended.text;
  }
  std::string path(const std::string& name) const { return (files_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(files_ / name, std::ios::binary) << text;
    return path(name);
  }

  TinyRun files_;
};

}  // namespace

TEST_F(Batch, EveryPromptAndColumnIsThereOnceASample) {
  const Ended ended = run(generate("out.jsonl", {"--max-new-tokens", "6"}));
  ASSERT_EQ(ended.status, 0) << ended.text;
  const auto prompts = rows_of(files_ / "train.jsonl");
  const auto rows = rows_of(files_ / "out.jsonl");
  ASSERT_EQ(rows.size(), prompts.size() * 4);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i]["prompt_id"], i / 4);
    EXPECT_EQ(rows[i]["sample"], i % 4);
    EXPECT_EQ(rows[i]["prompt"], prompts[i / 4]["prompt"]);
    EXPECT_EQ(rows[i]["answer"], prompts[i / 4]["answer"]);
    EXPECT_LE(rows[i]["response_tokens"], 6);
    EXPECT_TRUE(rows[i]["response"].is_string());
  }
  EXPECT_FALSE(std::filesystem::exists(files_ / "out.jsonl.part"));
  EXPECT_FALSE(std::filesystem::exists(files_ / "out.jsonl.part.json"));
}

TEST_F(Batch, AKilledRunEndsWithTheBytesOfAnUnbrokenOne) {
  std::string prompts;
  for (int i = 0; i < 400; ++i)
    prompts += "{\"prompt\": \"" + std::to_string(i) + "=\"}\n";
  write("train.jsonl", prompts);
  ASSERT_EQ(run(generate("whole.jsonl", {"--max-new-tokens", "40"})).status, 0);
  const std::string whole = text_of(files_ / "whole.jsonl");
  std::vector<std::string> words = generate("cut.jsonl", {"--max-new-tokens", "40"});
  words.insert(words.begin(), troupe_program());
  const auto part = files_ / "cut.jsonl.part";
  {
    Background killed(words, files_ / "killed.txt");
    ASSERT_TRUE(within(20, [&] { return !text_of(part).empty() || !killed.running(); }));
    killed.signal(SIGKILL);
    killed.wait(5);
  }
  const std::string left = text_of(part);
  ASSERT_FALSE(left.empty()) << "it was killed in between";
  ASSERT_LT(left.size(), whole.size());
  EXPECT_EQ(whole.rfind(left, 0), 0u) << "what was written is a beginning of the whole";
  // A line that was cut in the middle, as a full disk or a power cut leaves it.
  std::ofstream(part, std::ios::app | std::ios::binary) << "{\"prompt\": \"tor";
  const Ended ended = run(generate("cut.jsonl", {"--max-new-tokens", "40"}));
  ASSERT_EQ(ended.status, 0) << ended.text;
  EXPECT_NE(ended.text.find("going on after"), std::string::npos) << ended.text;
  EXPECT_EQ(text_of(files_ / "cut.jsonl"), whole);
}

TEST_F(Batch, ThreadsDoNotChangeTheBytes) {
  ASSERT_EQ(run(generate("one.jsonl", {"--max-new-tokens", "8"})).status, 0);
  auto words = generate("two.jsonl", {"--max-new-tokens", "8"});
  words.back() = "2", words[words.size() - 3] = "2";
  ASSERT_EQ(words[words.size() - 4], "--threads");
  words.back() = "8";
  ASSERT_EQ(run(words).status, 0);
  EXPECT_EQ(text_of(files_ / "one.jsonl"), text_of(files_ / "two.jsonl"));
}

TEST_F(Batch, OtherSettingsDoNotMix) {
  write("out.jsonl.part", "{\"prompt\": \"x\"}\n");
  write("out.jsonl.part.json", "{\"--n\": \"4\"}");
  expect_error(generate("out.jsonl", {"--max-new-tokens", "2"}), 2, "--model");
  EXPECT_EQ(text_of(files_ / "out.jsonl.part"), "{\"prompt\": \"x\"}\n") << "nothing is lost";
  EXPECT_EQ(run(generate("out.jsonl", {"--overwrite", "--max-new-tokens", "2"})).status, 0);
}

TEST_F(Batch, MistakesAreSaidBeforeTheWork) {
  write("there.jsonl", "{}\n");
  expect_error(generate("there.jsonl", {"--max-new-tokens", "4"}), 2, "is there already");
  expect_error(generate("o.jsonl", {"--input-key", "question", "--max-new-tokens", "4"}), 4,
               "train.jsonl:1: no column");
  expect_error(generate("o.jsonl", {"--output-key", "answer", "--max-new-tokens", "4"}), 2,
               "--output-key");
  expect_error(generate("o.jsonl", {"--max-new-tokens", "300"}), 4, "row 1 of");
  expect_error(generate("o.jsonl", {"--prompt", "x", "--max-new-tokens", "4"}), 2,
               "one of --prompt");
  expect_error(generate("o.jsonl", {"--chat", "--max-new-tokens", "4"}), 2, "chat template");
  expect_error(generate("o.jsonl", {"--input-template", "no place"}), 2, "{}");
  EXPECT_FALSE(std::filesystem::exists(files_ / "o.jsonl.part"));
}

TEST_F(Batch, MaxSamplesAndTemplateAreApplied) {
  const Ended ended = run(generate("o.jsonl", {"--max-new-tokens", "2", "--max-samples", "3",
                                               "--data.input_template", "Q: {}\\nA:"}));
  ASSERT_EQ(ended.status, 0) << ended.text;
  const auto rows = rows_of(files_ / "o.jsonl");
  ASSERT_EQ(rows.size(), 12u);
  EXPECT_EQ(rows[0]["rendered_prompt"], "Q: 0+0=\nA:");
  EXPECT_EQ(rows[0]["prompt"], "0+0=");
}

// 12 prompts with 4 answers each; an answer is right when it is "a".
class Scores : public Batch {
 protected:
  Scores() {
    std::string lines;
    for (int i = 0; i < 48; ++i) {
      const std::string answer = i % 4 == i / 4 % 5 ? "a" : "b" + std::to_string(i % 4);
      lines += nlohmann::json({{"prompt_id", i / 4},
                               {"prompt", std::to_string(i / 4)},
                               {"response", answer},
                               {"answer", "a"}})
                   .dump() +
               "\n";
    }
    write("answers.jsonl", lines);
  }
  std::vector<std::string> score(const std::string& out, std::vector<std::string> more) {
    std::vector<std::string> words = {
        "score", "--data", path("answers.jsonl"), "--label-key", "answer", "--out", path(out)};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

TEST_F(Scores, RowsGetTheirReward) {
  const Ended ended = run(score("scored.jsonl", {"--rule", "exact"}));
  ASSERT_EQ(ended.status, 0) << ended.text;
  const auto rows = rows_of(files_ / "scored.jsonl");
  ASSERT_EQ(rows.size(), 48u);
  for (const auto& row : rows)
    EXPECT_EQ(row["reward"], row["response"] == "a" ? 1.0 : 0.0);
}

TEST_F(Scores, PairsHoldRightAgainstWrong) {
  const Ended ended = run(score("pairs.jsonl", {"--rule", "exact", "--pairs"}));
  ASSERT_EQ(ended.status, 0) << ended.text;
  const auto rows = rows_of(files_ / "pairs.jsonl");
  ASSERT_EQ(rows.size(), 10u) << "prompts 4 and 9 have no right answer";
  for (const auto& row : rows) {
    EXPECT_EQ(row["chosen"], "a");
    EXPECT_NE(row["rejected"], "a");
  }
}

TEST_F(Scores, AKilledRunEndsWithTheBytesOfAnUnbrokenOne) {
  // A reward that ends the worker at the second batch while a file is there.
  std::string lines;
  for (int i = 0; i < 200; ++i)
    lines += "{\"prompt\": \"" + std::to_string(i) + "\", \"response\": \"x\"}\n";
  write("many.jsonl", lines);
  const std::string trap = write("trap", "");
  const std::string file =
      write("reward.py",
            "import os\ndef reward_func(queries, prompts, labels):\n"
            "    if '70' in prompts and os.path.exists('" +
                trap +
                "'):\n"
                "        raise ValueError('trapped')\n"
                "    return [float(len(prompts)) + int(p) / 1000 for p in prompts]\n");
  const auto words = [&](const std::string& out) {
    return std::vector<std::string>{"score", "--data", path("many.jsonl"), "--python",
                                    file,    "--out",  path(out)};
  };
  const Ended broken = run(words("cut.jsonl"));
  EXPECT_NE(broken.status, 0) << broken.text;
  EXPECT_NE(broken.text.find("after 64 of 200 rows"), std::string::npos) << broken.text;
  EXPECT_EQ(rows_of(files_ / "cut.jsonl.part").size(), 64u);
  std::filesystem::remove(trap);
  ASSERT_EQ(run(words("cut.jsonl")).status, 0);
  ASSERT_EQ(run(words("whole.jsonl")).status, 0);
  EXPECT_EQ(text_of(files_ / "cut.jsonl"), text_of(files_ / "whole.jsonl"));
  EXPECT_EQ(rows_of(files_ / "whole.jsonl")[199]["reward"], 8 + 0.199) << "blocks of 64";
}

TEST_F(Scores, MistakesAreSaid) {
  expect_error(score("o.jsonl", {}), 2, "--rule");
  expect_error(score("o.jsonl", {"--rule", "exakt"}), 2, "exakt");
  expect_error(score("o.jsonl", {"--rule", "exact", "--pairs", "--best-of-n"}), 2, "at most one");
  expect_error(score("o.jsonl", {"--rule", "exact", "--response-key", "text"}), 4,
               "answers.jsonl:1: no text in column 'text'");
  expect_error(score("o.jsonl", {"--rule", "exact", "--reward-key", "answer"}), 2, "--reward-key");
  expect_error(score("o.jsonl", {"--model", files_.model()}), 2, "score head");
  expect_error(score("o.jsonl", {"--rule", "exact", "--csft", "none"}), 2,
               "no place for the score");
  EXPECT_FALSE(std::filesystem::exists(files_ / "o.jsonl"));
}

TEST_F(Batch, EvalGivesItsFiguresAsJson) {
  const auto eval = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {
        "eval", "--model", files_.model(), "--data", path("train.jsonl"), "--max-new-tokens", "4"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const std::vector<std::string> rule = {"--rule", "regex", "--pattern", "[A-Za-z]{2}", "--n", "4"};
  auto words = rule;
  words.insert(words.end(), {"--k", "1,4", "--json"});
  const Ended ended = run(eval(words));
  ASSERT_EQ(ended.status, 0) << ended.text;
  const auto line = nlohmann::json::parse(ended.text, nullptr, false);
  ASSERT_TRUE(line.is_object()) << ended.text;
  EXPECT_EQ(line["all"]["problems"], 24);
  const auto& pass = line["all"]["pass@4"];
  EXPECT_LE(pass["low"], pass["mean"]);
  EXPECT_LE(line["all"]["pass@1"]["mean"], pass["mean"]);
  words = rule;
  words.insert(words.end(), {"--k", "5"});
  expect_error(eval(words), 2, "--k 5");
  expect_error(eval({}), 2, "--rule");
  expect_error(eval({"--rule", "exact"}), 2, "--label-key");
  // A row says why its sample ended in the words of `generate`.
  words = rule;
  words.insert(words.end(), {"--out", path("eval.jsonl"), "--stop", "a", "--seed", "3"});
  ASSERT_EQ(run(eval(words)).status, 0);
  ASSERT_EQ(
      run(generate("same.jsonl", {"--max-new-tokens", "4", "--stop", "a", "--temperature", "0.6"}))
          .status,
      0);
  const auto rows = rows_of(files_ / "eval.jsonl"), others = rows_of(files_ / "same.jsonl");
  std::map<std::string, int> reasons;
  ASSERT_EQ(rows.size(), others.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i]["response"], others[i]["response"]);
    EXPECT_EQ(rows[i]["finish_reason"], others[i]["finish_reason"]);
    ++reasons[rows[i]["finish_reason"].get<std::string>()];
  }
  EXPECT_TRUE(reasons["eos"] > 0 || reasons["stop"] > 0) << "the words are told apart somewhere";
}

TEST_F(Batch, ARewardModelOnPairsWritesItsScoresAndItsFiguresBySource) {
  const ScratchFolder scratch;
  const std::string model = make_tiny_model(scratch, model::with_score_head(tiny_llama()));
  write_byte_tokenizer(model);
  std::string pairs;
  for (int i = 0; i < 9; ++i) {
    nlohmann::ordered_json row = {{"prompt", std::to_string(i) + "="},
                                  {"chosen", "a" + std::to_string(i)},
                                  {"rejected", "b"},
                                  {"id", i}};
    if (i > 0) row["datasource"] = i % 3 == 0 ? "one" : "two";
    pairs += row.dump() + "\n";
  }
  const std::vector<std::string> words = {
      "eval",  "--reward-model",  model,   "--data", write("pairs.jsonl", pairs),
      "--out", path("out.jsonl"), "--json"};
  const Ended ended = run(words);
  ASSERT_EQ(ended.status, 0) << ended.text;
  const auto line = nlohmann::json::parse(ended.text, nullptr, false);
  ASSERT_TRUE(line.is_object()) << ended.text;
  const auto rows = rows_of(files_ / "out.jsonl");
  ASSERT_EQ(rows.size(), 9u);
  // The figures are those of the rows: by hand.
  const auto expect_set = [&](const nlohmann::json& set, const std::string& source, int size) {
    double right = 0, margin = 0;
    int found = 0;
    for (const auto& row : rows) {
      if (!source.empty() && row.value("datasource", "") != source) continue;
      const double by = row["chosen_reward"].get<double>() - row["rejected_reward"].get<double>();
      EXPECT_EQ(row["margin"], by);
      margin += by;
      right += by > 0 ? 1 : by < 0 ? 0 : 0.5;
      ++found;
    }
    EXPECT_EQ(found, size);
    EXPECT_EQ(set["pairs"], size);
    EXPECT_NEAR(set["accuracy"]["mean"].get<double>(), right / size, 1e-9);
    EXPECT_NEAR(set["margin"]["mean"].get<double>(), margin / size, 1e-9);
  };
  expect_set(line, "", 9);
  ASSERT_EQ(line["sets"].size(), 2u) << line;
  expect_set(line["sets"]["one"], "one", 2);
  expect_set(line["sets"]["two"], "two", 6);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i]["id"], i);
    EXPECT_EQ(rows[i]["chosen"], "a" + std::to_string(i));
  }
  auto table = words;
  table.pop_back();
  table.insert(table.end(), {"--source-key", "id"});
  const Ended shown = run(table);
  EXPECT_NE(shown.text.find("8, 1 pairs"), std::string::npos) << shown.text;
}

}  // namespace troupe::test

// Supervised training with the real program: every method takes steps and leaves a model; killed
// with -9 and started again it gives the run that was never interrupted; bad rows are refused with
// file, line and the flag to change.
#include "supervised_support.hpp"

namespace troupe::test {

TEST(Supervised, EveryMethodTrainsEvaluatesAndLeavesAModel) {
  const TinySupervised files;
  for (const Method& method : methods()) {
    const ProgramRun run = run_troupe(files.words(method, method.name, 2));
    ASSERT_EQ(run.status, 0) << method.name << run.output;
    EXPECT_NE(run.output.find("step=2/2 loss="), std::string::npos) << run.output;
    EXPECT_NE(run.output.find("held-out after 2 steps: loss"), std::string::npos) << run.output;
    const auto model = files / method.name / "ckpt" / "step_000002" / "model";
    for (const char* name : {"config.json", "model.safetensors", "tokenizer.json"})
      EXPECT_TRUE(std::filesystem::exists(model / name)) << method.name << " " << name;
    const auto rows = lines_of(files / method.name);
    ASSERT_EQ(rows.size(), 4u) << "evaluation, step, step, evaluation";
    EXPECT_TRUE(rows[0].contains("eval/loss"));
    EXPECT_TRUE(rows[1].contains("policy/grad_norm"));
    EXPECT_NE(rows[0]["eval/loss"], rows[3]["eval/loss"]);
  }
  const auto config = nlohmann::json::parse(
      text_of(files / "rm" / "ckpt" / "step_000002" / "model" / "config.json"));
  const auto last = lines_of(files / "rm").back();
  EXPECT_EQ(config["architectures"][0], "LlamaForSequenceClassification");
  EXPECT_DOUBLE_EQ(config["mean"].get<double>(), last["eval/score_mean"].get<double>());
  EXPECT_DOUBLE_EQ(config["std"].get<double>(), last["eval/score_std"].get<double>());
}

// What was learned is put beside a folder that is gone, and goes on with the data it began with.
TEST(Supervised, AFolderThatIsRenamedEndsTheRunWithItsCheckpointBesideIt) {
  const TinySupervised files;
  const Method& sft = methods()[0];
  auto words = files.words(sft, "run", 100000);
  words.insert(words.end(), {"--ckpt.save_steps", "0"});
  Background run = start_troupe(words, files / "log");
  while (steps_in(files / "run") < 3 && run.running())
    ::sched_yield();
  std::filesystem::rename(files / "run", files / "moved");
  const auto status = run.wait(60);
  const std::string output = run.text();
  EXPECT_EQ(status, 3) << output;
  EXPECT_FALSE(std::filesystem::exists(files / "run")) << "nothing is made anew";
  char name[32];
  std::snprintf(name, sizeof name, "step_%06zu", steps_in(files / "moved"));
  const std::filesystem::path saved = files / "run.rescued-1" / "ckpt" / name;
  EXPECT_NE(output.find(" is saved in " + saved.string()), std::string::npos) << output;
  EXPECT_FALSE(hashes_of(saved).empty());

  std::string rows = text_of(files / sft.file);
  rows.erase(0, rows.find('\n') + 1);
  std::ofstream(files / sft.file) << rows;
  const Ended refused =
      troupe_ends(files.words(sft, "run.rescued-1", 100000), files / "refused", 60);
  EXPECT_EQ(refused.status, 2) << refused.text;
  EXPECT_NE(refused.text.find("data.dataset (" + files.file(sft.file)), std::string::npos)
      << refused.text;
}

TEST(Supervised, KilledAndResumedEqualsAnUnbrokenRun) {
  const TinySupervised files;
  for (const char* name : {"sft", "kto", "bco", "distill"}) {
    const Method& method =
        *std::find_if(methods().begin(), methods().end(),
                      [&](const Method& one) { return one.name == std::string(name); });
    const std::string whole = std::string(name) + "_whole", killed = std::string(name) + "_killed";
    const ProgramRun unbroken = run_troupe(files.words(method, whole, 7));
    ASSERT_EQ(unbroken.status, 0) << unbroken.output;
    for (const std::size_t at : {2u, 5u}) {
      kill_once(start_troupe(files.words(method, killed, 7), files / "log"),
                [&] { return steps_in(files / killed) >= at; });
    }
    const ProgramRun resumed = run_troupe(files.words(method, killed, 7));
    ASSERT_EQ(resumed.status, 0) << resumed.output << text_of(files / "log");
    EXPECT_EQ(lines_of(files / whole), lines_of(files / killed)) << name;
    const auto hashes = hashes_of(files / whole / "ckpt" / "step_000007");
    EXPECT_FALSE(hashes.empty());
    EXPECT_EQ(hashes, hashes_of(files / killed / "ckpt" / "step_000007")) << name;
  }
}

TEST(Supervised, AStopSignalEndsAfterACheckpointWithStatus130) {
  const TinySupervised files;
  const Method& sft = methods()[0];
  Background run = start_troupe(files.words(sft, "stopped", 100000), files / "log");
  while (steps_in(files / "stopped") < 2)
    ::sched_yield();
  run.signal(SIGTERM);
  EXPECT_EQ(run.wait(60), 130) << run.text();
  const std::string log = text_of(files / "log");
  EXPECT_NE(log.find("the same command continues from there"), std::string::npos);
  EXPECT_NE(log.find("wall time of the run by phase"), std::string::npos) << log;
  EXPECT_EQ(log.find("error:"), std::string::npos) << log;
}

// The same dialogues as ShareGPT, as Alpaca and as messages: the same weights, and a line for each
// kind of rows that no flag spoke of.
TEST(Supervised, RowsOfOtherFormatsAreKnownByTheirColumns) {
  const TinySupervised files;
  files.write_template();
  std::ofstream sharegpt(files.file("sharegpt.jsonl")), alpaca(files.file("alpaca.jsonl"));
  std::ofstream messages(files.file("messages.jsonl")), pairs(files.file("sharegpt_pairs.jsonl"));
  for (int i = 0; i < 8; ++i) {
    const std::string number = std::to_string(i), good = std::to_string(i + 1);
    const nlohmann::json human = {{"from", "human"}, {"value", "add\n" + number}};
    const nlohmann::json gpt = {{"from", "gpt"}, {"value", good}};
    sharegpt << nlohmann::json({{"conversations", {human, gpt}}}) << '\n';
    alpaca << nlohmann::json({{"instruction", "add"}, {"input", number}, {"output", good}}) << '\n';
    messages << nlohmann::json({{"messages",
                                 {{{"role", "user"}, {"content", "add\n" + number}},
                                  {{"role", "assistant"}, {"content", good}}}}})
             << '\n';
    pairs << nlohmann::json({{"conversations", nlohmann::json::array({human})},
                             {"chosen", gpt},
                             {"rejected", {{"from", "gpt"}, {"value", "fish"}}}})
          << '\n';
  }
  for (auto* file : {&sharegpt, &alpaca, &messages, &pairs})
    file->close();
  const auto count = [](const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1))
      ++found;
    return found;
  };
  const auto train = [&](const Method& method) {
    const ProgramRun run = run_troupe(files.words(method, method.file + std::string("_run"), 1));
    EXPECT_EQ(run.status, 0) << run.output;
    return run.output;
  };
  const std::string as_sharegpt = train({"sft", "sharegpt.jsonl", {}});
  EXPECT_EQ(count(as_sharegpt, "sharegpt.jsonl:1: ShareGPT rows"), 2u) << "training and held-out";
  EXPECT_EQ(count(train({"sft", "alpaca.jsonl", {}}), "alpaca.jsonl:1: Alpaca rows"), 2u);
  EXPECT_EQ(count(train({"sft", "messages.jsonl", {}}), "messages.jsonl:1: rows of messages"), 2u);
  EXPECT_EQ(count(train({"dpo", "sharegpt_pairs.jsonl", {}}), "ShareGPT rows"), 2u);
  const auto weights = [&](const char* name) {
    return text_of(files / (std::string(name) + ".jsonl_run") / "ckpt" / "step_000001" / "model" /
                   "model.safetensors");
  };
  EXPECT_FALSE(weights("sharegpt").empty());
  EXPECT_EQ(weights("sharegpt"), weights("alpaca"));
  EXPECT_EQ(weights("sharegpt"), weights("messages"));

  // As prompts: of a run, and of generate.
  const ProgramRun ppo = run_troupe({"train",
                                     "ppo",
                                     "--actor.model_name_or_path",
                                     files.model(),
                                     "--data.prompt_dataset",
                                     files.file("alpaca.jsonl"),
                                     "--data.label_key",
                                     "output",
                                     "--reward.rule",
                                     "regex",
                                     "--reward.rule_pattern",
                                     "[A-Za-z]",
                                     "--run.path",
                                     files.file("ppo"),
                                     "--train.max_steps",
                                     "1",
                                     "--rollout.batch_size",
                                     "4",
                                     "--rollout.n_samples_per_prompt",
                                     "2",
                                     "--rollout.max_new_tokens",
                                     "4",
                                     "--data.prompt_max_len",
                                     "64",
                                     "--algo.advantage.estimator",
                                     "group_norm",
                                     "--train.threads",
                                     "1",
                                     "--cluster.transport",
                                     "loopback"});
  EXPECT_EQ(ppo.status, 0) << ppo.output;
  EXPECT_EQ(count(ppo.output, "alpaca.jsonl:1: Alpaca rows"), 1u) << ppo.output;
  const ProgramRun generated =
      run_troupe({"generate", "--model", files.model(), "--data", files.file("sharegpt.jsonl"),
                  "--out", files.file("out.jsonl"), "--max-new-tokens", "2", "--threads", "1"});
  EXPECT_EQ(generated.status, 0) << generated.output;
  EXPECT_EQ(count(text_of(files / "out.jsonl"), "[user] add\\n7\\n[assistant] "), 1u)
      << text_of(files / "out.jsonl");
}

// Lines of other trainers' own pages, with paths of this test: they run as they stand.
TEST(Supervised, CommandLinesOfOtherTrainersRun) {
  const TinySupervised files;
  const char* source = std::getenv("TROUPE_SOURCE_DIR");
  std::ifstream in(std::string(source == nullptr ? "." : source) +
                   "/tests/data/peer_names/commands.txt");
  std::ofstream many(files.file("many.jsonl"));
  for (int i = 0; i < 32; ++i) {
    many << nlohmann::json({{"prompt", std::to_string(i) + "+1="},
                            {"chosen", std::to_string(i + 1)},
                            {"rejected", "fish"}})
         << '\n';
  }
  many.close();
  std::size_t ran = 0;
  for (std::string line; std::getline(in, line);) {
    const bool trl = line.find("TRL 1.16.0, trl/scripts/dpo.py") != line.npos;
    const bool factory = line.find("examples/train_lora/qwen3_lora_sft.yaml") != line.npos;
    if (!trl && !factory) continue;
    const std::string method = line.substr(0, line.find('\t'));
    const std::string run = files.file(method + std::to_string(++ran));
    const std::string rows = files.file(trl ? "many.jsonl" : "answers.jsonl");
    std::vector<std::string> words = {"train", method, "--train.micro_tokens_max", "64"};
    std::istringstream rest(line.substr(line.find('\t', line.find('\t') + 1) + 1));
    for (std::string word; rest >> word;) {
      const auto after = [&](const char* flag) { return words.back() == flag; };
      if (after("--model_name_or_path")) word = files.model();
      if (after("--dataset_name")) word = rows;
      if (after("--output_dir")) word = run;
      if (word.starts_with("model_name_or_path=")) word = "model_name_or_path=" + files.model();
      if (word.starts_with("dataset=")) word = "dataset=" + rows;
      if (word.starts_with("output_dir=")) word = "output_dir=" + run;
      words.push_back(std::move(word));
    }
    if (trl) words.insert(words.end(), {"--eval_dataset", rows, "--max_steps", "2"});
    const ProgramRun outcome = run_troupe(words);
    EXPECT_EQ(outcome.status, 0) << line << "\n" << outcome.output;
    const std::string batch = trl ? "\n  batch_size: 16 " : "\n  batch_size: 8 ";
    EXPECT_NE(text_of(std::filesystem::path(run) / "resolved_config.yaml").find(batch),
              std::string::npos);
    EXPECT_GT(steps_in(run), 0u);
  }
  EXPECT_EQ(ran, 3u);
}

// What a run leaves is a model in every command, by the name of its folder, and it says so.
TEST(Supervised, ARunFolderIsAModelEverywhere) {
  const TinySupervised files;
  const auto run_of = [&](std::size_t method) {
    const ProgramRun run = run_troupe(files.words(methods()[method], methods()[method].name, 1));
    EXPECT_EQ(run.status, 0) << run.output;
    const std::string folder = files.file(methods()[method].name);
    EXPECT_NE(
        run.output.find("\nmodel " + folder + "/ckpt/step_000001/model; use it with: troupe "),
        std::string::npos)
        << run.output;
    return folder;
  };
  const std::string sft = run_of(0), reward = run_of(2);
  for (const std::string& model : {sft, sft + "/ckpt/step_000001"}) {
    const ProgramRun generated = run_troupe({"generate", "--model", model, "--prompt",
                                             "1+1=", "--max-new-tokens", "2", "--threads", "1"});
    EXPECT_EQ(generated.status, 0) << generated.output;
  }
  const ProgramRun scored =
      run_troupe({"score", "--model", reward, "--data", files.file("answers.jsonl"), "--out",
                  files.file("s.jsonl"), "--threads", "1"});
  EXPECT_EQ(scored.status, 0) << scored.output;
  const ProgramRun judged = run_troupe(
      {"eval", "--model", sft, "--data", files.file("answers.jsonl"), "--rule", "regex",
       "--pattern", "[0-9]", "--reward-model", reward, "--max-new-tokens", "2", "--threads", "1"});
  EXPECT_EQ(judged.status, 0) << judged.output;
  auto words = files.words(methods()[3], "from_run", 1);
  words[4] = sft;  // --actor.model_name_or_path
  ASSERT_EQ(words[3], "--actor.model_name_or_path");
  const ProgramRun dpo = run_troupe(words);
  EXPECT_EQ(dpo.status, 0) << dpo.output;
}

// TRL's columns, with no flag: the same weights as with this project's own names.
TEST(Supervised, TrlsColumnsAreTakenWithoutAFlag) {
  const TinySupervised files;
  std::ofstream answers(files.file("trl_answers.jsonl")), rated(files.file("trl_rated.jsonl"));
  std::ofstream texts(files.file("trl_texts.jsonl")), own(files.file("own_texts.jsonl"));
  for (int i = 0; i < 12; ++i) {
    const std::string prompt = std::to_string(i) + "+1=", good = std::to_string(i + 1);
    answers << nlohmann::json({{"prompt", prompt}, {"completion", good}}) << '\n';
    rated << nlohmann::json({{"prompt", prompt},
                             {"completion", i % 2 == 0 ? good : "a \"fish\""},
                             {"label", i % 2 == 0}})
          << '\n';
    texts << nlohmann::json({{"text", prompt + good}}) << '\n';
    own << nlohmann::json({{"input", prompt + good}}) << '\n';
  }
  for (auto* file : {&answers, &rated, &texts, &own})
    file->close();
  const auto weights = [&](const char* method, const char* file, const char* said) {
    const std::string run = std::string(method) + "_" + file;
    const ProgramRun outcome = run_troupe(files.words({method, file, {}}, run, 1));
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    EXPECT_NE(outcome.output.find(said), std::string::npos) << outcome.output;
    return text_of(files / run / "ckpt" / "step_000001" / "model" / "model.safetensors");
  };
  EXPECT_EQ(weights("sft", "answers.jsonl", ""),
            weights("sft", "trl_answers.jsonl",
                    "column 'prompt' is the prompt of the answer in 'completion'"));
  EXPECT_EQ(weights("kto", "rated.csv", ""), weights("kto", "trl_rated.jsonl", ""));
  const std::string text = weights("pretrain", "own_texts.jsonl", "");
  EXPECT_FALSE(text.empty());
  EXPECT_EQ(text, weights("pretrain", "trl_texts.jsonl", ""));
  EXPECT_EQ(text, weights("sft", "trl_texts.jsonl",
                          "column 'text' is a whole text, all of which is learned"));
  const auto prompts = [&](const char* key) {
    return run_troupe({"train",
                       "ppo",
                       "--actor.model_name_or_path",
                       files.model(),
                       "--data.prompt_dataset",
                       files.file(key),
                       "--reward.rule",
                       "regex",
                       "--reward.rule_pattern",
                       "[A-Za-z]",
                       "--data.label_key",
                       "label",
                       "--run.path",
                       files.file("ppo"),
                       "--train.max_steps",
                       "1",
                       "--rollout.batch_size",
                       "2",
                       "--rollout.n_samples_per_prompt",
                       "2",
                       "--rollout.max_new_tokens",
                       "4",
                       "--data.prompt_max_len",
                       "64",
                       "--cluster.transport",
                       "loopback"});
  };
  const ProgramRun ppo = prompts("trl_rated.jsonl");
  EXPECT_EQ(ppo.status, 0) << ppo.output;

  // A prompt and an answer in files of the other commands.
  const ProgramRun scored = run_troupe({"score", "--data", files.file("trl_answers.jsonl"),
                                        "--rule", "regex", "--pattern", "[0-9]", "--label-key",
                                        "completion", "--out", files.file("s.jsonl")});
  EXPECT_EQ(scored.status, 0) << scored.output;
  for (const char* rows : {"trl_answers.jsonl", "answers.jsonl"}) {
    const ProgramRun generated = run_troupe(
        {"generate", "--model", files.model(), "--data", files.file(rows), "--out",
         files.file(std::string(rows) + ".out"), "--max-new-tokens", "2", "--threads", "1"});
    EXPECT_EQ(generated.status, 0) << generated.output;
    EXPECT_EQ(text_of(files / (std::string(rows) + ".out")).find("rendered_prompt"),
              std::string::npos);
  }
}

TEST(Supervised, BadInputsSayWhereAndWhatToChange) {
  const TinySupervised files;
  const auto refusal = [&](const Method& method, const std::string& rows, int status,
                           std::vector<std::string> more = {}) {
    std::ofstream(files.file("bad.jsonl")) << rows;
    Method bad = method;
    bad.file = "bad.jsonl";
    bad.flags.insert(bad.flags.end(), more.begin(), more.end());
    const Ended run = troupe_ends(files.words(bad, "bad", 2), files / "log", 60);
    EXPECT_EQ(run.status, status) << run.text;
    EXPECT_FALSE(std::filesystem::exists(files / "bad")) << "refused before a run folder is made";
    return run.text;
  };
  const Method &sft = methods()[0], &dpo = methods()[3], &kto = methods()[6];
  EXPECT_NE(refusal(sft, "", 4).find("holds no rows"), std::string::npos);
  EXPECT_NE(refusal(sft, R"({"conversations": [{"from": "robot", "value": "a"}]})", 4)
                .find("bad.jsonl:1: column 'conversations', turn 1 is from 'robot'"),
            std::string::npos);
  EXPECT_NE(refusal(sft, R"({"question": "a", "answer": "b"})", 4)
                .find("bad.jsonl:1: no column 'input'\n  hint: set --data.input_key to one of: "
                      "question, answer"),
            std::string::npos);
  EXPECT_NE(refusal(sft, "PAR1", 4).find("bad.jsonl: no Parquet file: it is too short"),
            std::string::npos);
  EXPECT_NE(refusal(sft, "BZh9", 4).find("bad.jsonl: is compressed by bzip2\n  hint: rows are"),
            std::string::npos);
  EXPECT_NE(refusal(dpo, R"({"input": "a", "chosen": "b", "rejected": "b"})", 4)
                .find("bad.jsonl:1: 'chosen' and 'rejected' are equal"),
            std::string::npos);
  EXPECT_NE(refusal(kto, R"({"input": "a", "output": "b", "label": "maybe"})", 4)
                .find("must be true or false"),
            std::string::npos);
  EXPECT_NE(refusal(sft, R"({"input": "a", "output": "b"})", 2, {"--data.probs", "0.5,0.5"})
                .find("data.probs: 2 share(s) for 1 file(s)"),
            std::string::npos);
  EXPECT_NE(refusal(kto, R"({"input": "a", "output": "b", "label": true})", 2,
                    {"--data.rows_together", "4"})
                .find("data.rows_together: kto compares each answer with that of the next row"),
            std::string::npos);
  EXPECT_NE(refusal(sft, R"({"input": "a", "output": "bbbbbbbbbb"})", 4, {"--data.max_len", "5"})
                .find("more than --data.max_len 5"),
            std::string::npos);
}

}  // namespace troupe::test

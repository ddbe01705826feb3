// Distillation with the real program: teachers in processes of their own and behind URLs, that die,
// come back and answer wrongly; the same bits after kills; and what is refused before a run begins.
#include "company_support.hpp"
#include "supervised_support.hpp"

namespace troupe::test {
namespace {

constexpr int kUpdates = 40;

// A run on policy: two teachers by the column "answer", no KL term. Rewards are only measured.
struct OnPolicy {
  TinyRun files;
  std::string a = make_tiny_teacher(files.folder(), "teacher_a");
  std::string b = make_tiny_teacher(files.folder(), "teacher_b");

  std::vector<std::string> common() const {
    return {
        "--algo.kl.init_coef",        "0",       "--train.max_steps",     std::to_string(kUpdates),
        "--algo.advantage.estimator", "dr_grpo", "--teacher.reward_coef", "0"};
  }
  std::vector<std::string> two() const {
    return common() + std::vector<std::string>{"--teacher.model_name_or_path",
                                               a + "," + b,
                                               "--teacher.domain_key",
                                               "answer",
                                               "--teacher.domains",
                                               "a,other"};
  }
  std::map<std::string, std::string> saved(const std::string& run) const {
    return hashes_of(files / run / "ckpt" / checkpoint_name(kUpdates));
  }
};

// `troupe serve` of a teacher on a port of its own choice, or on the one it had.
struct Server {
  Background program;
  std::string port;

  Server(const OnPolicy& of, const std::string& model, const std::string& at = "0") {
    const auto log = of.files / "serve.log";
    program = start_troupe({"serve", "--model", model, "--port", at, "--threads", "1"}, log);
    const std::string url = "http://127.0.0.1:";
    EXPECT_TRUE(within(60, [&] { return program.says(url) || !program.running(); }));
    const std::string text = program.text();
    const auto begin = text.find(url) + url.size();
    port = text.substr(begin, text.find('/', begin) - begin);
  }
  std::string url() const { return "http://127.0.0.1:" + port + "/v1"; }
};

}  // namespace

TEST(Distillation, ATeacherThatIsKilledOrFrozenIsReplacedAndChangesNoBit) {
  const OnPolicy on;
  CompanyRun whole(on.files, "whole", on.two());
  ASSERT_EQ(whole.wait(), 0) << whole.output();
  const auto rows = metrics_of(on.files / "whole");
  ASSERT_TRUE(rows.contains(kUpdates));
  EXPECT_GT(rows.at(1).value("kl/teacher", -1.0), 0);
  EXPECT_LT(rows.at(kUpdates).value("kl/teacher", 99.0), rows.at(1).value("kl/teacher", -1.0));
  EXPECT_FALSE(on.saved("whole").empty());
  for (const auto& [name, signal_number] : {std::pair("killed", SIGKILL), {"frozen", SIGSTOP}}) {
    CompanyRun run(on.files, name, on.two());
    const pid_t pid = run.node_after("teacher-1", 2);
    ASSERT_GT(pid, 0) << run.output();
    ASSERT_EQ(::kill(pid, signal_number), 0);
    ASSERT_EQ(run.wait(), 0) << run.output();
    EXPECT_NE(run.log().find("node/teacher-1 is lost"), std::string::npos) << run.log();
    EXPECT_EQ(on.saved("whole"), on.saved(name)) << name;
    expect_clean_ledger(run.folder());
  }
}

TEST(Distillation, KilledAndResumedEqualsAnUnbrokenRunInOneProcess) {
  const OnPolicy on;
  const auto words = [&](const char* run) {
    return on.files.words(run) + on.two() +
           std::vector<std::string>{"--cluster.transport", "loopback"};
  };
  const Ended whole = troupe_ends(words("whole"), on.files / "log", 60);
  ASSERT_EQ(whole.status, 0) << whole.text;
  kill_once(start_troupe(words("killed"), on.files / "log"),
            [&] { return metrics_of(on.files / "killed").size() >= 3; });
  const Ended resumed = troupe_ends(words("killed"), on.files / "log", 60);
  ASSERT_EQ(resumed.status, 0) << resumed.text;
  EXPECT_EQ(metrics_of(on.files / "whole"), metrics_of(on.files / "killed"));
  EXPECT_EQ(on.saved("whole"), on.saved("killed"));
}

// Away in the middle, then back at its address: the run waits, and its bits are those of the
// folder.
TEST(Distillation, ATeacherBehindAUrlGivesTheNumbersOfItsFolder) {
  const OnPolicy on;
  const auto own = on.common() + std::vector<std::string>{"--cluster.transport", "loopback"};
  const Ended local =
      troupe_ends(on.files.words("folder") + own +
                      std::vector<std::string>{"--teacher.model_name_or_path", on.a},
                  on.files / "log", 60);
  ASSERT_EQ(local.status, 0) << local.text;
  Server first(on, on.a);
  ASSERT_FALSE(first.port.empty());
  Background run = start_troupe(
      on.files.words("url") + own + std::vector<std::string>{"--teacher.http", first.url()},
      on.files / "url.log");
  ASSERT_TRUE(within(60, [&] {
    return metrics_of(on.files / "url").size() >= 2 || !run.running();
  })) << run.text();
  first.program.kill();
  ASSERT_TRUE(within(60, [&] { return run.says("the teacher is away") || !run.running(); }))
      << run.text();
  Server again(on, on.a, first.port);
  ASSERT_EQ(run.wait(60), 0) << run.text();
  const auto url = on.saved("url");
  std::size_t compared = 0;
  for (const auto& [file, hash] : on.saved("folder")) {
    if (!file.starts_with("policy/")) continue;
    ++compared;
    EXPECT_EQ(url.at(file), hash) << file;
  }
  EXPECT_GT(compared, 0u);
}

TEST(Distillation, ARunThatHasNoRewardLearnsFromTheTeacherAlone) {
  const OnPolicy on;
  std::string config = text_of(on.files / "tiny.yaml");
  const auto begin = config.find("reward:");
  config.erase(begin, config.find('\n', begin) - begin);
  std::ofstream(on.files / "tiny.yaml") << config;
  CompanyRun run(on.files, "run", on.two());
  ASSERT_EQ(run.wait(), 0) << run.output();
  EXPECT_LT(metrics_of(on.files / "run").at(kUpdates).value("kl/teacher", 99.0),
            metrics_of(on.files / "run").at(1).value("kl/teacher", -1.0));
}

// Each is refused before anything is sampled; the message names the flag to change.
TEST(Distillation, WhatCannotWorkIsRefusedWithTheFlagToChange) {
  const OnPolicy on;
  model::ModelSpec spec = tiny_llama();
  spec.vocab = 263;
  const std::string larger = make_tiny_teacher(on.files.folder(), "larger", spec);
  spec = tiny_llama();
  spec.context = 16;
  const std::string shorter = make_tiny_teacher(on.files.folder(), "shorter", spec);
  const std::string renamed = make_tiny_teacher(on.files.folder(), "renamed");
  std::string tokens = text_of(std::filesystem::path(renamed) / "tokenizer.json");
  tokens.replace(tokens.find("\"A\":65"), 6, "\"B\":65")
      .replace(tokens.find("\"B\":66"), 6, "\"A\":66");
  std::ofstream(std::filesystem::path(renamed) / "tokenizer.json") << tokens;
  using Words = std::vector<std::string>;
  const std::vector<std::pair<Words, std::string>> cases = {
      {{"--teacher.model_name_or_path", larger}, "has a vocabulary of 263 tokens"},
      {{"--teacher.model_name_or_path", shorter}, "has a context of 16 tokens"},
      {{"--teacher.model_name_or_path", renamed}, "a teacher has the same tokenizer"},
      {{"--teacher.model_name_or_path", "/no/such/folder"}, "/no/such/folder"},
      {{"--teacher.model_name_or_path", on.a + "," + on.b}, "0 domain(s) for 2 teacher(s)"},
      {{"--teacher.model_name_or_path", on.a, "--teacher.domains", "a,b", "--teacher.domain_key",
        "x"},
       "2 domain(s) for 1 teacher(s)"},
      {{"--teacher.model_name_or_path", on.a + "," + on.b, "--teacher.domains", "a,b"},
       "teacher.domain_key and teacher.domains go together"},
      {{"--teacher.model_name_or_path", on.a + "," + on.b, "--teacher.domains", "a,a",
        "--teacher.domain_key", "answer"},
       "'a' comes twice"},
      {{"--teacher.model_name_or_path", on.a + "," + on.b, "--teacher.domains", "other,a",
        "--teacher.domain_key", "answer"},
       "'other' comes twice, or before the last"},
      {{"--teacher.model_name_or_path", on.a + "," + on.b, "--teacher.domains", "a,b",
        "--teacher.domain_key", "answer"},
       "no teacher for 'c' in column 'answer'"},
      {{"--teacher.model_name_or_path", on.a + "," + on.b, "--teacher.domains", "a,other",
        "--teacher.domain_key", "field"},
       "no column 'field'"},
      {{"--teacher.http", "127.0.0.1:8000"}, "teacher.http"},
      {{"--teacher.http", "http://127.0.0.1:9/v1", "--rollout.temperature", "0.7"},
       "servers give log-probs at temperature 1"},
      {{"--teacher.coef", "0.5"}, "teacher.coef: is read only with a teacher"},
      {{"--teacher.reward_coef", "0.5"}, "teacher.reward_coef: is read only with a teacher"},
      {{"--teacher.model_name_or_path", on.a, "--teacher.coef", "0"}, "teacher.coef"},
      {{"--teacher.model_name_or_path", on.a, "--algo.objective", "gspo", "--algo.reducer",
        "sample_mean"},
       "a teacher gives an advantage to each token"}};
  for (const auto& [more, part] : cases) {
    const Ended ended = troupe_ends(on.files.words("refused") + more, on.files / "log", 60);
    const bool of_data = part.starts_with("no teacher") || part.starts_with("no column");
    EXPECT_EQ(ended.status, of_data ? 4 : 2) << ended.text;
    EXPECT_NE(ended.text.find(part), std::string::npos) << part << "\n" << ended.text;
    EXPECT_FALSE(std::filesystem::exists(on.files / "refused" / "metrics.jsonl")) << part;
  }
  const TinySupervised rows;
  const auto off_policy = [&](const Words& more) {
    Words words = rows.words(methods().front(), "refused", 2);
    words[1] = "distill";
    return words + more;
  };
  const Words taught = {"--teacher.model_name_or_path", rows.teacher()};
  const std::vector<std::pair<Words, std::string>> off = {
      {{}, "distill needs a teacher"},
      {taught + Words{"--distill.beta", "1.5"}, "distill.beta"},
      {taught + Words{"--distill.coef", "0"}, "distill.coef"},
      {taught + Words{"--distill.temperature", "0"}, "distill.temperature"},
      {taught + Words{"--actor.device", "cuda"}, "distill trains on processors only"},
      {taught + Words{"--teacher.http", "http://127.0.0.1:9/v1"}, "teacher.http"},
      {taught + Words{"--lmbda", "0.5"}, "has no counterpart: `troupe train distill`"},
      {{"--teacher.model_name_or_path", larger}, "has a vocabulary of 263 tokens"}};
  for (const auto& [more, part] : off) {
    const Ended ended = troupe_ends(off_policy(more), on.files / "log", 60);
    EXPECT_EQ(ended.status, 2) << ended.text;
    EXPECT_NE(ended.text.find(part), std::string::npos) << part << "\n" << ended.text;
  }
}

}  // namespace troupe::test

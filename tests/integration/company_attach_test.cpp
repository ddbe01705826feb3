// A reward that is attached in the background: the command returns when it scores, its process is
// the terminal's no more, and `detach` ends it without a word of error.
#include "company_support.hpp"
#include "processes.hpp"

namespace troupe::test {
namespace {

// The number that follows `word` in a text; 0 when it is not there.
pid_t number_after(const std::string& text, const std::string& word) {
  const auto at = text.find(word);
  return at == text.npos ? 0 : std::atoi(text.c_str() + at + word.size());
}

// True once the log has these words: another process writes it, a moment after they were said.
bool attach_log_says(const std::filesystem::path& log, const std::string& words) {
  return within(30, [&] { return text_of(log).find(words) != std::string::npos; });
}

// Nothing that a test started outlives it.
struct EndedWithTheTest {
  pid_t pid;
  ~EndedWithTheTest() { ::kill(pid, SIGKILL); }
  bool gone() const {
    const auto facts = facts_of(pid);
    return !facts || facts->state == 'Z';
  }
};

}  // namespace

TEST(CompanyAttach, InTheBackgroundUntilItIsDetached) {
  const TinyRun files;
  CompanyRun run(
      files, "run",
      {"--train.max_steps", "100000", "--train.num_episodes", "100000", "--ckpt.save_steps", "0"});
  ASSERT_TRUE(run.await_steps(1)) << run.output();
  const std::string folder = run.folder().string();

  // What cannot be attached is told by the command, not left to a log.
  const Ended refused = troupe_ends({"attach", "reward", "--join", folder, "--name", "broken",
                                     "--python", (files / "no.py").string(), "--background"},
                                    files / "refused.out", 30);
  EXPECT_EQ(refused.status, 2) << refused.text;
  EXPECT_EQ(refused.text.rfind("error: ", 0), 0u) << refused.text;
  EXPECT_NE(refused.text.find("no.py"), std::string::npos) << refused.text;

  const Ended attached = troupe_ends({"attach", "reward", "--join", folder, "--name", "letters",
                                      "--rule", "regex", "--pattern", "[a-z]", "--background"},
                                     files / "attached.out", 30);
  ASSERT_EQ(attached.status, 0) << attached.text;
  EXPECT_NE(attached.text.find("reward letters scores from update "), std::string::npos);
  EXPECT_NE(attached.text.find("`troupe detach reward --join " + folder + " --name letters`"),
            std::string::npos)
      << attached.text;
  const std::filesystem::path log = run.folder() / "nodes" / "attach-letters.log";
  EXPECT_NE(attached.text.find("its log is " + log.string()), std::string::npos) << attached.text;
  const pid_t pid = number_after(attached.text, "it scores in process ");
  ASSERT_GT(pid, 1) << attached.text;
  const EndedWithTheTest process{pid};
  EXPECT_EQ(::getsid(pid), pid) << "a session of its own: no terminal can end it";
  ::kill(pid, SIGHUP);

  // It scores for some updates, then goes.
  const std::filesystem::path ledger = run.folder() / "ledger.log";
  ASSERT_TRUE(within(60, [&] { return text_of(ledger).find("\"letters\"") != std::string::npos; }))
      << run.output() << text_of(log);
  const Ended detached = troupe_ends({"detach", "reward", "--join", folder, "--name", "letters"},
                                     files / "detached.out", 60);
  EXPECT_EQ(detached.status, 0) << detached.text;
  EXPECT_TRUE(within(30, [&] { return process.gone(); })) << text_of(log);
  EXPECT_TRUE(attach_log_says(log, "reward letters is needed no more")) << text_of(log);
  EXPECT_EQ(text_of(log).find("error"), std::string::npos) << text_of(log);
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(30), 130) << run.output();
}

// The rule `code` joins a run that goes on: programs of a random model are no programs, which is a
// score of 0, and not a missing one.
TEST(CompanyAttach, TheRuleThatRunsProgramsScoresARunThatGoesOn) {
  const TinyRun files;
  {
    std::ofstream rows(files / "programs.jsonl");
    for (int i = 0; i < 24; ++i) {
      rows << nlohmann::json{{"prompt", "write f" + std::to_string(i)},
                             {"answer", R"(["assert f(1) == 2", "assert 1 + 1 == 2"])"}}
                  .dump()
           << "\n";
    }
  }
  CompanyRun run(
      files, "run",
      {"--train.max_steps", "100000", "--train.num_episodes", "100000", "--ckpt.save_steps", "0",
       "--data.prompt_dataset", (files / "programs.jsonl").string()});
  ASSERT_TRUE(run.await_steps(1)) << run.output();
  const std::string folder = run.folder().string();
  const Ended attached =
      troupe_ends({"attach", "reward", "--join", folder, "--name", "tests", "--rule", "code",
                   "--workers", "2", "--code-timeout", "5", "--background"},
                  files / "attached.out", 60);
  ASSERT_EQ(attached.status, 0) << attached.text;
  const EndedWithTheTest process{number_after(attached.text, "it scores in process ")};
  const std::filesystem::path metrics = run.folder() / "metrics.jsonl";
  EXPECT_TRUE(within(60, [&] {
    return text_of(metrics).find("\"reward/extra/code_stopped\"") != std::string::npos;
  })) << run.output();
  const Ended detached = troupe_ends({"detach", "reward", "--join", folder, "--name", "tests"},
                                     files / "detached.out", 60);
  EXPECT_EQ(detached.status, 0) << detached.text;
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(30), 130) << run.output();
  int scored = 0;
  for (const auto& [step, row] : metrics_of(run.folder())) {
    if (!row.contains("reward/tests")) continue;
    ++scored;
    EXPECT_EQ(row["reward/missing"], 0.0) << step;
    const double score = row["reward/tests"].get<double>();
    EXPECT_TRUE(score >= 0 && score <= 1) << score;
  }
  EXPECT_GT(scored, 0) << text_of(metrics);
}

// The last process of a reward's name is frozen when it is told to leave, so that the next one
// comes before it has gone: the name is the next one's, and the end of the last is no loss of it.
TEST(CompanyAttach, TheNameOfADetachedRewardIsFreeWhileItsProcessStillLives) {
  const TinyRun files;
  CompanyRun run(files, "run",
                 {"--train.max_steps", "100000", "--train.num_episodes", "100000",
                  "--ckpt.save_steps", "0", "--rollout.max_new_tokens", "150"});
  ASSERT_TRUE(run.await_steps(1)) << run.output();
  const std::string folder = run.folder().string();
  const auto attach = [&](const std::string& log) {
    return troupe_ends({"attach", "reward", "--join", folder, "--name", "other", "--rule", "regex",
                        "--pattern", "[a-z]", "--background", "--log", (files / log).string()},
                       files / "attached.out", 60);
  };
  const std::vector<std::string> detach = {"detach", "reward", "--join", folder, "--name", "other"};
  int met = 0;  // how often the next one came before the last had gone
  for (int i = 0; i < 60 && met < 2; ++i) {
    const Ended first = attach("first.log");
    ASSERT_EQ(first.status, 0) << first.text;
    const EndedWithTheTest last{number_after(first.text, "it scores in process ")};
    ASSERT_GT(last.pid, 1) << first.text;
    ::kill(last.pid, SIGSTOP);
    Background told(std::vector<std::string>{troupe_program()} + detach, files / "detached.out");
    const auto left = told.wait(0.8);  // none: a group still needs a score of the frozen one
    const bool waits = !left.has_value();
    const Ended second = waits ? Ended{} : attach("second.log");
    const bool meets = !waits && !last.gone();
    ::kill(last.pid, SIGCONT);
    ASSERT_EQ(waits ? told.wait(60).value_or(-1) : *left, 0) << told.text();
    if (waits) continue;
    met += meets ? 1 : 0;
    ASSERT_EQ(second.status, 0) << second.text;
    const EndedWithTheTest next{number_after(second.text, "it scores in process ")};
    EXPECT_TRUE(within(60, [&] { return last.gone(); }));
    const Ended detached = troupe_ends(detach, files / "detached.out", 60);
    ASSERT_EQ(detached.status, 0) << "the run has forgotten it: " << detached.text;
    EXPECT_TRUE(within(60, [&] { return next.gone(); }));
  }
  EXPECT_EQ(met, 2);
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(30), 130) << run.output();
  EXPECT_EQ(run.output().find("belongs to another process"), std::string::npos) << run.output();
}

// A run whose folder was removed cannot come back: nobody waits for it for ever.
TEST(CompanyAttach, ItEndsWithTheFolderOfItsRun) {
  const TinyRun files;
  CompanyRun run(files, "run",
                 {"--train.max_steps", "100000", "--train.num_episodes", "100000",
                  "--ckpt.save_steps", "0", "--cluster.head_wait_s", "1"});
  ASSERT_TRUE(run.await_steps(1)) << run.output();
  const std::filesystem::path log = files / "attach.log";
  const Ended attached =
      troupe_ends({"attach", "reward", "--join", run.folder().string(), "--name", "letters",
                   "--rule", "regex", "--pattern", "[a-z]", "--background", "--log", log.string()},
                  files / "attached.out", 30);
  ASSERT_EQ(attached.status, 0) << attached.text;
  const EndedWithTheTest process{number_after(attached.text, "it scores in process ")};
  ASSERT_GT(process.pid, 1) << attached.text;
  ASSERT_FALSE(process.gone());
  run.signal(SIGKILL);
  ASSERT_TRUE(run.all_nodes_gone(30));
  std::filesystem::remove_all(run.folder());
  EXPECT_TRUE(within(60, [&] { return process.gone(); })) << text_of(log);
  EXPECT_TRUE(attach_log_says(log, "is gone, so reward letters ends")) << text_of(log);
}

}  // namespace troupe::test

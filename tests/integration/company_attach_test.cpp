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
  const std::string told = text_of(log);
  EXPECT_NE(told.find("reward letters is needed no more"), std::string::npos) << told;
  EXPECT_EQ(told.find("error"), std::string::npos) << told;
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(30), 130) << run.output();
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
  EXPECT_NE(text_of(log).find("is gone, so reward letters ends"), std::string::npos)
      << text_of(log);
}

}  // namespace troupe::test

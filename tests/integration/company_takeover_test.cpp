// A head that is killed, frozen or superseded: nodes keep their roles, and the next head takes them
// over, with the bits of a run that nothing disturbed.
#include "apps/session/node/pass_file.hpp"
#include "company_support.hpp"
#include "log_support.hpp"
#include "runtime/store/atomic_folder.hpp"

#include <gtest/gtest.h>

namespace troupe::test {
namespace {

using Words = std::vector<std::string>;
using Pids = std::map<std::string, pid_t>;

// The node processes of a run that live, whoever started them.
Pids players(const std::filesystem::path& run) {
  Pids found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(run / "nodes", error)) {
    if (entry.path().extension() != ".pid") continue;
    if (const auto holder = session::OtherProcess::holder_of(entry.path()))
      found[entry.path().stem().string()] = holder->pid();
  }
  return found;
}

bool all_gone(const std::filesystem::path& run, double limit_s) {
  return within(limit_s, [&] { return players(run).empty(); });
}

// What is left when a test fails.
class Rest {
 public:
  explicit Rest(std::filesystem::path run) : run_(std::move(run)) {}
  ~Rest() {
    for (const auto& [name, pid] : players(run_))
      ::kill(pid, SIGKILL);
  }

 private:
  const std::filesystem::path run_;
};

// Saves at the end alone, so that all that is learned before it lives in the policy.
const Words kLongRun = {"--train.max_steps",        "40", "--ckpt.save_steps", "0",
                        "--rollout.max_new_tokens", "12"};

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void kill_head(CompanyRun& run, std::size_t steps) {
  ASSERT_TRUE(run.await_steps(steps)) << run.output();
  run.signal(SIGKILL);
  run.wait();
}

// How many updates the policy's process has trained on, from the run's last report.
int updates_of_policy(const std::filesystem::path& run) {
  const auto status = nlohmann::json::parse(text_of(run / "status.json"), nullptr, false);
  for (const auto& role : status.value("roles", nlohmann::json::array())) {
    if (role.value("name", "") == "policy/0") return role["amounts"].value("updates", -1);
  }
  return -1;
}

// The last head found roles that fit the log, and kept them.
void expect_that_roles_play_on(const CompanyRun& last) {
  EXPECT_NE(last.log().find("policy/0 keeps running"), std::string::npos) << last.log();
  EXPECT_EQ(last.log().find("do not fit"), std::string::npos) << last.log();
  EXPECT_EQ(last.log().find("is started again"), std::string::npos) << last.log();
}

// Kills two heads, after so many updates each; the processes of the first play on for the second.
// Gives those processes.
Pids kill_two_heads(const TinyRun& files,
                    const Words& words,
                    std::size_t first,
                    std::size_t lives,
                    std::size_t second) {
  Pids found;
  {
    CompanyRun killed(files, "run", words);
    kill_head(killed, first);
    found = players(files / "run");
  }
  CompanyRun killed(files, "run", words);
  EXPECT_TRUE(killed.await_steps(lives)) << killed.output();
  EXPECT_EQ(players(files / "run"), found);
  kill_head(killed, second);
  return found;
}

// The run in "run" against one of these words that nothing disturbs.
void expect_bits_of_a_calm_run(const TinyRun& files, const Words& words) {
  CompanyRun calm(files, "calm", words);
  ASSERT_EQ(calm.wait(), 0) << calm.output();
  expect_same_bits(files / "calm", files / "run", 40);
}

class CompanyTakeover : public ::testing::TestWithParam<Words> {};

}  // namespace

// Kills the head twice; the policy learns each update once.
TEST_P(CompanyTakeover, TheNextHeadGoesOnWithTheSameProcesses) {
  const TinyRun files;
  const Words words = joined(kLongRun, GetParam());
  const bool synchronous =
      std::find(words.begin(), words.end(), "--train.staleness_max") == words.end();
  const Rest rest(files / "run");
  kill_two_heads(files, words, 5, 10, 12);
  CompanyRun last(files, "run", words);
  ASSERT_EQ(last.wait(), 0) << last.output();
  expect_that_roles_play_on(last);
  EXPECT_NE(last.log().find("generator/0 keeps running"), std::string::npos) << last.log();
  EXPECT_TRUE(all_gone(files / "run", 10));
  expect_clean_ledger(last.folder());
  if (!synchronous) return;
  expect_bits_of_a_calm_run(files, words);
}

INSTANTIATE_TEST_SUITE_P(
    Runs,
    CompanyTakeover,
    ::testing::Values(Words{},
                      Words{"--algo.advantage.estimator", "gae", "--rollout.generators", "2"},
                      Words{"--train.staleness_max", "2", "--rollout.generators", "2"}),
    [](const auto& run) { return "no" + std::to_string(run.index); });

// No checkpoint covers the evaluations, and the policy has learned past them: its answers are
// repeated, and so are their results.
TEST(CompanyTakeover, ThePolicyIsKeptPastEvaluations) {
  const TinyRun files;
  const Words words = evaluated_run(files);
  const Rest rest(files / "run");
  const Pids first = kill_two_heads(files, words, 12, 16, 25);
  CompanyRun last(files, "run", words);
  ASSERT_TRUE(last.await_steps(26)) << last.output();
  EXPECT_EQ(players(files / "run"), first);
  ASSERT_EQ(last.wait(), 0) << last.output();
  expect_that_roles_play_on(last);
  const int learned = updates_of_policy(files / "run");
  EXPECT_GT(learned, 0);
  EXPECT_LE(learned, 40) << "each update was learned once";
  expect_each_evaluation_once(files / "run", 12);
  expect_clean_ledger(last.folder());
  CompanyRun calm(files, "calm", words);
  ASSERT_EQ(calm.wait(), 0) << calm.output();
  EXPECT_EQ(metric_rows(files / "run"), metric_rows(files / "calm"));
  expect_same_bits(files / "calm", files / "run", 40);
}

TEST(CompanyTakeover, WithoutAnotherHeadNoProcessIsLeft) {
  const TinyRun files;
  const Rest rest(files / "run");
  CompanyRun killed(files, "run", joined(kLongRun, {"--cluster.head_wait_s", "2"}));
  kill_head(killed, 2);
  EXPECT_FALSE(players(files / "run").empty());
  EXPECT_TRUE(all_gone(files / "run", 30));
}

TEST(CompanyTakeover, WithoutAWaitTheNodesEndWithTheHead) {
  const TinyRun files;
  const Rest rest(files / "run");
  CompanyRun killed(files, "run", joined(kLongRun, {"--cluster.head_wait_s", "0"}));
  kill_head(killed, 2);
  EXPECT_TRUE(all_gone(files / "run", 10));
}

// A key that may change on a resume: the run goes on, with roles of its own configuration.
TEST(CompanyTakeover, RolesOfAnotherConfigurationAreStartedAnew) {
  const TinyRun files;
  const Rest rest(files / "run");
  {
    CompanyRun killed(files, "run", kLongRun);
    kill_head(killed, 5);
  }
  CompanyRun next(files, "run", joined(kLongRun, {"--ckpt.save_minutes", "7"}));
  ASSERT_EQ(next.wait(), 0) << next.output();
  EXPECT_EQ(next.log().find("keeps running"), std::string::npos) << next.log();
  expect_clean_ledger(next.folder());
  expect_bits_of_a_calm_run(files, kLongRun);
}

// The policy dies with the head: generators with its weights must not play on.
TEST(CompanyTakeover, WithoutThePolicyTheGeneratorsStartAnew) {
  const TinyRun files;
  const Rest rest(files / "run");
  {
    CompanyRun killed(files, "run", kLongRun);
    kill_head(killed, 5);
    const auto now = players(files / "run");
    ASSERT_TRUE(now.contains("policy"));
    ::kill(now.at("policy"), SIGKILL);
    EXPECT_TRUE(within(10, [&] { return !players(files / "run").contains("policy"); }));
  }
  CompanyRun next(files, "run", kLongRun);
  ASSERT_EQ(next.wait(), 0) << next.output();
  // Either it came after the new policy and was not kept, or before and was started again.
  const bool kept = next.log().find("generator/0 keeps running") != std::string::npos;
  const bool again =
      next.log().find("its weights are those of a policy that is gone") != std::string::npos;
  EXPECT_EQ(kept, again) << next.log();
  expect_bits_of_a_calm_run(files, kLongRun);
}

TEST(CompanyTakeover, AFrozenHeadLosesNothing) {
  const TinyRun files;
  const Rest rest(files / "run");
  CompanyRun run(files, "run", kLongRun);
  ASSERT_TRUE(run.await_steps(3)) << run.output();
  const Pids before = players(files / "run");
  run.signal(SIGSTOP);
  const std::size_t frozen = run.steps();
  // Longer than a node may be silent; what the others have to do meanwhile ends by itself.
  EXPECT_FALSE(within(5, [&] { return run.steps() > frozen + 1; }));
  run.signal(SIGCONT);
  ASSERT_TRUE(run.await_steps(6) || run.steps() == 40) << run.output();
  ASSERT_EQ(run.wait(), 0) << run.output();
  EXPECT_EQ(run.log().find("is lost"), std::string::npos) << run.log();
  EXPECT_EQ(run.log().find("going on from the last checkpoint"), std::string::npos) << run.log();
  expect_bits_of_a_calm_run(files, kLongRun);
}

// As when a host that shares the folder has taken the run over: locks of files do not show it.
TEST(CompanyTakeover, AHeadThatWasSupersededWritesNothingMore) {
  const TinyRun files;
  const Rest rest(files / "run");
  CompanyRun run(files, "run", joined(kLongRun, {"--train.max_steps", "4000"}));
  ASSERT_TRUE(run.await_steps(3)) << run.output();
  const auto file = files / "run" / "generation.json";
  auto object = nlohmann::json::parse(text_of(file));
  object["generation"] = 2;
  object["head"] = "another";
  ASSERT_TRUE(store::replace_file(file, object.dump()));
  EXPECT_EQ(run.wait(), 5) << run.output();
  EXPECT_NE(run.output().find("another process has taken this run over"), std::string::npos)
      << run.output();
  EXPECT_TRUE(std::filesystem::is_empty(files / "run" / "ckpt"));
  EXPECT_EQ(nlohmann::json::parse(text_of(file))["generation"], 2);
}

}  // namespace troupe::test

// Node processes that are killed or frozen in the middle of a run: they are replaced, nothing is
// lost or doubled, and at staleness 0 the run ends with the bits of an undisturbed one.
#include "company_support.hpp"
#include "runtime/core/rng.hpp"

namespace troupe::test {
namespace {

constexpr int kUpdates = 10;

// What strikes at which updates; the run goes on to its end by itself.
void strike_each(const std::vector<std::string>& names, int signal_number, const char* note) {
  const TinyRun files;
  CompanyRun whole(files, "whole");
  ASSERT_EQ(whole.wait(), 0) << whole.output();
  core::Rng rng(29);
  for (const std::string& name : names) {
    CompanyRun run(files, name);
    const std::uint64_t step = 1 + rng.next_below(kUpdates - 5);
    const pid_t pid = run.node_after(name, step);
    ASSERT_GT(pid, 0) << name << " after update " << step << "\n" << run.output();
    ASSERT_EQ(::kill(pid, signal_number), 0);
    if (signal_number == SIGSTOP) {
      // Some go on after they were given up: whatever they do then, they do no harm.
      EXPECT_TRUE(within(30, [&] {
        return run.log().find("node/" + name + " is lost") != std::string::npos;
      })) << run.log();
      if (name == "reward" || name == "policy") ::kill(pid, SIGCONT);
    }
    ASSERT_EQ(run.wait(), 0) << name << " after update " << step << "\n" << run.output();
    EXPECT_NE(run.log().find("node/" + name + " is lost: " + note), std::string::npos) << run.log();
    EXPECT_TRUE(run.all_nodes_gone());
    expect_clean_ledger(run.folder());
    EXPECT_EQ(oldest_age(run.folder()), 0u);
    EXPECT_EQ(hashes_of(whole.folder() / "ckpt" / checkpoint_name(kUpdates)),
              hashes_of(run.folder() / "ckpt" / checkpoint_name(kUpdates)))
        << name << " after update " << step;
  }
}

}  // namespace

TEST(CompanyFault, KilledProcessesAreReplacedAndChangeNoBit) {
  strike_each({"generator-0", "reward", "reference", "policy"}, SIGKILL,
              "its process was ended by signal 9");
}

TEST(CompanyFault, FrozenProcessesAreNoticedReplacedAndChangeNoBit) {
  strike_each({"generator-0", "reward", "reference", "policy"}, SIGSTOP, "frozen");
}

// Its newest checkpoint is then the one that it branched off from, and never the model.
TEST(CompanyFault, ABranchThatLosesItsPolicyGoesOnFromWhereItBranchedOff) {
  const TinyRun files;
  CompanyRun first(files, "first", {"--train.max_steps", "3"});
  ASSERT_EQ(first.wait(), 0) << first.output();
  const std::vector<std::string> branch = {
      "--resume",          (first.folder() / "ckpt/step_000003").string(),
      "--train.max_steps", std::to_string(kUpdates),
      "--ckpt.save_steps", "0"};
  CompanyRun whole(files, "whole", branch);
  ASSERT_EQ(whole.wait(), 0) << whole.output();
  CompanyRun run(files, "run", branch);
  const pid_t pid = run.node_after("policy", 2);
  ASSERT_GT(pid, 0) << run.output();
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  ASSERT_EQ(run.wait(), 0) << run.output();
  EXPECT_NE(run.log().find("node/policy is lost"), std::string::npos) << run.log();
  EXPECT_EQ(metrics_of(whole.folder()).begin()->first, 4u) << "what is compared is of the branch";
  EXPECT_EQ(metrics_of(whole.folder()), metrics_of(run.folder()));
  EXPECT_EQ(hashes_of(whole.folder() / "ckpt" / checkpoint_name(kUpdates)),
            hashes_of(run.folder() / "ckpt" / checkpoint_name(kUpdates)));
}

TEST(CompanyFault, AStaleRunSurvivesTheLossOfAGenerator) {
  const TinyRun files;
  CompanyRun run(
      files, "run",
      {"--train.staleness_max", "1", "--rollout.generators", "2", "--train.max_steps", "20"});
  const pid_t pid = run.node_after("generator-1", 5);
  ASSERT_GT(pid, 0) << run.output();
  ::kill(pid, SIGKILL);
  ASSERT_EQ(run.wait(), 0) << run.output();
  expect_clean_ledger(run.folder());
  EXPECT_LE(oldest_age(run.folder()), 1u);
}

}  // namespace troupe::test

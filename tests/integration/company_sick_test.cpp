// Parts of a run that live and fail: engines and weights that answer with errors, a node without
// the model. The run goes on with whoever can do the work, and at staleness 0 with the same bits.
#include "company_support.hpp"
#include "tests/integration/join_support.hpp"

namespace troupe::test {
namespace {

// Set for the processes that are started while it lives.
struct Faults {
  explicit Faults(const char* plan) { ::setenv("TROUPE_FAULTS", plan, 1); }
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;
  ~Faults() { ::unsetenv("TROUPE_FAULTS"); }
};

}  // namespace

TEST(CompanySick, EnginesAndWeightsThatFailChangeNoBit) {
  constexpr int kSteps = 10;
  const TinyRun files;
  const std::vector<std::string> two = {"--rollout.generators", "2"};
  CompanyRun calm(files, "calm", two);
  ASSERT_EQ(calm.wait(), 0) << calm.output();
  const Faults faults(
      // No more than two steps: a third could hit the same ticket, which then ends the run.
      "generator/0 step resources 5, generator/1 step internal 8, generator/0 fetch peer_lost 2,"
      "generator/1 fetch deadline 2, generator/1 fetch deadline 3, generator/1 fetch deadline 4,"
      "generator/1 fetch resources 5, generator/0 fetch data 6");
  CompanyRun sick(files, "sick", two);
  ASSERT_EQ(sick.wait(), 0) << sick.output();
  for (const char* const said :
       {"generator/0 is started again: step 5 fails", "generator/1 is started again: step 8 fails",
        "generator/1 could not take new weights: weights of version"}) {
    EXPECT_NE(sick.log().find(said), std::string::npos) << said << "\n" << sick.log();
  }
  expect_same_bits(calm.folder(), sick.folder(), kSteps);
  expect_clean_ledger(sick.folder());
  EXPECT_TRUE(sick.all_nodes_gone());
}

// An engine's step that never returns: its process is ended and started again, and others do its
// groups meanwhile.
TEST(CompanySick, AWedgedEngineCostsItsProcessAndNoBit) {
  constexpr int kSteps = 10;
  const TinyRun files;
  const std::vector<std::string> two = {"--rollout.generators", "2", "--cluster.job_limit_s", "1"};
  CompanyRun calm(files, "calm", two);
  ASSERT_EQ(calm.wait(), 0) << calm.output();
  const Faults faults("generator/1 step wedge 20");
  CompanyRun sick(files, "sick", two);
  ASSERT_EQ(sick.wait(), 0) << sick.output();
  EXPECT_NE(sick.log().find("node/generator-1 is lost: its process ended with status 70"),
            std::string::npos)
      << sick.log();
  const std::string said = text_of(sick.folder() / "nodes" / "generator-1.log");
  EXPECT_NE(said.find("a job of thread 'compute' (step) has run for"), std::string::npos) << said;
  expect_same_bits(calm.folder(), sick.folder(), kSteps);
  expect_clean_ledger(sick.folder());
  EXPECT_TRUE(sick.all_nodes_gone());
}

TEST(CompanySick, APlanOfFaultsThatCannotBeReadIsNamed) {
  const TinyRun files;
  const Faults faults("generator/0 stop resources 5");
  CompanyRun run(files, "run");
  EXPECT_EQ(run.wait(), 2) << run.output();
  EXPECT_NE(run.output().find("TROUPE_FAULTS: 'generator/0 stop resources 5' is not"),
            std::string::npos)
      << run.output();
}

class NodeWithoutTheModel : public Joining {
 protected:
  // A program of ours that looks up relative paths in this folder.
  Background start_in(const std::filesystem::path& folder, const Words& words, const char* log) {
    const Words where = {"env", "-C", folder.string(),
                         std::filesystem::absolute(troupe_program()).string()};
    return Background(where + words, files_ / (std::string(log) + ".log"));
  }
  Words reference(const std::string& name) {
    return {"node", "--join", (files_ / "run").string(), "--roles", "reference", "--name", name};
  }
};

TEST_F(NodeWithoutTheModel, IsStruckOffByNameAndTheRunGoesOnWithTheNext) {
  const std::filesystem::path model = files_.model(), elsewhere = files_ / "elsewhere";
  std::filesystem::create_directory(elsewhere);
  Words words = files_.words("run");
  std::replace(words.begin(), words.end(), files_.model(), model.filename().string());
  const Words more = {"--cluster.local_roles", "policy,generator,reward",
                      "--train.max_steps",     "100000",
                      "--ckpt.save_steps",     "100000"};
  Background run = start_in(model.parent_path(), words + more, "head");
  ASSERT_FALSE(company_of("run").empty()) << run.text();
  Background good = start_in(model.parent_path(), reference("good"), "good");
  ASSERT_TRUE(within(40, [&] { return updates_of("run") > 1; })) << run.text() << good.text();
  Background spare = start_in(elsewhere, reference("spare"), "spare");
  ASSERT_TRUE(within(20, [&] { return spare.says("is in the company"); })) << spare.text();
  good.kill();
  ASSERT_TRUE(within(20, [&] {
    return run.says("node/spare cannot run reference/0: no model folder at ") &&
           run.says(
               "no node is left that can run reference/0; the run waits for one with --roles "
               "reference");
  })) << run.text();
  EXPECT_TRUE(run.running()) << run.text();
  const std::size_t done = updates_of("run");
  Background late = start_in(model.parent_path(), reference("late"), "late");
  EXPECT_TRUE(within(40, [&] { return updates_of("run") > done + 1; })) << run.text();
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(30), 130) << run.text();
  EXPECT_EQ(spare.wait(15), 0) << spare.text();
  expect_clean_ledger("run");
}

}  // namespace troupe::test

// Runs with ranks of policy and critic, and the calm run in one process that they must equal.
#pragma once

#include "company_support.hpp"

namespace troupe::test {

using Words = std::vector<std::string>;

inline const Words kGae = {"--algo.advantage.estimator", "gae", "--critic.adam.lr", "1e-3"};

// A calm run in one process with these lanes, and what other runs must equal.
class Gangs : public ::testing::Test {
 protected:
  explicit Gangs(const model::ModelSpec& spec = tiny_llama()) : files_(spec) {}

  CompanyRun& calm(const Words& more = {}) {
    calm_ = std::make_unique<CompanyRun>(
        files_, "calm", Words{"--cluster.transport", "loopback", "--train.lanes", "2"} + more);
    EXPECT_EQ(calm_->wait(), 0) << calm_->output();
    return *calm_;
  }
  void expect_as_calm(CompanyRun& run, int steps = 10) {
    ASSERT_EQ(run.wait(), 0) << run.output() << run.log();
    EXPECT_TRUE(run.all_nodes_gone());
    expect_clean_ledger(run.folder());
    expect_same_bits(calm_->folder(), run.folder(), steps);
  }
  void expect_survives(const std::string& node, int signal, const Words& more = {}) {
    calm(more);
    CompanyRun run(files_, "struck", Words{"--actor.ranks", "2"} + more);
    const pid_t pid = run.node_after(node, 3);
    ASSERT_GT(pid, 0) << run.output();
    ASSERT_EQ(::kill(pid, signal), 0);
    expect_as_calm(run);
    EXPECT_NE(run.log().find("going on from "), std::string::npos) << run.log();
  }

  TinyRun files_;
  std::unique_ptr<CompanyRun> calm_;
};

}  // namespace troupe::test

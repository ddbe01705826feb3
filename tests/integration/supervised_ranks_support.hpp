// Supervised runs with several ranks, and the run in one process that they must equal.
#pragma once

#include "company_support.hpp"
#include "supervised_support.hpp"

namespace troupe::test {

using Words = std::vector<std::string>;
namespace fs = std::filesystem;

inline constexpr int kLastStep = 9;

class SupervisedRanks : public ::testing::Test {
 protected:
  Words words(const Method& method, const std::string& run, const Words& more = {}) const {
    return files_.words(method, run, kLastStep) + more;
  }
  // A run in one process with two lanes.
  fs::path calm(const Method& method, const Words& more = {}) {
    const ProgramRun run = run_troupe(words(method, "calm", Words{"--train.lanes", "2"} + more));
    EXPECT_EQ(run.status, 0) << run.output;
    return files_ / "calm";
  }
  void expect_as_calm(CompanyRun& run) {
    ASSERT_EQ(run.wait(), 0) << run.output() << run.log();
    EXPECT_TRUE(run.all_nodes_gone());
    EXPECT_EQ(lines_of(files_ / "calm"), lines_of(run.folder()));
    const std::string last = "ckpt/" + checkpoint_name(kLastStep);
    const auto hashes = hashes_of(files_ / "calm" / last);
    EXPECT_TRUE(hashes.contains("policy/weights.safetensors"));
    EXPECT_TRUE(hashes.contains("model/model.safetensors"));
    EXPECT_EQ(hashes, hashes_of(run.folder() / last));
  }
  void expect_survives(const Method& method, const std::string& node, const Words& more = {}) {
    calm(method, more);
    CompanyRun run(files_ / "struck", words(method, "struck", Words{"--actor.ranks", "2"} + more));
    const pid_t pid = run.node_after(node, 4);
    ASSERT_GT(pid, 0) << run.output();
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
    expect_as_calm(run);
    EXPECT_NE(run.log().find(" is lost: the connection"), std::string::npos) << run.log();
  }
  // Held-out rows by the hundred: most of the run's time is spent on them.
  Words long_evaluations(const Method& method) const {
    std::ofstream many(files_.file("many.jsonl"));
    const std::string rows = text_of(files_ / method.file);
    for (int i = 0; i < 40; ++i)
      many << rows;
    return {"--eval.dataset", files_.file("many.jsonl"), "--eval.steps", "1"};
  }
  const Method &sft_ = methods()[0], &dpo_ = methods()[3];
  const TinySupervised files_;
};

}  // namespace troupe::test

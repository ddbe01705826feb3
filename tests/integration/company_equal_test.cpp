// One run over one process and over several gives the same bits; a bound on staleness is kept.
#include "company_support.hpp"

namespace troupe::test {

TEST(CompanyEqual, ProcessesAndGeneratorsDoNotChangeTheRun) {
  const TinyRun files;
  const std::vector<std::string> few = {"--train.max_steps", "5"};
  const auto with = [&few](std::vector<std::string> more) {
    more.insert(more.end(), few.begin(), few.end());
    return more;
  };
  const std::vector<std::vector<std::string>> ways = {
      with({"--cluster.transport", "loopback"}), with({}), with({"--rollout.generators", "2"})};
  for (std::size_t way = 0; way < ways.size(); ++way) {
    CompanyRun run(files, "way" + std::to_string(way), ways[way]);
    if (way > 0) {
      EXPECT_TRUE(within(30, [&] { return run.nodes().size() == 3 + way; }));
    }
    ASSERT_EQ(run.wait(), 0) << run.output();
    EXPECT_TRUE(run.all_nodes_gone());
    expect_clean_ledger(run.folder());
    EXPECT_EQ(oldest_age(run.folder()), 0u);
    if (way > 0) expect_same_bits(files / "way0", run.folder(), 5);
  }
}

// Policy, reference and engines round to the same bfloat16, so the log-probs of a sampled token
// agree between them as they do with f32, and engines that slept in between change nothing.
TEST(CompanyEqual, WeightsStoredAsBf16GiveTheSameBitsInOneProcessAndInSeveral) {
  const TinyRun files;
  const std::vector<std::string> keys = {
      "--train.max_steps", "3", "--actor.param_dtype", "bf16", "--rollout.enable_sleep", "true"};
  const auto with = [&keys](std::vector<std::string> more) {
    more.insert(more.end(), keys.begin(), keys.end());
    return more;
  };
  CompanyRun one(files, "one", with({"--cluster.transport", "loopback"}));
  ASSERT_EQ(one.wait(), 0) << one.output();
  CompanyRun several(files, "several", with({"--rollout.generators", "2"}));
  ASSERT_EQ(several.wait(), 0) << several.output();
  expect_same_bits(one.folder(), several.folder(), 3);
  for (auto& [step, row] : metrics_of(one.folder()))
    EXPECT_EQ(row["kl/rollout_train"], 0.0) << row.dump();
}

TEST(CompanyStale, TokensAreNoOlderThanTheBound) {
  const TinyRun files;
  CompanyRun run(files, "run",
                 {"--train.staleness_max", "1", "--rollout.generators", "2", "--train.max_steps",
                  "20", "--train.batch_size", "4"});
  ASSERT_EQ(run.wait(), 0) << run.output();
  expect_clean_ledger(run.folder());
  EXPECT_EQ(steps_of_update(run.folder()), 4u);
  EXPECT_LE(oldest_age(run.folder()), 1u);
  EXPECT_EQ(metrics_of(run.folder()).size(), 20u);
}

}  // namespace troupe::test

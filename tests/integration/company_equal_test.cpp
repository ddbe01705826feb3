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

TEST(CompanyStale, TokensAreNoOlderThanTheBound) {
  const TinyRun files;
  CompanyRun run(
      files, "run",
      {"--train.staleness_max", "1", "--rollout.generators", "2", "--train.max_steps", "20"});
  ASSERT_EQ(run.wait(), 0) << run.output();
  expect_clean_ledger(run.folder());
  EXPECT_LE(oldest_age(run.folder()), 1u);
  EXPECT_EQ(metrics_of(run.folder()).size(), 20u);
}

}  // namespace troupe::test

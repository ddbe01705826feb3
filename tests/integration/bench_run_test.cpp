// `troupe bench overlap` and `control` start whole runs of a tiny model, `log` writes an experience
// log: their accounts are complete and possible. Nothing is asserted of times.
#include "exact_support.hpp"

namespace troupe::test {

TEST(BenchRun, OverlapAccountsForEverySide) {
  const ProgramRun run = run_troupe(
      {"bench", "overlap", "--reward-ms", "20", "--updates", "60", "--warm-up", "2", "--layers",
       "1", "--hidden", "32", "--groups", "2", "--new-tokens", "8", "--limit-s", "40", "--json"});
  ASSERT_EQ(run.status, 0) << run.output;
  ASSERT_TRUE(run.line.is_object()) << run.output;
  EXPECT_EQ(run.line["updates"], 60);
  EXPECT_EQ(run.line["staleness_max"], 1);
  for (const char* side : {"step_s_async", "step_s_sync", "step_s_sync_same_share", "longer_side_s",
                           "generator_s", "policy_s", "reward_s", "ratio"}) {
    EXPECT_GT(run.line[side].get<double>(), 0) << side;
  }
  for (const char* share : {"generator_idle_share", "policy_idle_share", "busy_together_share"}) {
    EXPECT_GE(run.line[share].get<double>(), 0) << share;
    EXPECT_LE(run.line[share].get<double>(), 1.001) << share;
  }
  double idle = 0;
  for (const auto& [cause, share] : run.line["generator_idle"].items())
    idle += share.get<double>();
  EXPECT_NEAR(idle, run.line["generator_idle_share"].get<double>(), 0.01);
}

TEST(BenchRun, ControlCountsWholeUpdates) {
  const ProgramRun run = run_troupe({"bench", "control", "--groups", "4", "--samples", "4",
                                     "--updates", "6", "--limit-s", "25", "--json"});
  ASSERT_EQ(run.status, 0) << run.output;
  ASSERT_TRUE(run.line.is_object()) << run.output;
  EXPECT_GE(run.line["samples"].get<std::uint64_t>(), 3u * 6 * 16);
  EXPECT_EQ(run.line["samples"].get<std::uint64_t>() % 16, 0u);
  EXPECT_GT(run.line["us_per_sample"].get<double>(), 0);
  EXPECT_GT(run.line["reward_node_mb"].get<double>(), 0);
  EXPECT_GT(run.line["head_mb"].get<double>(), 0);
}

// A token has an id, a log-prob, four letters and a log-prob of the reference, each 4 bytes.
TEST(BenchRun, LogCountsTheBytesOfTokens) {
  for (const bool reference : {true, false}) {
    std::vector<std::string> words = {"bench", "log",          "--groups", "2",     "--samples",
                                      "2",     "--new-tokens", "2000",     "--json"};
    if (!reference) words.push_back("--no-reference");
    const ProgramRun run = run_troupe(words);
    ASSERT_EQ(run.status, 0) << run.output;
    ASSERT_TRUE(run.line.is_object()) << run.output;
    const double bytes = run.line["bytes_per_token"].get<double>(), least = reference ? 16 : 12;
    EXPECT_GT(bytes, least);
    EXPECT_LT(bytes, least + 0.5);
    EXPECT_DOUBLE_EQ(run.line["update_s"].get<double>(), 8000 / 20e3);
    for (const char* cost :
         {"cpu_ms", "put_ms", "sync_wait_ms", "read_back_ms", "cpu_share_of_core", "wall_share"})
      EXPECT_GT(run.line[cost].get<double>(), 0) << cost;
  }
}

}  // namespace troupe::test

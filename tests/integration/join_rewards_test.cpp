// A reward that a guest brought is part of the run: it is there again after the run was stopped and
// started, without a group that was scored by fewer, or it is detached.
#include "tests/integration/join_support.hpp"

namespace troupe::test {
namespace {

class AttachedRewards : public Joining {
 protected:
  // The sets of the groups of an update, from 1.
  std::map<std::uint64_t, std::set<std::uint64_t>> sets_of(const std::string& run) {
    std::map<std::uint64_t, std::set<std::uint64_t>> sets;
    std::ifstream in(files_ / run / "ledger.log");
    for (std::string line; std::getline(in, line);) {
      const auto brace = line.find('{');
      if (brace == line.npos) continue;
      const auto record = nlohmann::json::parse(line.substr(brace), nullptr, false);
      if (!record.is_object()) continue;
      sets[record.value("update", 0ull) + 1].insert(record.value("set", 0ull));
      EXPECT_EQ(record["rewards"].contains("more"), record["set"] != 0) << line;
      EXPECT_EQ(record["rewards"].contains("less"), record["set"] == 2) << line;
    }
    return sets;
  }
  std::uint64_t newest_set(const std::string& run) {
    const auto sets = sets_of(run);
    return sets.empty() ? 0 : *sets.rbegin()->second.rbegin();
  }
};

TEST_F(AttachedRewards, ComeBackWhenARunGoesOnOrAreDetached) {
  const Words endless = {"--train.max_steps",    "100000", "--ckpt.save_steps",   "100000",
                         "--rollout.generators", "1",      "--algo.kl.init_coef", "0"};
  const std::string folder = (files_ / "run").string();
  const auto guest = [&](const std::string& name, const std::string& pattern) {
    return start({"attach", "reward", "--join", folder, "--name", name, "--rule", "regex",
                  "--pattern", pattern, "--weight", "0.5"},
                 name);
  };
  Background more;
  std::uint64_t stopped_after = 0;
  {
    Background run = head("run", endless);
    ASSERT_TRUE(within(30, [&] { return updates_of("run") > 1; })) << run.text();
    more = guest("more", "[a-z]");
    ASSERT_TRUE(within(30, [&] { return newest_set("run") == 1; })) << run.text() << more.text();
    Background less = guest("less", "[0-9]");
    ASSERT_TRUE(within(30, [&] { return newest_set("run") == 2; })) << run.text() << less.text();
    run.signal(SIGINT);
    ASSERT_EQ(run.wait(30), 130) << run.text();
    stopped_after = updates_of("run");
    EXPECT_TRUE(less.running()) << less.text();
  }
  ASSERT_TRUE(within(10, [&] { return more.says("tries again"); })) << more.text();
  // One comes back by itself, the other was killed: the run does not go on without it.
  Background run = head("run", endless);
  EXPECT_TRUE(within(30, [&] { return run.says("waiting for reward less"); })) << run.text();
  EXPECT_TRUE(run.says("troupe detach reward --join " + folder + " --name less")) << run.text();
  ASSERT_TRUE(within(30, [&] { return run.says("node/reward-more"); })) << run.text();
  EXPECT_EQ(updates_of("run"), stopped_after);
  const Ended detached = ends({"detach", "reward", "--join", folder, "--name", "less"});
  EXPECT_EQ(detached.status, 0) << detached.text;
  ASSERT_TRUE(within(20, [&] { return updates_of("run") > stopped_after; }))
      << run.text() << more.text();
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(30), 130) << run.text();
  for (const auto& [update, sets] : sets_of("run")) {
    if (update <= stopped_after) continue;
    EXPECT_EQ(sets, std::set<std::uint64_t>{3}) << "update " << update;
  }
  expect_clean_ledger("run");
}

// A formula that comes with an attached reward, and one that is given later, hold for the tickets
// that are issued from then on, and still hold when the run is stopped and goes on.
TEST_F(AttachedRewards, TheirFormulaIsPartOfTheRun) {
  const Words endless = {"--train.max_steps",    "100000", "--ckpt.save_steps",   "100000",
                         "--rollout.generators", "1",      "--algo.kl.init_coef", "0"};
  const std::string folder = (files_ / "run").string();
  const auto formulas = [this] {
    std::set<std::string> seen;
    std::ifstream in(files_ / "run" / "ledger.log");
    for (std::string line; std::getline(in, line);) {
      const auto record = nlohmann::json::parse(line.substr(line.find('{')), nullptr, false);
      if (record.is_object()) seen.insert(record.value("formula", ""));
    }
    return seen;
  };
  const std::string gate = "gate(more, 0.5, rest)", least = "min(more, 2 * rest)";
  Background more;
  std::uint64_t stopped_after = 0;
  {
    Background run = head("run", endless);
    ASSERT_TRUE(within(30, [&] { return updates_of("run") > 1; })) << run.text();
    more = start({"attach", "reward", "--join", folder, "--name", "more", "--rule", "regex",
                  "--pattern", "[a-z]", "--formula", gate},
                 "more");
    ASSERT_TRUE(within(30, [&] { return formulas().contains(gate); })) << run.text() << more.text();
    for (const auto& [formula, part] : {std::pair<std::string, std::string>{"min(more", "')'"},
                                        {"min(more, x)", "its rewards are: "}}) {
      const Ended refused = ends({"re-weight", "reward", "--join", folder, "--formula", formula});
      EXPECT_EQ(refused.status, 2) << refused.text;
      EXPECT_NE(refused.text.find(part), std::string::npos) << refused.text;
    }
    const Ended bound = ends({"detach", "reward", "--join", folder, "--name", "more"});
    EXPECT_EQ(bound.status, 2) << bound.text;
    const Ended changed = ends({"re-weight", "reward", "--join", folder, "--formula", least});
    EXPECT_EQ(changed.status, 0) << changed.text;
    ASSERT_TRUE(within(30, [&] { return formulas().contains(least); })) << run.text();
    run.signal(SIGINT);
    ASSERT_EQ(run.wait(30), 130) << run.text();
    stopped_after = updates_of("run");
  }
  Background run = head("run", endless);
  ASSERT_TRUE(within(60, [&] { return updates_of("run") > stopped_after + 1; }))
      << run.text() << more.text();
  EXPECT_EQ(formulas(), (std::set<std::string>{"", gate, least}));
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(30), 130) << run.text();
  expect_clean_ledger("run");
}

}  // namespace
}  // namespace troupe::test

// Whatever happens to its nodes, a company ends up with every wanted role on one live node.
#include "tests/unit/actors/node/company_stage.hpp"

namespace troupe::actors::testing {
namespace {

using std::chrono::seconds;

const std::vector<std::string> kNodes = {"node/generator-0", "node/generator-1", "node/policy",
                                         "node/reward"};
const std::vector<WantedRole> kRoles = {{"policy", "policy/0", "node/policy"},
                                        {"reward", "reward/0", "node/reward"},
                                        {"generator", "generator/0", "node/generator-0"},
                                        {"generator", "generator/1", "node/generator-1"}};

std::vector<LocalNode> local_nodes() {
  return {{"node/generator-0", {"generator"}},
          {"node/generator-1", {"generator"}},
          {"node/policy", {"policy"}},
          {"node/reward", {"reward"}}};
}

void expect_everybody_up(const CompanyStage& stage, const std::string& where) {
  for (const WantedRole& role : kRoles) {
    const Part* const part = stage.company().cast().find(role.name);
    ASSERT_NE(part, nullptr);
    EXPECT_EQ(part->state, PartState::kUp) << role.name << " " << where;
    const auto [node, epoch] = stage.place_of(role.name);
    EXPECT_EQ(node, role.bound) << role.name << " " << where;
    EXPECT_EQ(epoch, part->epoch) << role.name << " " << where;
  }
}

}  // namespace

TEST(CompanyRole, EveryRoleComesBackAfterWhateverHappens) {
  for (std::uint64_t seed = 1; seed <= 150 && !::testing::Test::HasFailure(); ++seed) {
    const std::string where = "seed " + std::to_string(seed);
    CompanyStage stage(seed, local_nodes(), kRoles);
    for (int fault = 0; fault < 5; ++fault) {
      stage.run_for(milliseconds(stage.rng().next_below(4000)));
      const std::string node = kNodes[stage.rng().next_below(kNodes.size())];
      switch (stage.rng().next_below(6)) {
        case 0:
          stage.crash(node);
          break;
        case 1:
          stage.freeze(node);
          stage.run_for(milliseconds(stage.rng().next_below(4000)));
          stage.thaw(node);
          break;
        case 2:
          stage.cut(node);
          stage.run_for(milliseconds(stage.rng().next_below(4000)));
          stage.heal();
          break;
        case 3:
          stage.crash_role(kRoles[stage.rng().next_below(kRoles.size())].name);
          break;
        case 4:
          stage.freeze(node);  // for good
          break;
        default:
          stage.crash(node);
          stage.crash(kNodes[stage.rng().next_below(kNodes.size())]);
      }
    }
    stage.run_for(seconds(45));
    expect_everybody_up(stage, where);
  }
}

TEST(CompanyRole, ARoleWhoseActorEndsIsStartedAgainInTheSameProcessWithAHigherEpoch) {
  CompanyStage stage(7, local_nodes(), kRoles);
  stage.run_for(seconds(5));
  expect_everybody_up(stage, "at first");
  const std::uint64_t before = stage.place_of("reward/0").second;
  stage.crash_role("reward/0");
  stage.run_for(seconds(5));
  expect_everybody_up(stage, "again");
  EXPECT_EQ(stage.place_of("reward/0").second, before + 1);
  for (const std::string& note : stage.notes())
    EXPECT_FALSE(note.starts_with("node/")) << note;
}

TEST(CompanyRole, ProcessesThatNeverComeUpEndTheRunAndItsWait) {
  CompanyStage stage(5, local_nodes(), kRoles);
  stage.doom();
  auto up = stage.await_up({"policy", "reward"});
  stage.run_for(seconds(120));
  EXPECT_NE(stage.hopeless().find("cannot be kept up: it ended with status 1"), std::string::npos)
      << stage.hopeless();
  ASSERT_TRUE(up.done()) << "it waits on";
  EXPECT_FALSE(up.value());
}

TEST(CompanyRole, ACalmCompanyHasNothingToSay) {
  CompanyStage stage(3, local_nodes(), kRoles);
  stage.run_for(seconds(120));
  expect_everybody_up(stage, "after two minutes");
  EXPECT_TRUE(stage.notes().empty()) << stage.notes().front();
}

}  // namespace troupe::actors::testing

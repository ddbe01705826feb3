// Whatever happens to its nodes, a company ends up with every wanted role on one live node.
#include "tests/unit/actors/company/drawn_faults.hpp"

namespace troupe::actors::testing {
namespace {

using std::chrono::seconds;

const std::vector<std::string> kNodes = {"node/generator-0", "node/generator-1", "node/policy",
                                         "node/reward"};
const std::vector<company::WantedRole> kRoles = {{"policy", "policy/0", "node/policy"},
                                                 {"reward", "reward/0", "node/reward"},
                                                 {"generator", "generator/0", "node/generator-0"},
                                                 {"generator", "generator/1", "node/generator-1"}};

const std::vector<std::string> kRoleNames = {"policy/0", "reward/0", "generator/0", "generator/1"};

std::vector<company::LocalNode> local_nodes() {
  return {{"node/generator-0", {"generator"}},
          {"node/generator-1", {"generator"}},
          {"node/policy", {"policy"}},
          {"node/reward", {"reward"}}};
}

void expect_everybody_up(const CompanyStage& stage, const std::string& where) {
  for (const company::WantedRole& role : kRoles) {
    const company::PlacedRole* const placed = stage.company().placement().find(role.name);
    ASSERT_NE(placed, nullptr);
    EXPECT_EQ(placed->state, company::RoleState::kUp) << role.name << " " << where;
    const auto [node, epoch] = stage.place_of(role.name);
    EXPECT_EQ(node, role.bound) << role.name << " " << where;
    EXPECT_EQ(epoch, placed->epoch) << role.name << " " << where;
  }
}

}  // namespace

TEST(Company, EveryRoleComesBackAfterWhateverHappens) {
  for (std::uint64_t seed = 1; seed <= 150 && !::testing::Test::HasFailure(); ++seed) {
    const std::string where = "seed " + std::to_string(seed);
    CompanyStage stage(seed, local_nodes(), kRoles);
    draw_faults(stage, 5, kNodes, kRoleNames);
    stage.run_for(seconds(45));
    expect_everybody_up(stage, where);
  }
}

TEST(Company, ARoleWhoseActorEndsIsStartedAgainInTheSameProcessWithAHigherEpoch) {
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

TEST(Company, ARoleThatIsSaidToBeSickIsStoppedAndStartedAgain) {
  CompanyStage stage(11, local_nodes(), kRoles);
  stage.run_for(seconds(5));
  expect_everybody_up(stage, "at first");
  const std::uint64_t sick = stage.place_of("generator/1").second;
  stage.report_sick("generator/1", sick);
  stage.run_for(seconds(5));
  expect_everybody_up(stage, "again");
  EXPECT_EQ(stage.place_of("generator/1").second, sick + 1);
  EXPECT_EQ(stage.company().placement().find("generator/1")->losses.size(), 0u);
  EXPECT_EQ(stage.lost(), std::vector<std::string>{"generator/1"});
  EXPECT_EQ(stage.notes(),
            std::vector<std::string>{"generator/1 is started again: a device failed"});
  stage.report_sick("generator/1", sick);
  stage.run_for(seconds(5));
  EXPECT_EQ(stage.place_of("generator/1").second, sick + 1) << "that life is over already";
}

// Its name is free nevertheless, so that it can start on another node.
TEST(Company, ARoleThatDoesNotStopIsFenced) {
  CompanyStage stage(11, local_nodes(), kRoles);
  stage.refusals().stuck = "generator/1";
  stage.run_for(seconds(5));
  const std::uint64_t sick = stage.place_of("generator/1").second;
  stage.report_sick("generator/1", sick);
  stage.run_for(seconds(5));
  EXPECT_TRUE(stage.fenced().empty()) << "it may still stop";
  stage.run_for(seconds(10));
  EXPECT_EQ(stage.fenced(), std::vector<std::string>{"generator/1 " + std::to_string(sick)});
}

TEST(Company, AGeneratorThatIsSickForEverRestsWhileTheOtherWorks) {
  CompanyStage stage(12, local_nodes(), kRoles);
  stage.run_for(seconds(5));
  std::uint64_t last = 0, lives = 0;
  for (int look = 0; look < 600; ++look) {
    const auto [node, epoch] = stage.place_of("generator/1");
    if (epoch > last) {
      ++lives;
      last = epoch;
    }
    stage.report_sick("generator/1", epoch);
    stage.run_for(milliseconds(200));
  }
  EXPECT_GE(lives, 4u);
  EXPECT_LE(lives, 6u) << "after 0.1, 10, 30 and 70 s";
  EXPECT_EQ(stage.hopeless(), "");
  EXPECT_EQ(stage.place_of("generator/0").second, 1u);
}

TEST(Company, AGuestThatCannotPlayAKindIsStruckOffForItAndTheRunWaitsForAnother) {
  std::vector<company::WantedRole> roles = kRoles;
  roles.push_back({"reference", "reference/0", ""});
  CompanyStage stage(13, local_nodes(), roles);
  stage.refusals().why[{"node/spare", "reference"}] = {core::ErrorCode::kNotFound,
                                                       "no model folder at model"};
  stage.guest("node/good", {"reference"});
  stage.run_for(seconds(5));
  stage.guest("node/spare", {"reference", "generator"});
  stage.run_for(seconds(5));
  EXPECT_EQ(stage.place_of("reference/0").first, "node/good");
  stage.crash("node/good");
  stage.run_for(seconds(60));
  EXPECT_EQ(stage.place_of("reference/0").first, "");
  EXPECT_EQ(stage.asked("reference/0 at node/spare"), 1u) << "it is not asked again";
  EXPECT_EQ(stage.place_of("generator/2").first, "node/spare") << "its other kinds are well";
  const auto said = [&stage](const std::string& text) {
    return std::count(stage.notes().begin(), stage.notes().end(), text);
  };
  EXPECT_EQ(said("node/spare cannot run reference/0: no model folder at model"), 1);
  EXPECT_EQ(said("no node is left that can run reference/0; the run waits for one with --roles "
                 "reference"),
            1);
  expect_everybody_up(stage, "meanwhile");
  stage.guest("node/late", {"reference"});
  stage.run_for(seconds(5));
  EXPECT_EQ(stage.place_of("reference/0").first, "node/late");
  // Mended and started again, it is as good as any.
  stage.crash("node/spare");
  stage.refusals().why.clear();
  stage.run_for(seconds(5));
  stage.guest("node/spare", {"reference"});
  stage.run_for(seconds(5));
  stage.crash("node/late");
  stage.run_for(seconds(15));
  EXPECT_EQ(stage.place_of("reference/0").first, "node/spare");
  EXPECT_EQ(stage.hopeless(), "");
}

TEST(Company, AGuestThatFailsForNowIsAskedAgainAfterARest) {
  std::vector<company::WantedRole> roles = kRoles;
  roles.push_back({"reference", "reference/0", ""});
  CompanyStage stage(14, local_nodes(), roles);
  stage.refusals().why[{"node/full", "reference"}] = {core::ErrorCode::kResources, "out of memory"};
  stage.guest("node/full", {"reference"});
  stage.run_for(seconds(30));
  EXPECT_EQ(stage.asked("reference/0 at node/full"), 1u);
  stage.refusals().why.clear();
  stage.run_for(seconds(60));
  EXPECT_EQ(stage.asked("reference/0 at node/full"), 2u);
  EXPECT_EQ(stage.place_of("reference/0").first, "node/full");
}

TEST(Company, ProcessesThatNeverComeUpEndTheRunAndItsWait) {
  CompanyStage stage(5, local_nodes(), kRoles);
  stage.doom();
  auto up = stage.await_up({"policy", "reward"});
  stage.run_for(seconds(120));
  EXPECT_NE(stage.hopeless().find("cannot be kept up: it ended with status 1"), std::string::npos)
      << stage.hopeless();
  ASSERT_TRUE(up.done()) << "it waits on";
  EXPECT_FALSE(up.value());
}

// A guest says to which run it belongs; a node that lends what it has says nothing.
TEST(Company, AGuestOfAnotherRunIsRefusedByName) {
  CompanyStage stage(7, local_nodes(), kRoles);
  stage.run_for(seconds(5));
  Join guest;
  guest.name = "node/guest";
  guest.arithmetic = guest.build = "same";
  guest.run_id = 43;
  guest.run = "runs/there";
  auto other = stage.asks_in(guest);
  stage.run_for(seconds(1));
  ASSERT_FALSE(other.value());
  EXPECT_EQ(other.value().error().code, core::ErrorCode::kNotFound);
  const std::string text =
      "this is runs/here (run 000000000000002a), and node/guest belongs to runs/there (run "
      "000000000000002b)";
  EXPECT_EQ(other.value().error().message, text);
  EXPECT_EQ(std::count(stage.notes().begin(), stage.notes().end(), "refused: " + text), 1);
  guest.run_id = 42;
  auto ours = stage.asks_in(guest);
  stage.run_for(seconds(1));
  ASSERT_TRUE(ours.value());
  EXPECT_EQ(ours.value()->run_id, 42u);
  EXPECT_EQ(ours.value()->run, "runs/here");
}

TEST(Company, ACalmCompanyHasNothingToSay) {
  CompanyStage stage(3, local_nodes(), kRoles);
  stage.run_for(seconds(120));
  expect_everybody_up(stage, "after two minutes");
  EXPECT_TRUE(stage.notes().empty()) << stage.notes().front();
}

}  // namespace troupe::actors::testing

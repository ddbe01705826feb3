// The ranks of a gang meet through the company, and whatever happens to one, all end up at work
// together.
#include "tests/unit/actors/company/drawn_faults.hpp"

namespace troupe::actors::testing {
namespace {

using std::chrono::seconds;

const std::vector<std::string> kGangRanks = {"policy/0", "policy/1", "policy/2"};
const std::vector<std::string> kRankNodes = {"node/policy", "node/policy-1", "node/policy-2"};

std::vector<company::WantedRole> gang() {
  return {{"policy", "policy/0", "node/policy", true},
          {"policy", "policy/1", "node/policy-1", true},
          {"policy", "policy/2", "node/policy-2", true},
          {"reward", "reward/0", "node/reward"}};
}
std::vector<company::LocalNode> gang_nodes() {
  return {{"node/policy", {"policy"}},
          {"node/policy-1", {"policy"}},
          {"node/policy-2", {"policy"}},
          {"node/reward", {"reward"}}};
}

// The epoch in which all ranks are at work, each at its place; 0 when they are not.
std::uint64_t epoch_of_gang(const CompanyStage& stage) {
  const std::uint64_t epoch = stage.company().epoch_of("policy/0");
  for (std::size_t rank = 0; rank < kGangRanks.size(); ++rank) {
    const company::PlacedRole& placed = *stage.company().placement().find(kGangRanks[rank]);
    const auto [node, there] = stage.place_of(kGangRanks[rank]);
    if (placed.state != company::RoleState::kUp || placed.epoch != epoch || there != epoch ||
        node != kRankNodes[rank])
      return 0;
  }
  return epoch;
}

std::vector<Met> met_in(const CompanyStage& stage, std::uint64_t epoch) {
  std::vector<Met> met;
  for (const Met& one : stage.met())
    if (one.epoch == epoch) met.push_back(one);
  return met;
}

std::string notes_text(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes)
    text += note + "\n";
  return text;
}

}  // namespace

TEST(CompanyGangs, RanksAreToldOfEachOtherAndOfAKeyOfThisStartAlone) {
  CompanyStage stage(3, gang_nodes(), gang());
  stage.run_for(seconds(5));
  const std::uint64_t first = epoch_of_gang(stage);
  ASSERT_NE(first, 0u) << notes_text(stage.notes());
  const auto met = met_in(stage, first);
  ASSERT_EQ(met.size(), 3u);
  for (const Met& one : met) {
    EXPECT_EQ(one.told.key, met.front().told.key);
    ASSERT_EQ(one.told.addresses.size(), 3u);
    for (std::size_t rank = 0; rank < 3; ++rank)
      EXPECT_EQ(one.told.addresses[rank].socket, kRankNodes[rank]);
  }
  EXPECT_EQ(met.front().told.key.size(), 64u);
  stage.crash("node/policy-2");
  stage.run_for(seconds(10));
  const std::uint64_t second = epoch_of_gang(stage);
  ASSERT_GT(second, first) << notes_text(stage.notes());
  const auto again = met_in(stage, second);
  ASSERT_EQ(again.size(), 3u);
  EXPECT_NE(again.front().told.key, met.front().told.key);
  EXPECT_EQ(notes_text(stage.notes()).find(met.front().told.key), std::string::npos)
      << "a key is a secret";
}

TEST(CompanyGangs, TheRunIsToldThatRankZeroIsLostWhenAnotherRankIs) {
  CompanyStage stage(4, gang_nodes(), gang());
  stage.run_for(seconds(5));
  ASSERT_NE(epoch_of_gang(stage), 0u);
  stage.crash("node/policy-1");
  stage.run_for(seconds(10));
  EXPECT_NE(epoch_of_gang(stage), 0u);
  EXPECT_EQ(std::count(stage.lost().begin(), stage.lost().end(), "policy/0"), 1);
}

// A rank that is frozen while the others wait for it to meet them.
TEST(CompanyGangs, ARankThatFreezesBeforeTheMeetingHoldsNobodyUp) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CompanyStage stage(seed, gang_nodes(), gang());
    stage.run_for(milliseconds(stage.rng().next_below(1200)));
    stage.freeze("node/policy-1");  // for good
    stage.run_for(seconds(30));
    EXPECT_NE(epoch_of_gang(stage), 0u) << "seed " << seed << "\n" << notes_text(stage.notes());
  }
}

// The others notice before the company does, and cannot start either.
TEST(CompanyGangs, ARankWhoseStartFailsBecauseAnotherIsGoneHasLostNothing) {
  CompanyStage stage(8, gang_nodes(), gang());
  stage.refusals().why[{"node/policy", "policy"}] = {core::ErrorCode::kPeerLost, "rank 1 is gone"};
  while (stage.asked("policy/0 at node/policy") == 0)
    stage.run_for(milliseconds(20));
  stage.run_for(milliseconds(500));
  stage.crash("node/policy-1");
  stage.refusals().why.clear();
  stage.run_for(seconds(10));
  EXPECT_NE(epoch_of_gang(stage), 0u) << notes_text(stage.notes());
  const company::RolePlacement& placement = stage.company().placement();
  EXPECT_EQ(placement.find("policy/1")->losses.size(), 1u) << notes_text(stage.notes());
  EXPECT_TRUE(placement.find("policy/0")->losses.empty()) << notes_text(stage.notes());
}

TEST(CompanyGangs, RanksOfTwoClassesOfArithmeticDoNotWorkTogether) {
  CompanyStage stage(5, gang_nodes(), gang());
  stage.may_end();
  stage.refusals().classes["node/policy-2"] = "f32/v1/b";
  stage.run_for(seconds(5));
  EXPECT_EQ(epoch_of_gang(stage), 0u);
  EXPECT_NE(stage.hopeless().find("policy"), std::string::npos);
  EXPECT_NE(stage.hopeless().find("f32/v1/b"), std::string::npos) << stage.hopeless();
  EXPECT_NE(stage.hopeless().find("f32/v1/a"), std::string::npos) << stage.hopeless();
}

TEST(CompanyGangs, AllRanksComeBackTogetherAfterWhateverHappens) {
  for (std::uint64_t seed = 1; seed <= 100 && !::testing::Test::HasFailure(); ++seed) {
    CompanyStage stage(seed, gang_nodes(), gang());
    draw_faults(stage, 4, kRankNodes, kGangRanks);
    stage.run_for(seconds(60));
    const std::uint64_t epoch = epoch_of_gang(stage);
    EXPECT_NE(epoch, 0u) << "seed " << seed << "\n" << notes_text(stage.notes());
    EXPECT_EQ(met_in(stage, epoch).size(), 3u) << "seed " << seed;
  }
}

// A rank of another host that is gone for good: the gang goes on with those that are left.
TEST(CompanyGangs, WithoutAHostTheGangGoesOnWithFewerRanks) {
  std::vector<company::WantedRole> roles = gang();
  roles[2].bound = "";
  auto nodes = gang_nodes();
  nodes.erase(nodes.begin() + 2);
  CompanyStage stage(6, nodes, roles);
  stage.guest("node/far", {"policy"});
  stage.run_for(seconds(5));
  EXPECT_EQ(stage.place_of("policy/2").first, "node/far") << notes_text(stage.notes());
  const std::uint64_t first = stage.company().epoch_of("policy/0");
  stage.crash("node/far");
  stage.run_for(seconds(8));
  EXPECT_NE(stage.company().placement().find("policy/0")->state, company::RoleState::kUp);
  stage.run_for(seconds(10));
  const company::PlacedRole& rank = *stage.company().placement().find("policy/0");
  EXPECT_EQ(rank.state, company::RoleState::kUp) << notes_text(stage.notes());
  EXPECT_GT(rank.epoch, first);
  EXPECT_EQ(rank.ranks, 2u);
  EXPECT_TRUE(stage.company().placement().all_up("policy"));
  EXPECT_NE(notes_text(stage.notes()).find("policy continues with 2 of its 3 ranks"),
            std::string::npos)
      << notes_text(stage.notes());
}

}  // namespace troupe::actors::testing

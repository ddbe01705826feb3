// What comes with a node's signs of life: figures with their age, and the lines that it prints.
#include "actors/company/limits.hpp"
#include "tests/unit/actors/company/company_stage.hpp"

namespace troupe::actors::testing {
namespace {

using std::chrono::seconds;

class CompanySigns : public ::testing::Test {
 protected:
  void SetUp() override { stage_.run_for(seconds(5)); }
  company::CompanyView::Node node() const {
    const auto nodes = stage_.company().view().nodes;
    EXPECT_EQ(nodes.size(), 1u);
    return nodes.empty() ? company::CompanyView::Node() : nodes.front();
  }
  CompanyStage stage_{31, {{"node/a", {"generator"}}}, {{"generator", "generator/0", "node/a"}}};
};

}  // namespace

TEST_F(CompanySigns, TheReportOfEachRoleComesWithoutBeingAskedForAndAges) {
  ASSERT_EQ(node().reports.size(), 1u);
  const wire::RoleReport report = node().reports[0];
  EXPECT_EQ(report.name, "generator/0");
  EXPECT_EQ(report.epoch, stage_.place_of("generator/0").second);
  EXPECT_TRUE(report.spans.empty());
  EXPECT_GT(report.wall_s, 1);
  EXPECT_LT(report.age_s, 1.5);
  EXPECT_EQ(node().memory, 4096u);
  stage_.run_for(seconds(2));
  EXPECT_GT(node().reports.at(0).wall_s, report.wall_s + 1) << "a newer one has come";
  stage_.freeze("node/a");
  stage_.run_for(milliseconds(1500));
  EXPECT_GT(node().reports.at(0).age_s, 1);
  EXPECT_EQ(node().health, "suspect");
  stage_.thaw("node/a");
  stage_.run_for(seconds(2));
  EXPECT_LT(node().reports.at(0).age_s, 1.5);
}

TEST_F(CompanySigns, LinesArriveInOrderAndOnceThoughTheHeadWasFrozen) {
  stage_.print("node/a", "one\ntwo");
  stage_.run_for(seconds(1));
  EXPECT_EQ(stage_.printed(), (CompanyStage::Lines{{0, "one"}, {1, "two"}}));
  stage_.freeze("company/0");
  stage_.print("node/a", "three");
  stage_.run_for(seconds(1));
  stage_.print("node/a", "four");
  stage_.thaw("company/0");
  stage_.run_for(seconds(2));
  EXPECT_EQ(stage_.printed(),
            (CompanyStage::Lines{{0, "one"}, {1, "two"}, {2, "three"}, {3, "four"}}));
  EXPECT_TRUE(stage_.is_here("node/a"));
}

TEST_F(CompanySigns, AFloodCostsTheNodeNoSignOfLife) {
  for (int i = 0; i < 5'000; ++i)
    stage_.print("node/a", std::string(1000, 'x'));
  stage_.run_for(seconds(10));
  EXPECT_EQ(stage_.notes(), std::vector<std::string>());
  ASSERT_FALSE(stage_.printed().empty());
  EXPECT_GT(stage_.printed().front().first, 4'000u) << "the oldest were dropped";
  EXPECT_EQ(stage_.printed().back().first, 4'999u);
}

TEST_F(CompanySigns, ANodeThatIsLostIsRememberedWithItsLastLines) {
  stage_.crash("node/a");
  stage_.run_for(seconds(2));
  ASSERT_EQ(stage_.notes().size(), 1u);
  EXPECT_TRUE(stage_.notes()[0].starts_with("node/a is lost: ")) << stage_.notes()[0];
  EXPECT_TRUE(stage_.notes()[0].ends_with("; its last lines: a | b")) << stage_.notes()[0];
  const auto lost = stage_.company().view().lost;
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].name, "node/a");
  EXPECT_EQ(lost[0].last_lines, (std::vector<std::string>{"a", "b"}));
  for (int i = 0; i < 20; ++i) {
    stage_.crash("node/a");
    stage_.run_for(seconds(12));
  }
  EXPECT_LE(stage_.company().view().lost.size(), company::limits::kLostNodes_max);
}

}  // namespace troupe::actors::testing
